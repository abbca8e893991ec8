// SPDX-License-Identifier: Apache-2.0
// Expression templates: arithmetic on arrays that the C++ compiler turns into one loop, with no array in between.
//
//   Array out = expr(a) * b + 1.0f;            // a new array
//   expr(view) = tanh(expr(a)) * 0.5 + b;      // into one that exists, views too; += -= *= /= as well
//   Array y = map([](auto x, auto y) { return x > y ? x * x : y; }, a, b);   // any function of elements
//
// An expression is a type that says what to do; nothing happens before it becomes an array. Large arrays use all
// threads. dtypes follow the library's rules; the loop exists for float, double, int32 and int64, others compute in the
// next of these. Functions are the C++ library's, one element at a time: where exp and its like make up the time,
// operators are faster. Expressions are not recorded for gradients; register_pointwise() makes operators that are.
#pragma once
#include <cmath>

#include "api/expression.h"

namespace twibil::expression {

/// Integers are computed without sign, so that they wrap around.
template <class T, class U> struct Arithmetic {
  using Common = std::common_type_t<T, U>;
  using Type = typename std::conditional_t<std::is_integral_v<Common>, std::make_unsigned<decltype(+Common())>,
                                           std::type_identity<Common>>::type;
};
#define TW_EXPR_OPERATOR(name, sign, Computed, ...)                  \
  struct name {                                                      \
    __VA_ARGS__                                                      \
    template <class T, class U> auto operator()(T a, U b) const {    \
      using C = typename Arithmetic<T, U>::Computed;                 \
      auto y = static_cast<C>(a) sign static_cast<C>(b);             \
      if constexpr (std::is_same_v<decltype(y), bool>) return y;     \
      else return static_cast<typename Arithmetic<T, U>::Common>(y); \
    }                                                                \
  };                                                                 \
  template <IsOperand A, IsOperand B>                                \
  requires(IsNode<A> || IsNode<B>) auto operator sign(const A& a, const B& b) { return make(name(), a, b); }
TW_EXPR_OPERATOR(Plus, +, Type)
TW_EXPR_OPERATOR(Minus, -, Type)
TW_EXPR_OPERATOR(Times, *, Type)
TW_EXPR_OPERATOR(Over, /, Common, static constexpr bool kFloating = true;)
TW_EXPR_OPERATOR(Less, <, Common)
TW_EXPR_OPERATOR(LessEqual, <=, Common)
TW_EXPR_OPERATOR(Greater, >, Common)
TW_EXPR_OPERATOR(GreaterEqual, >=, Common)
#undef TW_EXPR_OPERATOR

/// Functions of the C++ library, element by element.
#define TW_EXPR_FUNCTION(Name, name)                                    \
  struct Name {                                                         \
    static constexpr bool kFloating = true;                             \
    template <class T> T operator()(T v) const { return std::name(v); } \
  };                                                                    \
  template <IsNode E> auto name(const E& x) { return make(Name(), x); }
TW_EXPR_FUNCTION(Exp, exp)
TW_EXPR_FUNCTION(Log, log)
TW_EXPR_FUNCTION(Log1p, log1p)
TW_EXPR_FUNCTION(Sqrt, sqrt)
TW_EXPR_FUNCTION(Sin, sin)
TW_EXPR_FUNCTION(Cos, cos)
TW_EXPR_FUNCTION(Tanh, tanh)
#undef TW_EXPR_FUNCTION

/// Any function of elements: f(T...) with T float, double, int32_t or int64_t.
template <class F, IsOperand... X> auto map(F f, const X&... x) { return make(std::move(f), x...); }
template <IsNode E> auto operator-(const E& x) { return 0 - x; }
template <IsNode E> auto abs(const E& x) {
  return map([](auto v) { return v < decltype(v){} ? static_cast<decltype(v)>(-v) : v; }, x);
}
template <IsOperand A, IsOperand B>
requires(IsNode<A> || IsNode<B>) auto max(const A& a, const B& b) {
  return map([](auto x, auto y) { return x > y || x != x ? x : y; }, a, b);
}
template <IsOperand A, IsOperand B>
requires(IsNode<A> || IsNode<B>) auto min(const A& a, const B& b) {
  return map([](auto x, auto y) { return x < y || x != x ? x : y; }, a, b);
}
/// Where the condition is true the first, elsewhere the second.
template <IsNode C, IsOperand A, IsOperand B> auto select(const C& condition, const A& a, const B& b) {
  return map([](auto c, auto x, auto y) { return c ? x : y; }, condition, a, b);
}

}  // namespace twibil::expression

namespace twibil {
/// An array as the beginning of an expression.
inline expression::Operand expr(const Array& a) { return expression::Operand(a); }
using expression::map;
}  // namespace twibil
