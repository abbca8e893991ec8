// SPDX-License-Identifier: Apache-2.0
// Attributes of operators: plain structs described by a table of fields, from which come parsing, printing,
// signatures and documentation in every front end.
#pragma once
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "base/scalar.h"

namespace twibil {

/// A short list kept in place, so that attributes stay trivially copyable.
template <class T, int N> struct FixedList {
  T items[N] = {};
  int32_t count = 0;
  constexpr FixedList() = default;
  constexpr FixedList(std::initializer_list<T> list) {
    for (T v : list) items[count++] = v;
  }
  explicit FixedList(std::span<const T> list) {
    for (T v : list) push_back(v);
  }
  void push_back(T v) {
    TW_CHECK(count < N, value, "a list attribute holds at most ", N, " values");
    items[count++] = v;
  }
  constexpr int size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr T operator[](int i) const { return items[i]; }
  constexpr T& operator[](int i) { return items[i]; }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
  std::span<const T> span() const { return {items, static_cast<size_t>(count)}; }
  static constexpr int capacity = N;
};
using IntList = FixedList<int64_t, 16>;
inline constexpr int64_t kNoInteger = INT64_MIN;  // "None" within a list of integers
using DoubleList = FixedList<double, 32>;

/// A value or None. Trivially copyable, unlike what std::optional promises for all of its uses.
template <class T> struct Maybe {
  T value{};
  bool has = false;
  constexpr Maybe() = default;
  constexpr Maybe(T v) : value(v), has(true) {}
  constexpr Maybe(std::nullopt_t) {}
  constexpr explicit operator bool() const { return has; }
  constexpr const T& operator*() const { return value; }
  constexpr T value_or(T other) const { return has ? value : other; }
};

/// One of a few words ("max|avg|sum"), stored as its position.
struct Choice {
  uint8_t index = 0;
  constexpr Choice() = default;
  constexpr Choice(int i) : index(static_cast<uint8_t>(i)) {}
  constexpr operator int() const { return index; }
};

struct ShortText {
  char chars[128] = {};
  constexpr ShortText() = default;
  constexpr ShortText(const char* s) {
    int i = 0;
    for (; s[i]; ++i) chars[i] = s[i];
  }
  std::string_view view() const { return chars; }
};

enum class AttrKind : uint8_t {
  boolean,
  integer,
  real,
  dtype,
  scalar,
  int_list,
  real_list,
  choice,
  text,
  maybe_boolean,
  maybe_integer,
  maybe_real,
  maybe_dtype,
  maybe_scalar,
  maybe_int_list
};
template <class T> struct AttrKindOf;
template <> struct AttrKindOf<bool> { static constexpr auto kind = AttrKind::boolean; };
template <> struct AttrKindOf<int64_t> { static constexpr auto kind = AttrKind::integer; };
template <> struct AttrKindOf<double> { static constexpr auto kind = AttrKind::real; };
template <> struct AttrKindOf<DType> { static constexpr auto kind = AttrKind::dtype; };
template <> struct AttrKindOf<Scalar> { static constexpr auto kind = AttrKind::scalar; };
template <> struct AttrKindOf<IntList> { static constexpr auto kind = AttrKind::int_list; };
template <> struct AttrKindOf<DoubleList> { static constexpr auto kind = AttrKind::real_list; };
template <> struct AttrKindOf<Choice> { static constexpr auto kind = AttrKind::choice; };
template <> struct AttrKindOf<ShortText> { static constexpr auto kind = AttrKind::text; };
template <> struct AttrKindOf<Maybe<bool>> { static constexpr auto kind = AttrKind::maybe_boolean; };
template <> struct AttrKindOf<Maybe<int64_t>> { static constexpr auto kind = AttrKind::maybe_integer; };
template <> struct AttrKindOf<Maybe<double>> { static constexpr auto kind = AttrKind::maybe_real; };
template <> struct AttrKindOf<Maybe<DType>> { static constexpr auto kind = AttrKind::maybe_dtype; };
template <> struct AttrKindOf<Maybe<Scalar>> { static constexpr auto kind = AttrKind::maybe_scalar; };
template <> struct AttrKindOf<Maybe<IntList>> { static constexpr auto kind = AttrKind::maybe_int_list; };

struct Field {
  const char* name = nullptr;
  AttrKind kind = AttrKind::boolean;
  uint16_t offset = 0;
  const char* doc = nullptr;
  const char* choices = nullptr;  // "max|avg|sum", for Choice
  bool required = false;          // has no default: the caller must give it
  bool keyword_only = false;      // not accepted by position
  const char* renames = nullptr;  // other spellings, separated by blanks ("dim num_args")
  bool open_ends = false;         // a list may hold None (kNoInteger)
};
/// A field of struct A: TW_ATTR(SoftmaxAttrs, axis, "Axis that sums to one.", .required = true)
#define TW_ATTR(A, member, text, ...)                                                                        \
  ::twibil::Field {                                                                                          \
    .name = #member, .kind = ::twibil::AttrKindOf<decltype(A::member)>::kind, .offset = offsetof(A, member), \
    .doc = text, ##__VA_ARGS__                                                                               \
  }

/// All that front ends know about an operator's attributes.
struct AttrSchema {
  const Field* fields = nullptr;
  int count = 0;
  uint16_t size = 0;  // 0 for operators without attributes
  const void* defaults = nullptr;
  std::span<const Field> span() const { return {fields, static_cast<size_t>(count)}; }
};
template <class A> inline constexpr A kDefaults{};
template <class A, size_t N> constexpr AttrSchema schema(const Field (&fields)[N]) {
  static_assert(std::is_trivially_copyable_v<A>, "attributes are plain data");
  static_assert(sizeof(A) < 2048);
  return {fields, static_cast<int>(N), sizeof(A), &kDefaults<A>};
}

/// Text of one attribute, as it stands in files and messages: "(3, 3)", "None", "0.5", "max".
TW_API std::string print_attr(const Field& field, const void* attrs);
/// Reads text into one attribute; forgiving about spelling ("(3,3)", "[3, 3]", "3", "(3L,)", "True", "1").
/// Throws a value error that names the field.
TW_API void parse_attr(const Field& field, void* attrs, std::string_view text);
/// Position of `word` in "max|avg|sum"; a value error lists the words otherwise.
int find_choice(const Field& field, std::string_view word);
/// Whether `name` is one of the words, which are separated by blanks; null holds none.
bool is_among(const char* words, std::string_view name);
/// Finds a field by name or rename; null when there is none.
TW_API const Field* find_field(const AttrSchema& schema, std::string_view name);

template <class T> T& attr_at(void* attrs, const Field& f) {
  return *reinterpret_cast<T*>(static_cast<std::byte*>(attrs) + f.offset);
}
template <class T> const T& attr_at(const void* attrs, const Field& f) {
  return *reinterpret_cast<const T*>(static_cast<const std::byte*>(attrs) + f.offset);
}

}  // namespace twibil
