// SPDX-License-Identifier: Apache-2.0
// Two operators of a user: a formula, and one with attributes, a kernel and a gradient of its own. The program
// custom_operator.cc links this file; as a library it is loaded by load_operators() or, in Python, mx.library.load().
#include <cmath>

#include "twibil/operator.h"
#include "twibil/ops.h"

namespace my {

using namespace twibil;

// ---- a formula: recorded at compile time, fused with its neighbours, differentiated ----

inline constexpr Program kMish = record([](Expr x) { return x * tanh(softplus(x)); });

TW_OP(my_mish) = whole({
    .name = "my_mish",
    .doc = "x * tanh(softplus(x)) for each element (Misra, 2019).",
    .names = {"npx.my_mish", "nd.my_mish"},
    .in = {{{.name = "x"}}},
    .program = &kMish,
    .rule = Rule::floating,
    .types = kFloats,
    .needs = kAllInputs,
    .auto_grad = true,
    .inplace = {{{0, 0}}},
    .samples = {{{.in = {{{3, 4}}}}}},
});

// ---- a kernel: pairs of neighbours along the last axis are turned by an angle each ----

struct RotateAttrs {
  bool inverse = false;
};
inline constexpr Field kRotateFields[] = {TW_ATTR(RotateAttrs, inverse, "Turns back.")};

static void infer_rotate(const RotateAttrs&, SigsIn in, SigsOut out) {
  int64_t last = in[0].rank() ? in[0].shape[in[0].rank() - 1] : 0;
  TW_CHECK(last > 0 && last % 2 == 0, value, "my_rotate: the last axis of x must have an even size; got shape ",
           in[0].shape);
  TW_CHECK(in[1].rank() == 1 && in[1].shape[0] == last / 2, value, "my_rotate: angle must have shape [", last / 2,
           "]; got ", in[1].shape);
  out[0] = in[0];
}

template <class T> static void rotate(const RotateAttrs& a, Call& c) {
  const T *x = c.in[0].as<T>(), *angle = c.in[1].as<T>();
  T* y = c.out[0].as<T>();
  int64_t n = c.in[1].size, rows = n ? c.in[0].size / (2 * n) : 0;
  parallel_for(rows, 256, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t i = 0; i < n; ++i) {
        T cos = std::cos(angle[i]), sin = a.inverse ? -std::sin(angle[i]) : std::sin(angle[i]);
        const T* p = x + (r * n + i) * 2;
        T* q = y + (r * n + i) * 2;
        q[0] = cos * p[0] - sin * p[1];
        q[1] = sin * p[0] + cos * p[1];
      }
  });
}

// A gradient is written with operators, so it runs on arrays and in graphs, and has a gradient itself.
static Vals rotate_gradient(const RotateAttrs& a, const Grad& g);

TW_OP(my_rotate) = whole({
    .name = "my_rotate",
    .doc = "Turns pairs of neighbours along the last axis by an angle each, as rotary embeddings do.",
    .names = {"npx.my_rotate"},
    .attrs = schema<RotateAttrs>(kRotateFields),
    .in = {{{.name = "x"}, {.name = "angle", .doc = "One per pair."}}},
    .infer = infer_rule<RotateAttrs>([](auto& a, SigsIn in, SigsOut out) { infer_rotate(a, in, out); }),
    .types = bit_of(DType::float32) | bit_of(DType::float64),
    .kernel = cpu_rule<RotateAttrs>([](auto& a, Call& c) {
      c.out[0].dtype == DType::float64 ? rotate<double>(a, c) : rotate<float>(a, c);
    }),
    .same_dtype = true,
    .needs = X1 | Y0,
    .grad = grad_rule<RotateAttrs>([](auto& a, const Grad& g) -> Vals { return rotate_gradient(a, g); }),
    .samples = {{{.in = {{{2, 3, 4}, {2}}}}, {.in = {{{5, 6}, {3}}}, .attrs = "inverse=True"}}},
});

static Vals rotate_gradient(const RotateAttrs& a, const Grad& g) {
  Array angle = as_array(g.x(1)), dy = as_array(g.dy()), dx, dangle;
  auto turn = [](const Array& x, const Array& by, bool inverse) {
    return call_all(op_my_rotate, {x, by}, {{"inverse", inverse}})[0];
  };
  if (g.wants(0)) dx = turn(dy, angle, !a.inverse);
  if (g.wants(1)) {  // dy/dangle is y turned by a quarter
    Array quarter = op::full_like(angle, 3.14159265358979323846 / 2);
    Array each = dy * turn(as_array(g.y()), quarter, a.inverse);
    Array pairs = op::sum(op::reshape(each, {-1, 2}), {.axis = std::vector<int64_t>{1}});
    dangle = op::sum(op::reshape(pairs, {-1, angle.dim(0)}), {.axis = std::vector<int64_t>{0}});
  }
  return as_vals(dx, dangle);
}

}  // namespace my
