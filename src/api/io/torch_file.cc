// SPDX-License-Identifier: Apache-2.0
// The zip format: member NAME/data.pkl is the pickle, NAME/data/KEY the elements of a storage. The old format: pickles
// of a magic number, a version, the sizes of C types, the object, and the list of storage keys; then for each key the
// number of its elements (64 bits) and the elements. In pickles a storage is a persistent id ('storage', type, key,
// place, elements[, view]); a tensor is a call of torch._utils._rebuild_tensor_v2(storage, offset, shape, strides,
// ...).
#include "api/io/torch_file.h"

#include <algorithm>
#include <unordered_set>

#include "api/io/zip_file.h"
#include "base/checked.h"

namespace twibil::io {
namespace {

using Kind = PickleNode::Kind;
constexpr const char* kWho = "torch file";
constexpr unsigned char kOldMagic[] = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};
constexpr int64_t kOldVersion = 1001;
constexpr int64_t kMaxRank = 32;
constexpr int kMaxDepth = 64;
constexpr size_t kMaxVisits = size_t{1} << 21, kMaxName = 1024;
constexpr const char* kDictionary = "collections.OrderedDict";
constexpr const char* kTensor = "torch._utils._rebuild_tensor";
constexpr const char* kTensor2 = "torch._utils._rebuild_tensor_v2";
constexpr const char* kParameter = "torch._utils._rebuild_parameter";
constexpr const char* kSize = "torch.Size";

struct StorageType {
  const char* name;
  DType dtype;
};
constexpr StorageType kStorageTypes[] = {
    {"torch.FloatStorage", DType::float32}, {"torch.DoubleStorage", DType::float64},
    {"torch.HalfStorage", DType::float16},  {"torch.BFloat16Storage", DType::bfloat16},
    {"torch.ByteStorage", DType::uint8},    {"torch.CharStorage", DType::int8},
    {"torch.IntStorage", DType::int32},     {"torch.LongStorage", DType::int64},
    {"torch.BoolStorage", DType::bool_}};

bool begins_with_old_magic(ByteView b) {
  size_t n = std::size(kOldMagic);
  if (b.size() < n + 2 || b[0] != std::byte{0x80}) return false;
  return std::memcmp(b.data() + 2, kOldMagic, n) == 0;
}

/// Copies elements of `size` bytes into row-major order.
Bytes in_order(ByteView data, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, int64_t size) {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  Bytes out(static_cast<size_t>(count * size));
  std::vector<int64_t> at(shape.size(), 0);
  int64_t from = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(out.data() + i * size, data.data() + from * size, static_cast<size_t>(size));
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (shape[axis] == 1) continue;  // its stride may be anything
      from += strides[axis];
      if (++at[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return out;
}

}  // namespace

TorchFile::TorchFile(const std::string& path, int64_t max_bytes) : bytes_(read_file(path, max_bytes)), source_(path) {
  read();
}
TorchFile::TorchFile(Bytes bytes, std::string source) : bytes_(std::move(bytes)), source_(std::move(source)) { read(); }

void TorchFile::read() {
  if (begins_with_old_magic(bytes_)) read_old();
  else if (text_of(bytes_).starts_with("PK\x03\x04")) read_zip();
  else ByteCursor(bytes_, kWho, source_).fail("this is neither of the formats that torch.save() writes");
}

void TorchFile::read_zip() {
  std::map<std::string, ByteView> members = parse_stored_zip(bytes_, source_);
  std::string folder;
  for (const auto& [name, data] : members)
    if (name == "data.pkl" || name.ends_with("/data.pkl")) folder = name.substr(0, name.size() - 8);
  auto pickle = members.find(folder + "data.pkl");
  if (pickle == members.end())
    ByteCursor(bytes_, kWho, source_).fail("the archive has no member data.pkl. Did torch.save() write it?");
  if (auto order = members.find(folder + "byteorder"); order != members.end() && text_of(order->second) != "little")
    ByteCursor(bytes_, kWho, source_).fail("it was written on a big-endian machine, which is not supported");
  std::string where = source_ + ", " + pickle->first;
  ByteCursor in(pickle->second, kWho, where);
  root_ = run(in);
  for (Storage& s : storages_) {
    auto data = members.find(folder + "data/" + s.key);
    if (data == members.end()) in.fail("there is no member data/", s.key, ", which a tensor needs");
    set_data(s, data->second);
  }
  check_tensors();
}

void TorchFile::read_old() {
  ByteCursor in(bytes_, kWho, source_);
  in.take(2 + static_cast<int64_t>(std::size(kOldMagic)), "the magic number");
  auto version = node(run(in));
  if (version.kind != Kind::integer || version.integer != kOldVersion) in.fail("its version is not ", kOldVersion);
  run(in);  // sizes of C types
  root_ = run(in);
  std::vector<uint32_t> keys = node(run(in)).items;
  std::unordered_set<std::string> seen;
  for (uint32_t k : keys) {
    auto found = storage_nodes_.find(node(k).text);
    if (node(k).kind != Kind::text || found == storage_nodes_.end() || !seen.insert(found->first).second)
      in.fail("the list of storages does not fit the tensors. The file is damaged");
    Storage& s = storages_[static_cast<size_t>(node(found->second).integer)];
    if (in.read<int64_t>("a number of elements") != s.elements)
      in.fail("storage ", s.key, " has another number of elements than its tensors say. The file is damaged");
    set_data(s, in.take(s.elements * size_of(s.dtype), "a storage"));
  }
  if (seen.size() != storages_.size()) in.fail("storages are missing. The file is truncated or damaged");
  check_tensors();
}

void TorchFile::set_data(Storage& s, ByteView data) {
  if (static_cast<int64_t>(data.size()) != s.elements * size_of(s.dtype))
    throw_error(ErrorKind::value, text(kWho, ": '", source_, "': storage ", s.key, " has ", data.size(),
                                       " bytes; its tensors say ", s.elements, " elements of ", s.dtype));
  s.data = data;
}

/// Whether each tensor lies in its storage; together they may not be much more than the file, whatever strides say.
void TorchFile::check_tensors() {
  int64_t budget = static_cast<int64_t>(bytes_.size()) * 16;
  auto check = [&](bool good, const Tensor& t, const char* what) {
    if (!good)
      throw_error(ErrorKind::value, text(kWho, ": '", source_, "': a tensor of shape ",
                                         std::span<const int64_t>(t.shape), " ", what, ". The file is damaged"));
  };
  for (const Tensor& t : tensors_) {
    const Storage& s = storages_[static_cast<size_t>(t.storage)];
    int64_t count = 1, last = t.offset, reach = 0;
    bool empty = std::ranges::find(t.shape, 0) != t.shape.end(), overflow = false;
    for (size_t i = 0; i < t.shape.size(); ++i) {
      int64_t n = std::max<int64_t>(t.shape[i], 1);
      overflow |= __builtin_mul_overflow(count, n, &count);
      if (empty) continue;  // then strides may be anything
      overflow |= __builtin_mul_overflow(n - 1, t.strides[i], &reach);
      overflow |= __builtin_add_overflow(last, reach, &last);
    }
    check(!overflow && (empty || last < s.elements), t, "reaches beyond its storage");
    int64_t bytes = 0;
    check(empty || (!__builtin_mul_overflow(count, size_of(s.dtype), &bytes) && bytes <= budget), t,
          "makes more than 16 times the file's bytes");
    budget -= bytes;
  }
}

ParamsEntry TorchFile::tensor(const PickleNode& node, Bytes& kept) const {
  const Tensor& t = tensors_[static_cast<size_t>(node.integer)];
  const Storage& s = storages_[static_cast<size_t>(t.storage)];
  int64_t size = size_of(s.dtype), count = 1;
  bool ordered = true;
  for (size_t i = t.shape.size(); i-- > 0;) {
    ordered &= t.strides[i] == count || t.shape[i] == 1;
    count = t.shape[i] == 0 || count == 0 ? 0 : count * t.shape[i];
  }
  ParamsEntry entry{"", s.dtype, t.shape, {}};
  if (count == 0) return entry;
  ByteView data = s.data.subspan(static_cast<size_t>(t.offset * size));
  if (!ordered) kept = in_order(data, t.shape, t.strides, size);
  entry.data = ordered ? data.first(static_cast<size_t>(count * size)) : ByteView(kept);
  return entry;
}

bool TorchFile::knows(const std::string& name) const {
  for (const char* known : {kDictionary, kTensor, kTensor2, kParameter, kSize})
    if (name == known) return true;
  if (std::ranges::any_of(kStorageTypes, [&](const StorageType& t) { return name == t.name; })) return true;
  if (name.starts_with("torch.") && name.ends_with("Storage"))
    fail(text("tensors of ", name,
              " are not supported; float32, float64, float16, bfloat16, uint8, int8, int32, int64 "
              "and bool are"));
  return false;
}

uint32_t TorchFile::call(const std::string& name, uint32_t arguments) {
  const std::vector<uint32_t>& given = node(arguments).items;
  if (name == kDictionary) return make_dictionary(arguments);
  if (name == kTensor || name == kTensor2) return make_tensor(arguments);
  if (given.empty()) fail(text("a call of ", name, " lacks arguments. The file is damaged"));
  if (name == kParameter && node(given[0]).kind == Kind::tensor) return given[0];
  if (name == kSize && node(given[0]).kind == Kind::tuple) return given[0];
  fail(text("a call of ", name, " is malformed. The file is damaged"));
}

/// OrderedDict() or OrderedDict([[key, value], ...]).
uint32_t TorchFile::make_dictionary(uint32_t arguments) {
  PickleNode dict{.kind = Kind::dict};
  if (!node(arguments).items.empty())
    for (uint32_t pair : node(node(arguments).items[0]).items) {
      if (node(pair).items.size() != 2) fail("an OrderedDict is not made of pairs. The file is damaged");
      dict.items.insert(dict.items.end(), node(pair).items.begin(), node(pair).items.end());
    }
  return add(std::move(dict));
}

std::vector<int64_t> TorchFile::sizes(uint32_t i, const char* what) const {
  const PickleNode& tuple = node(i);
  if (tuple.kind != Kind::tuple || static_cast<int64_t>(tuple.items.size()) > kMaxRank)
    fail(text(what, " of a tensor must be at most ", kMaxRank, " integers. The file is damaged"));
  std::vector<int64_t> list;
  for (uint32_t n : tuple.items) {
    if (node(n).kind != Kind::integer || node(n).integer < 0)
      fail(text(what, " of a tensor must be integers that are not negative. The file is damaged"));
    list.push_back(node(n).integer);
  }
  return list;
}

uint32_t TorchFile::make_tensor(uint32_t arguments) {
  const std::vector<uint32_t>& given = node(arguments).items;
  if (given.size() < 4 || node(given[0]).kind != Kind::storage || node(given[1]).kind != Kind::integer ||
      node(given[1]).integer < 0)
    fail("a tensor is not made of a storage, an offset, a shape and strides. The file is damaged");
  Tensor t{node(given[0]).integer, node(given[1]).integer, sizes(given[2], "the shape"),
           sizes(given[3], "the strides")};
  if (t.shape.size() != t.strides.size()) fail("a tensor has another number of strides than of axes");
  tensors_.push_back(std::move(t));
  return add({.kind = Kind::tensor, .integer = static_cast<int64_t>(tensors_.size()) - 1});
}

uint32_t TorchFile::persistent(uint32_t id) {
  const std::vector<uint32_t>& parts = node(id).items;
  if (node(id).kind != Kind::tuple || parts.size() < 5 || node(parts[0]).text != "storage" ||
      node(parts[1]).kind != Kind::name || node(parts[2]).kind != Kind::text || node(parts[4]).kind != Kind::integer)
    fail("a storage is malformed. The file is damaged");
  if (parts.size() > 5 && node(parts[5]).kind != Kind::none)
    fail("storages that are views of others are not supported. Save the tensors anew with torch.save()");
  std::string key = node(parts[2]).text;
  const std::string& name = node(parts[1]).text;
  auto type = std::ranges::find_if(kStorageTypes, [&](const StorageType& t) { return name == t.name; });
  if (type == std::end(kStorageTypes)) fail(text(name, " is no type of storages. The file is damaged"));
  int64_t elements = node(parts[4]).integer, bytes = 0;
  if (elements < 0 || __builtin_mul_overflow(elements, size_of(type->dtype), &bytes) ||
      bytes > static_cast<int64_t>(bytes_.size()))
    fail(text("a storage of ", elements, " elements does not fit into the file. The file is truncated or damaged"));
  if (auto found = storage_nodes_.find(key); found != storage_nodes_.end()) {
    const Storage& s = storages_[static_cast<size_t>(node(found->second).integer)];
    if (s.dtype != type->dtype || s.elements != elements) fail(text("storage ", key, " is described in two ways"));
    return found->second;
  }
  storages_.push_back({key, type->dtype, elements, {}});
  uint32_t made = add({.kind = Kind::storage, .integer = static_cast<int64_t>(storages_.size()) - 1});
  storage_nodes_[key] = made;
  return made;
}

bool looks_like_torch(ByteView bytes) {
  return begins_with_old_magic(bytes) || text_of(bytes).starts_with("PK\x03\x04");
}

std::vector<ParamsEntry> named_tensors(const TorchFile& file, std::deque<Bytes>& kept) {
  std::vector<ParamsEntry> found;
  std::map<uint32_t, ParamsEntry> entries;  // a tensor may have several names
  size_t visits = 0;
  auto walk = [&](auto& self, uint32_t i, const std::string& name, int depth) -> void {
    TW_CHECK(depth < kMaxDepth && ++visits <= kMaxVisits && name.size() <= kMaxName, value, kWho,
             ": dictionaries and lists are nested too deeply, hold themselves, or have huge names");
    const PickleNode& n = file.node(i);
    std::string prefix = name;
    if (!prefix.empty()) prefix += '.';
    if (n.kind == Kind::tensor) {
      auto [known, is_new] = entries.try_emplace(i);
      if (is_new) {
        kept.emplace_back();
        known->second = file.tensor(n, kept.back());
      }
      found.push_back(known->second);
      found.back().name = name.empty() ? "0" : name;
    } else if (n.kind == Kind::list || n.kind == Kind::tuple) {
      for (size_t k = 0; k < n.items.size(); ++k) self(self, n.items[k], text(prefix, k), depth + 1);
    } else if (n.kind == Kind::dict) {
      for (size_t k = 0; k + 1 < n.items.size(); k += 2) {
        const PickleNode& key = file.node(n.items[k]);
        bool number = key.kind == Kind::integer;
        if (number || key.kind == Kind::text)
          self(self, n.items[k + 1], number ? text(prefix, key.integer) : prefix + key.text, depth + 1);
      }
    }
  };
  walk(walk, file.root(), "", 0);
  return found;
}

}  // namespace twibil::io
