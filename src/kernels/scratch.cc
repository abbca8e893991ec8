// SPDX-License-Identifier: Apache-2.0
#include "kernels/scratch.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/poison.h"

namespace twibil::kernels {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kOverread = 192;  // the widest register tile may load this far behind the last element
constexpr size_t kFirstBlock = size_t{1} << 20;

struct AlignedDelete {
  void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{kAlign}); }
};
struct Block {
  std::unique_ptr<std::byte, AlignedDelete> data;
  size_t size = 0;
};
/// Blocks never move while a frame holds memory in them: a stack that outgrows its block goes on in the next one.
struct Stack {
  std::vector<Block> blocks;
  size_t block = 0, used = 0;  // the next free byte
};

Stack& stack() {
  thread_local Stack s;
  return s;
}

Block new_block(size_t size) {
  void* p = ::operator new (size, std::align_val_t{kAlign}, std::nothrow);
  TW_CHECK(p, memory, "kernel scratch: ", static_cast<int64_t>(size), " bytes of working memory are not available");
  TW_POISON(p, size);
  return {std::unique_ptr<std::byte, AlignedDelete>(static_cast<std::byte*>(p)), size};
}

}  // namespace

ScratchFrame::ScratchFrame() : block_(stack().block), used_(stack().used) {}
ScratchFrame::~ScratchFrame() {
  Stack& s = stack();
#ifdef TW_ASAN
  for (size_t b = block_; b < s.blocks.size() && b <= s.block; ++b) {
    const size_t from = b == block_ ? used_ : 0;
    TW_POISON(s.blocks[b].data.get() + from, s.blocks[b].size - from);
  }
#endif
  s.block = block_;
  s.used = used_;
}

void* ScratchFrame::take_bytes(int64_t count, size_t size) {
  const size_t open = static_cast<size_t>(checked_mul(count, static_cast<int64_t>(size))) + kOverread;
  const size_t bytes = (open + kRedzone + kAlign - 1) / kAlign * kAlign;
  Stack& s = stack();
  if (s.blocks.empty()) s.blocks.push_back(new_block(std::max(kFirstBlock, bytes)));
  if (s.used + bytes > s.blocks[s.block].size) {
    const size_t next = s.used == 0 ? s.block : s.block + 1;  // an unused block is replaced, a used one followed
    const size_t grown = std::max(bytes, 2 * s.blocks[s.block].size);
    if (next == s.blocks.size()) {
      s.blocks.push_back(new_block(grown));
    } else if (s.blocks[next].size < bytes) {
      s.blocks[next] = Block{};
      s.blocks[next] = new_block(bytes);
    }
    s.block = next;
    s.used = 0;
  }
  std::byte* p = s.blocks[s.block].data.get() + s.used;
  s.used += bytes;
  TW_UNPOISON(p, open);
  return p;
}

void release_scratch() {
  Stack& s = stack();
  s.blocks.resize(s.used == 0 ? s.block : std::min(s.blocks.size(), s.block + 1));
}

int64_t scratch_bytes() {
  size_t sum = 0;
  for (const Block& b : stack().blocks) sum += b.size;
  return static_cast<int64_t>(sum);
}

}  // namespace twibil::kernels
