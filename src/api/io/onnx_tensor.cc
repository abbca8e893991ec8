// SPDX-License-Identifier: Apache-2.0
// TensorProto: its elements stand as raw bytes, as packed numbers, or in another file.
#include "api/io/onnx_tensor.h"

#include <cstring>
#include <filesystem>
#include <protozero/varint.hpp>

#include "api/io/onnx_message.h"
#include "base/checked.h"

namespace twibil::io {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTypes[] = {"UNDEFINED",      "FLOAT",    "UINT8",        "INT8",           "UINT16",
                                  "INT16",          "INT32",    "INT64",        "STRING",         "BOOL",
                                  "FLOAT16",        "DOUBLE",   "UINT32",       "UINT64",         "COMPLEX64",
                                  "COMPLEX128",     "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2",
                                  "FLOAT8E5M2FNUZ", "UINT4",    "INT4",         "FLOAT4E2M1",     "FLOAT8E8M0"};

struct External {
  std::string location;
  int64_t offset = 0, length = -1;
};

/// Everything but the elements.
struct Parts {
  OnnxTensor tensor;
  std::vector<int64_t> dims;
  int64_t type = 0, raw_begin = -1, raw_length = 0;
  std::vector<std::pair<uint32_t, std::string>> numbers;  // float_data and so on, by field
  External external;
  bool is_external = false;
};

int64_t parse_number(const std::string& s, const char* what) {
  int64_t n = 0;
  for (char c : s) {
    TW_CHECK(c >= '0' && c <= '9', value, "external data: ", what, " must be a number; got '", s.substr(0, 40), "'");
    n = checked_add(checked_mul(n, 10), c - '0');
  }
  return n;
}

void add_external(External& e, const std::string& entry) {
  std::string key, word;
  for (OnnxMessage r(entry); r.next();) {
    if (r.number() == 1) key = r.string();
    else if (r.number() == 2) word = r.string();
    else r.skip();
  }
  if (key == "location") e.location = word;
  else if (key == "offset") e.offset = parse_number(word, "offset");
  else if (key == "length") e.length = parse_number(word, "length");
}

/// A packed or single list of varints.
template <class Each> void each_integer(const OnnxFields& f, Each each) {
  if (!f.is_bytes()) return each(static_cast<int64_t>(f.varint()));
  std::string bytes = f.contents();
  const char *at = bytes.data(), *end = at + bytes.size();
  while (at < end) each(static_cast<int64_t>(protozero::decode_varint(&at, end)));
}

Parts read_parts(const OnnxSource& source, int64_t begin, int64_t end) {
  Parts p;
  for (OnnxFields f(source, begin, end); f.next();) {
    switch (f.number()) {
      case 1: each_integer(f, [&](int64_t d) { p.dims.push_back(d); }); break;
      case 2: p.type = static_cast<int64_t>(f.varint()); break;
      case 3: throw_error(ErrorKind::value, "a tensor in segments is not supported");
      case 4:
      case 5:
      case 6:
      case 7:
      case 10:
      case 11:
        if (f.is_bytes()) p.numbers.emplace_back(f.number(), f.contents());
        else throw_error(ErrorKind::value, "the elements of a tensor must be packed");
        break;
      case 8: p.tensor.name = f.contents(); break;
      case 9: p.raw_begin = f.begin(), p.raw_length = f.length(); break;
      case 13: add_external(p.external, f.contents()); break;
      case 14: p.is_external = f.varint() == 1; break;
      default: break;
    }
  }
  return p;
}

/// Opens the file of an external tensor. It must lie in the folder of the model, wherever links lead.
std::unique_ptr<OnnxSource> open_external(const External& e, const std::string& folder) {
  TW_CHECK(!e.location.empty(), value, "external data: there is no location");
  TW_CHECK(e.location.find('\0') == std::string::npos, value, "external data: the location has a null character");
  fs::path path(e.location);
  TW_CHECK(path.is_relative(), value, "external data: the location must be relative to the model; got '",
           e.location.substr(0, 200), "'");
  std::error_code failed;
  fs::path root = fs::canonical(folder.empty() ? "." : folder, failed);
  TW_CHECK(!failed, os, "external data: cannot open the folder '", folder, "': ", failed.message());
  fs::path whole = fs::weakly_canonical(root / path, failed);
  TW_CHECK(!failed, os, "external data: cannot open '", e.location.substr(0, 200), "': ", failed.message());
  auto [at, rest] = std::mismatch(root.begin(), root.end(), whole.begin(), whole.end());
  TW_CHECK(at == root.end() && rest != whole.end(), value, "external data: '", e.location.substr(0, 200),
           "' lies outside of the model's folder");
  return std::make_unique<OnnxSource>(whole.string());
}

void copy_raw(const OnnxSource& from, int64_t offset, int64_t length, Value& to, int64_t bytes, const Shape& shape) {
  TW_CHECK(length == bytes, value, "a tensor of shape ", shape, " and dtype ", to.dtype(), " needs ", bytes,
           " bytes; there are ", length);
  from.read(offset, bytes, to.data);
  if (to.dtype() == DType::bool_)
    for (int64_t i = 0; i < bytes; ++i) to.data[i] = to.data[i] == std::byte{0} ? std::byte{0} : std::byte{1};
}

/// The field that holds numbers of a dtype, other than the raw one.
uint32_t field_of(DType t) {
  switch (t) {
    case DType::float32: return 4;
    case DType::float64: return 10;
    case DType::int64: return 7;
    default: return 5;
  }
}

void copy_numbers(const Parts& p, Value& to, const Shape& shape) {
  int64_t size = shape.size(), done = 0;
  uint32_t field = field_of(to.dtype());
  for (auto& [number, bytes] : p.numbers) {
    TW_CHECK(number == field, value, "the elements of a tensor of dtype ", to.dtype(), " stand in a wrong field");
    if (field == 4 || field == 10) {
      int64_t width = size_of(to.dtype()), count = static_cast<int64_t>(bytes.size()) / width;
      TW_CHECK(count * width == static_cast<int64_t>(bytes.size()) && count <= size - done, value, "a tensor of shape ",
               shape, " must have ", size, " elements; it has others");
      if (count) std::memcpy(to.data + done * width, bytes.data(), bytes.size());
      done += count;
      continue;
    }
    const char *at = bytes.data(), *end = at + bytes.size();
    while (at < end) {
      auto n = static_cast<int64_t>(protozero::decode_varint(&at, end));
      TW_CHECK(done < size, value, "a tensor of shape ", shape, " must have ", size, " elements; it has more");
      dispatch(to.dtype(), [&]<class T>() {
        if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
          reinterpret_cast<T*>(to.data)[done].bits = static_cast<uint16_t>(n);
        else if constexpr (std::is_same_v<T, bool>) reinterpret_cast<T*>(to.data)[done] = n != 0;
        else reinterpret_cast<T*>(to.data)[done] = static_cast<T>(n);
      });
      ++done;
    }
  }
  TW_CHECK(done == size, value, "a tensor of shape ", shape, " must have ", size, " elements; it has ", done);
}

}  // namespace

DType dtype_of_onnx(int64_t type) {
  switch (type) {
    case 1: return DType::float32;
    case 2: return DType::uint8;
    case 3: return DType::int8;
    case 6: return DType::int32;
    case 7: return DType::int64;
    case 9: return DType::bool_;
    case 10: return DType::float16;
    case 11: return DType::float64;
    case 16: return DType::bfloat16;
    default: return kUnknownDType;
  }
}

std::string name_of_onnx_type(int64_t type) {
  constexpr auto kCount = static_cast<int64_t>(std::size(kTypes));
  return type >= 0 && type < kCount ? std::string(kTypes[type]) : text("number ", type);
}

OnnxTensor read_onnx_tensor(const OnnxSource& source, int64_t begin, int64_t end, const std::string* folder) {
  Parts p = read_parts(source, begin, end);
  DType t = dtype_of_onnx(p.type);
  for (int64_t d : p.dims) TW_CHECK(d >= 0, value, "a tensor has the negative size ", d);
  if (t == kUnknownDType) {
    p.tensor.refused = text("dtype ", name_of_onnx_type(p.type), " is not supported");
    return std::move(p.tensor);
  }
  Shape shape{std::span<const int64_t>(p.dims)};
  int64_t bytes = checked_mul(shape.size(), size_of(t));
  // Nothing is allocated for a size that the file does not hold.
  if (p.is_external) {
    TW_CHECK(folder, value, "external data: a model that was read from memory cannot have any");
    std::unique_ptr<OnnxSource> file = open_external(p.external, *folder);
    int64_t length = p.external.length < 0 ? bytes : p.external.length;
    bool fits = p.external.offset <= file->size() && length <= file->size() - p.external.offset;
    TW_CHECK(fits, value, "external data: '", file->name(), "' has ", file->size(), " bytes; ", length,
             " are needed from offset ", p.external.offset);
    TW_CHECK(length == bytes, value, "a tensor of shape ", shape, " and dtype ", t, " needs ", bytes,
             " bytes; there are ", length);
    p.tensor.value = Val::adopt(new_value(t, shape));
    copy_raw(*file, p.external.offset, length, *p.tensor.value, bytes, shape);
    return std::move(p.tensor);
  }
  int64_t held = p.raw_begin >= 0 ? p.raw_length : 0, most = held;
  for (auto& [number, content] : p.numbers)
    most = checked_add(most, checked_mul(static_cast<int64_t>(content.size()), 8));
  TW_CHECK(bytes <= most, value, "a tensor of shape ", shape, " and dtype ", t, " needs ", bytes, " bytes; there are ",
           p.raw_begin >= 0 ? held : most);
  p.tensor.value = Val::adopt(new_value(t, shape));
  if (p.raw_begin >= 0) copy_raw(source, p.raw_begin, p.raw_length, *p.tensor.value, bytes, shape);
  else copy_numbers(p, *p.tensor.value, shape);
  return std::move(p.tensor);
}

}  // namespace twibil::io
