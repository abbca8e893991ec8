// SPDX-License-Identifier: Apache-2.0
#include "api/io/stored_value.h"

#include <cstring>

#include "api/io/params_file.h"
#include "ir/apply.h"
#include "ir/registry.h"
#include "runtime/launch.h"

namespace twibil::io {

namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(ByteView bytes) {
  std::string s;
  s.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    unsigned v = 0;
    for (size_t k = 0; k < 3; ++k) v = v << 8 | (i + k < bytes.size() ? static_cast<unsigned>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) s += i + k > bytes.size() ? '=' : kDigits[v >> (6 * (3 - k)) & 63];
  }
  return s;
}

Bytes from_base64(std::string_view s) {
  TW_CHECK(s.size() % 4 == 0, value, "an array in base64 is truncated");
  Bytes bytes;
  bytes.reserve(s.size() / 4 * 3);
  for (size_t i = 0; i < s.size(); i += 4) {
    bool last = i + 4 == s.size();
    size_t filled = last && s[i + 2] == '=' && s[i + 3] == '=' ? 2 : last && s[i + 3] == '=' ? 3 : 4;
    unsigned v = 0;
    for (size_t k = 0; k < 4; ++k) {
      const char* digit = k < filled && s[i + k] ? std::strchr(kDigits, s[i + k]) : kDigits;
      TW_CHECK(digit, value, "an array in base64 holds a character that is no digit of it");
      v = v << 6 | static_cast<unsigned>(digit - kDigits);
    }
    for (size_t k = 0; k + 1 < filled; ++k) bytes.push_back(static_cast<std::byte>(v >> (16 - 8 * k) & 255));
  }
  return bytes;
}

// MXNet's numbers in the order of DType.
constexpr int kTypeFlags[kDTypeCount] = {7, 5, 3, 4, 6, 2, 12, 0, 1};

}  // namespace

int type_flag(DType t) { return kTypeFlags[static_cast<int>(t)]; }

DType dtype_of_flag(int64_t flag) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kTypeFlags[i] == flag) return static_cast<DType>(i);
  throw_error(ErrorKind::value, text("there is no dtype with the number ", flag));
}

std::string store_value(const Val& v) {
  Val whole = v->has(kStrided | kView) ? apply(op_with_role(Role::copy), {v}) : v;
  wait_to_read(*whole);
  ByteView bytes(whole->data, static_cast<size_t>(whole->size() * size_of(whole->dtype())));
  return to_base64(format_params({{"", whole->dtype(), {whole->shape().begin(), whole->shape().end()}, bytes}}));
}

Val restore_value(std::string_view stored) {
  Bytes bytes = from_base64(stored);
  ParamsFile file = parse_params(bytes, "an array in an attribute");
  TW_CHECK(file.entries.size() == 1 && !file.entries[0].none, value, "an attribute must hold one array; it holds ",
           file.entries.size());
  const ParamsEntry& e = file.entries[0];
  TW_CHECK(e.shape.size() <= static_cast<size_t>(kMaxRank), value, "an array has ", e.shape.size(), " axes; at most ",
           kMaxRank, " are possible");
  Val v = Val::adopt(new_value(e.dtype, e.shape));
  TW_ASSERT(static_cast<size_t>(v->size() * size_of(e.dtype)) == e.data.size());
  if (!e.data.empty()) std::memcpy(v->data, e.data.data(), e.data.size());
  return v;
}

Scalar read_number(const Value& weak) {
  TW_ASSERT(weak.has(kWeak));
  if (is_floating(weak.dtype())) return Scalar(*reinterpret_cast<const double*>(weak.data));
  if (weak.dtype() == DType::bool_) return Scalar(*reinterpret_cast<const bool*>(weak.data));
  return Scalar(*reinterpret_cast<const int64_t*>(weak.data));
}

namespace {
struct NumberAttr {
  Scalar number;
};
constexpr Field kNumberField = TW_ATTR(NumberAttr, number, "A constant.");
}  // namespace

std::string print_number(const Value& weak) {
  NumberAttr a{read_number(weak)};
  return print_attr(kNumberField, &a);
}

Val parse_number(std::string_view s) {
  NumberAttr a;
  parse_attr(kNumberField, &a, s);
  if (a.number.is_boolean()) return Val::adopt(new_weak_bool(a.number.integer != 0));
  return a.number.is_real() ? Val(a.number.real) : Val(a.number.integer);
}

}  // namespace twibil::io
