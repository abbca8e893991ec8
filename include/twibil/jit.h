// SPDX-License-Identifier: Apache-2.0
// Both ways of programming in one program: plain functions on arrays that are traced and compiled at their first call,
// and functions of the host inside graphs.
//
//   auto f = jit([](const Array& x, const Array& y) { return op::tanh(x * y) + 1; });
//   Array z = f(a, b);   // traced and compiled once per shape, dtype and mode
//
//   HostFunction look = {.name = "look", .run = [](const Arrays& in) { std::puts(to_string(in[0]).c_str()); return in;
//   }}; Symbol s = host_call(look, {x});
#pragma once
#include <functional>

#include "twibil/symbol.h"

namespace twibil {

using Arrays = std::vector<Array>;

/// A function that is traced when it meets a new signature. It must not look at elements, and runs only to be traced:
/// arrays of the outside that it reads are read anew at each call, arrays that it writes are written at each call.
/// Copies share what was compiled; any number of threads may call one.
class Jit {
 public:
  explicit Jit(std::function<Arrays(const Arrays&)> body, const CompileSettings& settings = {});
  Arrays call(const Arrays& arguments) const;
  int num_traces() const;
  std::string explain() const;  // of the last call on this or any copy

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace detail {
/// The function's parameters, to call it with the elements of a list.
template <class F> struct Call : Call<decltype(&F::operator())> {};
template <class R, class C, class... A> struct Call<R (C::*)(A...) const> {
  using Result = R;
  template <class F> static Arrays with(const F& f, const Arrays& x) {
    TW_CHECK(x.size() == sizeof...(A), type, "jit: the function takes ", sizeof...(A), " arrays; got ", x.size());
    return [&]<size_t... i>(std::index_sequence<i...>)->Arrays {
      if constexpr (std::is_same_v<R, Arrays>) return f(x[i]...);
      else return {f(x[i]...)};
    }
    (std::index_sequence_for<A...>());
  }
};
}  // namespace detail

/// jit() of a lambda, called as the lambda is.
template <class F> class JitFunction : public Jit {
 public:
  explicit JitFunction(F f, const CompileSettings& settings = {})
      : Jit([f = std::move(f)](const Arrays& x) { return detail::Call<F>::with(f, x); }, settings) {}
  template <class... A> typename detail::Call<F>::Result operator()(const A&... arrays) const {
    Arrays results = call({Array(arrays)...});
    if constexpr (std::is_same_v<typename detail::Call<F>::Result, Arrays>) return results;
    else return std::move(results[0]);
  }
};
/// settings.donate: positions as text, "0" for the first argument.
template <class F> JitFunction<F> jit(F f, const CompileSettings& settings = {}) {
  return JitFunction<F>(std::move(f), settings);
}

/// A function on arrays that a graph can hold. It runs on the thread that runs the graph.
struct HostFunction {
  std::string name;
  std::function<Arrays(const Arrays& in)> run;
  /// Signatures of the results; none: one result like the first input.
  std::function<std::vector<Sig>(const std::vector<Sig>& in)> infer = {};
  /// Gradients of the inputs (an empty Array where there is none), from inputs, results and gradients of the results.
  std::function<Arrays(const Arrays& in, const Arrays& out, const Arrays& head_grads)> gradient = {};
};
/// On arrays it runs now, and is on the tape; inside jit it becomes part of the graph.
Arrays host_call(const HostFunction& f, const Arrays& in);
/// On symbols it makes a node with `results` outputs.
Symbol host_call(const HostFunction& f, const std::vector<Symbol>& in, int results = 1);

}  // namespace twibil
