// SPDX-License-Identifier: Apache-2.0
// The instructions of protocols 2 to 5 that lists, dictionaries and tensors need; Python's pickletools.py documents
// all.
#include "api/io/pickle.h"

#include <algorithm>
#include <cstdio>

namespace twibil::io {
namespace {

constexpr size_t kMaxNodes = size_t{1} << 20;  // files of weights have some thousand
constexpr size_t kMaxItems = size_t{1} << 24;

std::string hex(uint8_t code) {
  char s[8];
  std::snprintf(s, sizeof s, "0x%02x", code);
  return s;
}

std::string line(ByteCursor& in) {
  std::string s;
  while (s.size() < 256) {
    char c = in.read<char>("a name");
    if (c == '\n') return s;
    s += c;
  }
  in.fail("a name has more than 256 characters. The file is damaged");
}

}  // namespace

uint32_t PickleMachine::add(PickleNode node) {
  if (nodes_.size() >= kMaxNodes) fail(text("there are more than ", kMaxNodes, " objects"));
  count_items(node.items.size());
  nodes_.push_back(std::move(node));
  return static_cast<uint32_t>(nodes_.size() - 1);
}
void PickleMachine::count_items(size_t more) {
  if (more > kMaxItems - items_) fail(text("lists and dictionaries have more than ", kMaxItems, " elements"));
  items_ += more;
}
uint32_t PickleMachine::add_tuple(std::vector<uint32_t> items) {
  PickleNode n{.kind = Kind::tuple};
  n.items = std::move(items);
  return add(std::move(n));
}

uint32_t PickleMachine::pop() {
  size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) fail("an instruction lacks its operand. The file is damaged");
  uint32_t top = stack_.back();
  stack_.pop_back();
  return top;
}
std::vector<uint32_t> PickleMachine::pop_many(size_t count) {
  std::vector<uint32_t> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  return items;
}
std::vector<uint32_t> PickleMachine::pop_to_mark() {
  if (marks_.empty()) fail("an instruction lacks its mark. The file is damaged");
  auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<uint32_t> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

void PickleMachine::push_text(int64_t length) {
  PickleNode n{.kind = Kind::text};
  n.text = text_of(in_->take(length, "a text"));
  push(add(std::move(n)));
}
void PickleMachine::push_long(int64_t length) {
  if (length > 8) fail(text("an integer of ", length, " bytes does not fit into 64 bits"));
  ByteView bytes = in_->take(length, "an integer");
  uint64_t value = length > 0 && (bytes.back() & std::byte{0x80}) != std::byte{0} ? ~uint64_t{0} : 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  push(add({.kind = Kind::integer, .integer = static_cast<int64_t>(value)}));
}
void PickleMachine::push_tuple(size_t count) { push(add_tuple(pop_many(count))); }

/// Appends to the list or dictionary on top of the stack.
void PickleMachine::extend(Kind kind, std::vector<uint32_t> items) {
  uint32_t target = pop();
  push(target);
  if (nodes_[target].kind != kind || (kind == Kind::dict && items.size() % 2 != 0))
    fail(kind == Kind::dict ? "pairs are added to something that is no dictionary. The file is damaged"
                            : "elements are added to something that is no list. The file is damaged");
  count_items(items.size());
  nodes_[target].items.insert(nodes_[target].items.end(), items.begin(), items.end());
}

bool PickleMachine::step_value(uint8_t code) {
  ByteCursor& in = *in_;
  auto integer = [&](int64_t value) { push(add({.kind = Kind::integer, .integer = value})); };
  switch (code) {
    case 'N': push(0); return true;  // nodes that exist once: see run()
    case 0x88: push(1); return true;
    case 0x89: push(2); return true;
    case 'J': integer(in.read<int32_t>("an integer")); return true;
    case 'K': integer(in.read<uint8_t>("an integer")); return true;
    case 'M': integer(in.read<uint16_t>("an integer")); return true;
    case 0x8a: push_long(in.read<uint8_t>("a length")); return true;
    case 0x8b: push_long(in.read<int32_t>("a length")); return true;
    case 'G': {
      auto bits = __builtin_bswap64(in.read<uint64_t>("a number"));
      push(add({.kind = Kind::real, .real = std::bit_cast<double>(bits)}));
      return true;
    }
    case 'X':
    case 'T':
    case 'B': push_text(in.read<uint32_t>("a length")); return true;
    case 0x8c:
    case 'U':
    case 'C': push_text(in.read<uint8_t>("a length")); return true;
    case 0x8d:
    case 0x8e: push_text(in.read_count(1, "a length")); return true;
    default: return false;
  }
}

bool PickleMachine::step_container(uint8_t code) {
  switch (code) {
    case '(': marks_.push_back(stack_.size()); return true;
    case '0': pop(); return true;
    case '1': pop_to_mark(); return true;
    case ')': push_tuple(0); return true;
    case 0x85: push_tuple(1); return true;
    case 0x86: push_tuple(2); return true;
    case 0x87: push_tuple(3); return true;
    case 't': push(add_tuple(pop_to_mark())); return true;
    case ']': push(add({.kind = Kind::list})); return true;
    case '}': push(add({.kind = Kind::dict})); return true;
    case 'l':
    case 'd': {
      std::vector<uint32_t> items = pop_to_mark();
      Kind kind = code == 'l' ? Kind::list : Kind::dict;
      push(add({.kind = kind}));
      extend(kind, std::move(items));
      return true;
    }
    case 'a': extend(Kind::list, pop_many(1)); return true;
    case 'e': extend(Kind::list, pop_to_mark()); return true;
    case 's': extend(Kind::dict, pop_many(2)); return true;
    case 'u': extend(Kind::dict, pop_to_mark()); return true;
    default: return false;
  }
}

bool PickleMachine::step_memo(uint8_t code) {
  ByteCursor& in = *in_;
  auto put = [&](uint64_t key) {
    uint32_t top = pop();
    push(top);
    memo_[key] = top;
  };
  auto get = [&](uint64_t key) {
    auto found = memo_.find(key);
    if (found == memo_.end()) fail(text("there is no remembered object ", key, ". The file is damaged"));
    push(found->second);
  };
  switch (code) {
    case 'q': put(in.read<uint8_t>("an index")); return true;
    case 'r': put(in.read<uint32_t>("an index")); return true;
    case 0x94: put(memo_.size()); return true;
    case 'h': get(in.read<uint8_t>("an index")); return true;
    case 'j': get(in.read<uint32_t>("an index")); return true;
    default: return false;
  }
}

void PickleMachine::step_name(bool from_stack) {
  PickleNode n{.kind = Kind::name};
  if (from_stack) {
    std::vector<uint32_t> parts = pop_many(2);
    if (nodes_[parts[0]].kind != Kind::text || nodes_[parts[1]].kind != Kind::text)
      fail("a name is no text. The file is damaged");
    n.text = nodes_[parts[0]].text + "." + nodes_[parts[1]].text;
  } else {
    std::string module = line(*in_);
    n.text = module + "." + line(*in_);
  }
  if (!knows(n.text))
    fail(text("it asks for ", n.text, ", which files of weights do not need. Nothing of it was run; if you trust the ",
              "file, load it with its own program and save the plain dictionary of tensors"));
  push(add(std::move(n)));
}

void PickleMachine::step_call() {
  std::vector<uint32_t> parts = pop_many(2);
  const PickleNode &callee = nodes_[parts[0]], &arguments = nodes_[parts[1]];
  if (callee.kind != Kind::name || arguments.kind != Kind::tuple) fail("a call is malformed. The file is damaged");
  std::string name = callee.text;  // call() may move the nodes
  push(call(name, parts[1]));
}

bool PickleMachine::step() {
  ByteCursor& in = *in_;
  auto code = in.read<uint8_t>("an instruction");
  if (step_value(code) || step_container(code) || step_memo(code)) return true;
  switch (code) {
    case '.': return false;
    case 0x80: {
      int version = in.read<uint8_t>("the protocol's number");
      if (version < 2 || version > 5) fail(text("pickles of protocol ", version, " are not read; 2 to 5 are"));
      return true;
    }
    case 0x95: in.read_count(1, "a frame's length"); return true;
    case 'c': step_name(false); return true;
    case 0x93: step_name(true); return true;
    case 'R':
    case 0x81: step_call(); return true;
    case 'b': pop(); return true;  // the state of an object: attributes of a dictionary, which are no weights
    case 'Q': push(persistent(pop())); return true;
    default: fail(text("instruction ", hex(code), " is not one that files of weights need"));
  }
}

uint32_t PickleMachine::run(ByteCursor& in) {
  in_ = &in;
  stack_.clear();
  marks_.clear();
  memo_.clear();
  if (nodes_.empty()) {
    add({.kind = Kind::none});
    add({.kind = Kind::boolean, .integer = 1});
    add({.kind = Kind::boolean, .integer = 0});
  }
  while (step()) {
  }
  if (stack_.size() != 1 || !marks_.empty()) fail("the pickle ends in the middle of something. The file is damaged");
  return stack_[0];
}

}  // namespace twibil::io
