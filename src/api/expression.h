// SPDX-License-Identifier: Apache-2.0
// Behind twibil/expr.h: the nodes of an expression, and the loop that computes it.
//
// Shapes are broadcast, and the loop runs over blocks of 256 elements: where a block of an array lies as the loop needs
// it, it is read where it is, else it is copied to a buffer first (steps, broadcasting, other dtypes).
#pragma once
#include <tuple>

#include "base/parallel.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "runtime/launch.h"
#include "twibil/array.h"

namespace twibil::expression {

inline constexpr int64_t kBlock = 256;

/// What a tree of nodes says about itself: its arrays in the order in which the loop reads them, and its dtype.
struct Facts {
  std::vector<Array> arrays;
  bool real_number = false;  // holds 0.5
};

template <class E> struct Node {  // what every node is derived from
  operator Array() const;
  const E& self() const { return static_cast<const E&>(*this); }
};
template <class E>
concept IsNode = std::is_base_of_v<Node<E>, E>;

template <class T> struct BoundNumber {
  T value;
  T at(int64_t) const { return value; }
};
template <class T> struct BoundArray {
  const T* elements;
  T at(int64_t i) const { return elements[i]; }
};
template <class F, class... B> struct BoundApply {
  const F& f;
  std::tuple<B...> operands;
  auto at(int64_t i) const {
    return std::apply([&](const auto&... o) { return f(o.at(i)...); }, operands);
  }
};

struct Number : Node<Number> {
  double real;
  int64_t integer;
  bool is_real;
  template <class T>
  explicit Number(T v)
      : real(static_cast<double>(v)), integer(static_cast<int64_t>(v)), is_real(std::is_floating_point_v<T>) {}
  static constexpr bool kMask = false, kFloating = false;
  void collect(Facts& f) const { f.real_number |= is_real; }
  template <class T> auto bind(const T* const*&) const {
    return BoundNumber<T>{is_real ? static_cast<T>(real) : static_cast<T>(integer)};
  }
};

template <class E> void evaluate(const Node<E>& e, Array& out);

struct Operand : Node<Operand> {  // an array
  Array array;
  explicit Operand(Array a) : array(std::move(a)) {}
  Operand(const Operand&) = default;
  static constexpr bool kMask = false, kFloating = false;
  void collect(Facts& f) const { f.arrays.push_back(array); }
  template <class T> auto bind(const T* const*& next) const { return BoundArray<T>{*next++}; }
  /// Writes into the array: expr(view) = ...
  template <class X> const Operand& operator=(const X& x) const;
  const Operand& operator=(const Operand& o) const { return operator=<Operand>(o); }
  template <class X> const Operand& operator+=(const X& x) const { return *this = *this + x; }
  template <class X> const Operand& operator-=(const X& x) const { return *this = *this - x; }
  template <class X> const Operand& operator*=(const X& x) const { return *this = *this * x; }
  template <class X> const Operand& operator/=(const X& x) const { return *this = *this / x; }
};

template <class F, class... E> struct Apply : Node<Apply<F, E...>> {
  F f;
  std::tuple<E...> operands;
  Apply(F function, E... e) : f(std::move(function)), operands(std::move(e)...) {}
  template <class> using Element = float;
  static constexpr bool kMask = std::is_same_v<std::invoke_result_t<const F&, Element<E>...>, bool>;
  static constexpr bool kFloating = requires { F::kFloating; }
  || (E::kFloating || ...);  // needs floats
  void collect(Facts& facts) const {
    std::apply([&](const auto&... e) { (e.collect(facts), ...); }, operands);
  }
  template <class T> auto bind(const T* const*& next) const {
    // Braces: the operands are bound in their order, which is that of collect().
    return std::apply(
        [&](const auto&... e) {
          return BoundApply<F, decltype(e.template bind<T>(next))...>{f, std::tuple{e.template bind<T>(next)...}};
        },
        operands);
  }
};

template <class X> auto as_node(const X& x) {
  if constexpr (std::is_arithmetic_v<X>) return Number(x);
  else if constexpr (std::is_same_v<X, Array>) return Operand(x);
  else return x;
}
template <class X>
concept IsOperand = IsNode<X> || std::is_same_v<X, Array> || std::is_arithmetic_v<X>;
template <class F, class... X> auto make(F f, const X&... x) {
  return Apply<F, decltype(as_node(x))...>(std::move(f), as_node(x)...);
}

// ---- the loop -----------------------------------------------------------------------------------------------------

/// The sizes of the loop and each operand's strides in it (the result is operand 0), with neighbours joined where that
/// changes nothing: contiguous arrays of one shape become one row.
struct Loop {
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> strides;  // [operand][axis]

  Loop(const Array& out, const std::vector<Array>& in) {
    Shape shape = out.shape();
    std::vector<std::vector<int64_t>> full{aligned(out, shape)};
    for (const Array& a : in) full.push_back(aligned(a, shape));
    strides.resize(full.size());
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      bool join = !dims.empty();
      for (size_t k = 0; k < full.size() && join; ++k)
        join = strides[k].back() == full[k][static_cast<size_t>(axis)] * shape[axis];
      if (join) dims.back() *= shape[axis];
      else dims.push_back(shape[axis]);
      for (size_t k = 0; k < full.size(); ++k) {
        if (join) strides[k].back() = full[k][static_cast<size_t>(axis)];
        else strides[k].push_back(full[k][static_cast<size_t>(axis)]);
      }
    }
    if (!dims.empty()) return;
    dims = {1};
    for (auto& s : strides) s = {0};
  }
  int64_t row_length() const { return dims.back(); }
  int64_t step(size_t k) const { return strides[k].back(); }
  /// Where row `row` of operand k begins, in elements.
  int64_t offset(size_t k, int64_t row) const {
    int64_t at = 0;
    for (size_t axis = dims.size() - 1; axis-- > 0; row /= dims[axis]) at += row % dims[axis] * strides[k][axis];
    return at;
  }

 private:
  static std::vector<int64_t> aligned(const Array& a, const Shape& to) {
    int64_t own[kMaxRank] = {};
    a.value()->copy_strides(own);
    std::vector<int64_t> s(static_cast<size_t>(to.rank()));
    int shift = to.rank() - a.rank();
    for (int i = 0; i < a.rank(); ++i) s[static_cast<size_t>(i + shift)] = a.shape()[i] == 1 ? 0 : own[i];
    return s;
  }
};

/// One element in another type: integers wrap around, and floats beyond all integers become the lowest.
template <class To, class From> To convert(From v) {
  if constexpr (std::is_same_v<To, From>) return v;
  else if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>)
    return convert<To>(static_cast<float>(v));
  else if constexpr (std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>) return To(static_cast<float>(v));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>)
    return static_cast<To>(v > -0x1p63 && v < 0x1p63 ? static_cast<int64_t>(v) : INT64_MIN);
  else return static_cast<To>(v);
}
/// `n` elements, `step` apart, from any dtype or to it.
template <class T> void gather(const Value& v, int64_t at, int64_t step, int64_t n, T* to) {
  dispatch(v.dtype(), [&]<class From>() {
    const From* from = reinterpret_cast<const From*>(v.data) + at;
    for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(from[i * step]);
  });
}
template <class T> void scatter(const T* from, Value& v, int64_t at, int64_t step, int64_t n) {
  dispatch(v.dtype(), [&]<class To>() {
    To* to = reinterpret_cast<To*>(v.data) + at;
    for (int64_t i = 0; i < n; ++i) to[i * step] = convert<To>(from[i]);
  });
}

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"  // loops that call the C library are not vectorised, and need not be
#endif
/// One block: `to` overlaps nothing that is read. The whole blocks have a length that the compiler knows.
template <class T, class Bound> void compute(const Bound& e, T* __restrict to, int64_t n) {
  if (n == kBlock) {
    // Once this is inlined, what __restrict says is forgotten; without the pragma the loop takes three times as long.
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (int64_t i = 0; i < kBlock; ++i) to[i] = static_cast<T>(e.at(i));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(e.at(i));
  }
}

template <class T, class E> void run(const E& e, const Array& out, const std::vector<Array>& in, bool in_place) {
  const Loop loop(out, in);
  const size_t n = in.size();
  Value& y = *out.value();
  const bool direct = !in_place && y.dtype() == dtype_of<T> && loop.step(0) == 1;
  const int64_t per_row = (loop.row_length() + kBlock - 1) / kBlock, blocks = out.size() ? per_row : 0;
  const int64_t rows = out.size() / std::max<int64_t>(loop.row_length(), 1);
  parallel_for(blocks * rows, 128, [&](int64_t begin, int64_t end) {
    std::vector<T> buffers((n + 1) * kBlock);
    std::vector<const T*> at(n);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t row = b / per_row, column = b % per_row * kBlock,
                    length = std::min(kBlock, loop.row_length() - column);
      for (size_t k = 0; k < n; ++k) {
        const Value& x = *in[k].value();
        const int64_t step = loop.step(k + 1), start = loop.offset(k + 1, row) + column * step;
        if (x.dtype() == dtype_of<T> && step == 1) {
          at[k] = reinterpret_cast<const T*>(x.data) + start;
          continue;
        }
        T* buffer = &buffers[(k + 1) * kBlock];
        at[k] = buffer;
        if (step == 0 && b > begin && column > 0) continue;  // the same element as in the row's block before
        gather(x, start, step, step == 0 ? kBlock : length, buffer);
      }
      const T* const* next = at.data();
      const int64_t start = loop.offset(0, row) + column * loop.step(0);
      T* to = direct ? reinterpret_cast<T*>(y.data) + start : buffers.data();
      compute<T>(e.template bind<T>(next), to, length);
      if (!direct) scatter(to, y, start, loop.step(0), length);
    }
  });
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

template <class E> void evaluate(const Node<E>& e, Array& out) {
  Facts facts;
  e.self().collect(facts);
  Shape shape;
  DType dtype = kUnknownDType;
  for (Array& a : facts.arrays) {
    TW_CHECK(a, value, "expr: an array is empty");
    const Value& v = *a.value();
    TW_CHECK(!v.has(kTraced), runtime,
             "expr: expressions run at once, so they cannot stand in a traced function; use operators there");
    TW_CHECK(!modes.recording || !v.node, runtime,
             "expr: expressions are not recorded, and this array has a gradient; use operators, register_pointwise(), "
             "or NoGradient");
    shape = dtype == kUnknownDType ? a.shape() : broadcast(shape, a.shape(), "expr");
    dtype = dtype == kUnknownDType ? a.dtype() : promote(dtype, a.dtype());
  }
  if (dtype == kUnknownDType && out) shape = Shape(), dtype = out.dtype();  // numbers alone fill the array
  TW_CHECK(dtype != kUnknownDType, value, "expr: an expression needs an array");
  if ((E::kFloating || facts.real_number) && !is_floating(dtype)) dtype = default_float();
  if (!out) out = Array(Val::adopt(new_value(E::kMask ? DType::bool_ : dtype, shape)));
  Value& y = *out.value();
  TW_CHECK(broadcasts_to(shape, out.shape()), value, "expr: the result has shape ", shape,
           ", which does not fit into an array of shape ", out.shape());
  TW_CHECK(!y.has(kTraced | kReadOnly), value, "expr: this array cannot be written");
  TW_CHECK(!modes.recording || !y.node, runtime, "expr: an array with a gradient cannot be written while recording");
  bool in_place = false;
  for (Array& a : facts.arrays) {
    Value& x = *a.value();
    if (x.root != y.root) continue;
    int64_t own[kMaxRank] = {}, other[kMaxRank] = {};
    x.copy_strides(own), y.copy_strides(other);
    bool same = x.data == y.data && a.shape() == out.shape() && std::equal(own, own + a.rank(), other);
    in_place |= same;
    if (!same) a = a.copy();  // it would be overwritten before it is read
  }
  for (const Array& a : facts.arrays) twibil::wait_to_read(*a.value());
  twibil::wait_to_write(y);
  if (dtype == DType::float64) run<double>(e.self(), out, facts.arrays, in_place);
  else if (is_floating(dtype)) run<float>(e.self(), out, facts.arrays, in_place);
  else if constexpr (!E::kFloating) {
    if (dtype == DType::int64) run<int64_t>(e.self(), out, facts.arrays, in_place);
    else run<int32_t>(e.self(), out, facts.arrays, in_place);
  }
  bump_version(&y);
}
template <class E> Node<E>::operator Array() const {
  Array out;
  evaluate(*this, out);
  return out;
}
template <class X> const Operand& Operand::operator=(const X& x) const {
  Array out = array;
  evaluate(as_node(x), out);
  return *this;
}

}  // namespace twibil::expression
