// SPDX-License-Identifier: Apache-2.0
// Arrays shaped like another one, sums and broadcasts back to a shape, casts and copies: what gradients lean on.
#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "ops/axes.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

struct LikeAttrs {
  Maybe<DType> dtype;
};
inline constexpr Field kLikeFields[] = {TW_ATTR(LikeAttrs, dtype, "dtype of the result; that of x when None.")};

static void infer_like(const LikeAttrs& a, SigsIn in, SigsOut out) {
  out[0] = {in[0].shape, a.dtype.value_or(in[0].dtype)};
}
static void fill_output(Call& c, Scalar value) {
  int64_t strides[kMaxRank];
  contiguous_strides(c.out[0].shape(), strides);
  kernels::fill(c.out[0].dtype, c.out[0].shape(), c.out[0].data, {strides, c.out[0].rank}, value);
}

TW_OP(zeros_like) = whole({
    .name = "zeros_like",
    .doc = "An array of zeros with the shape of x.",
    .names = {"np.zeros_like", "nd.zeros_like"},
    .attrs = schema<LikeAttrs>(kLikeFields),
    .in = {{{.name = "x", .shape_only = true}}},
    .infer = infer_rule<LikeAttrs>([](auto& a, SigsIn in, SigsOut out) { infer_like(a, in, out); }),
    .types = kAll,
    .kernel = cpu_rule<LikeAttrs>([](auto&, Call& c) { fill_output(c, Scalar(0)); }),
    .strided = true,
    .no_grad = "the result does not depend on the values of x",
    .role = Role::zeros_like,
    .samples = {{{.in = {{{3, 4}}}}}},
});

TW_OP(ones_like) = whole({
    .name = "ones_like",
    .doc = "An array of ones with the shape of x.",
    .names = {"np.ones_like", "nd.ones_like"},
    .attrs = schema<LikeAttrs>(kLikeFields),
    .in = {{{.name = "x", .shape_only = true}}},
    .infer = infer_rule<LikeAttrs>([](auto& a, SigsIn in, SigsOut out) { infer_like(a, in, out); }),
    .types = kAll,
    .kernel = cpu_rule<LikeAttrs>([](auto&, Call& c) { fill_output(c, Scalar(1)); }),
    .strided = true,
    .no_grad = "the result does not depend on the values of x",
    .role = Role::ones_like,
    .samples = {{{.in = {{{3, 4}}}}}},
});

inline constexpr Field kCastFields[] = {TW_ATTR(DTypeAttrs, dtype, "dtype of the result.", .required = true)};

TW_OP(cast) = whole({
    .name = "cast",
    .doc = "Converts the elements of x to another dtype. Floats become integers by truncation towards zero.",
    .names = {"npx.cast", "nd.cast", "nd.Cast"},
    .graph = {.names = "Cast cast amp_cast _npx_cast", .attrs = "dtype", .inputs = "data"},
    .attrs = schema<DTypeAttrs>(kCastFields),
    .in = {{{.name = "x"}}},
    .infer = infer_rule<DTypeAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {in[0].shape, a.dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<DTypeAttrs>([](auto&, Call& c) { copy_buffer(c.in[0], c.out[0]); }),
    .strided = true,
    .grad = grad_rule<DTypeAttrs>([](auto&, const Grad& g) -> Vals { return {cast(g.dy(), g.x(0)->dtype())}; }),
    .role = Role::cast,
    .keeps = true,
    .rows = rows_rule<DTypeAttrs>([](auto&, SigsIn in) -> Rows { return {in[0].rank()}; }),
    .samples = {{{.in = {{{3, 4}}}, .attrs = "dtype=float64"},
                 {.in = {{{3, 4}}}, .attrs = "dtype=int32", .smooth = false}}},
});

TW_OP(copy) = whole({
    .name = "copy",
    .doc = "A row-major copy of x.",
    .names = {"np.copy", "ndarray.copy", "nd.identity", "npx.identity"},
    .graph = {.names = "identity _copy _np_copy", .inputs = "data"},
    .in = {{{.name = "x"}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      out[0] = {in[0].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) { copy_buffer(c.in[0], c.out[0]); }),
    .strided = true,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals { return {g.dy()}; }),
    .inplace = {{{0, 0}}},
    .role = Role::copy,
    .keeps = true,
    .rows = rows_rule<NoAttrs>([](auto&, SigsIn in) -> Rows { return {in[0].rank()}; }),
    .samples = {{{.in = {{{3, 4}}}}}},
});

TW_OP(assign) = whole({
    .name = "assign",
    .doc = "Writes y into x; y is broadcast to the shape of x and cast to its dtype.",
    .in = {{{.name = "x", .kind = SlotKind::aux}, {.name = "y"}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      check_number("assign", in[1], in[0].dtype);
      TW_CHECK(broadcasts_to(in[1].shape, in[0].shape), value, "assign: a value of shape ", in[1].shape,
               " does not broadcast to the target's shape ", in[0].shape);
      out[0] = {in[0].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) { copy_buffer(c.in[1], c.out[0]); }),
    .strided = true,
    .no_grad = "front ends record assignments as functions of both arrays",
    .updates = {{{0, 0}}},
    .role = Role::assign,
    .overwrites = true,
    .samples = {{{.in = {{{3, 4}, {4}}}}}},
});

TW_OP(sum_to_like) = whole({
    .name = "sum_to_like",
    .doc = "Sums x over the axes along which `like` would be broadcast to it: the gradient of broadcasting.",
    .in = {{{.name = "x"}, {.name = "like", .shape_only = true}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      TW_CHECK(broadcasts_to(in[1].shape, in[0].shape), value, "sum_to_like: shape ", in[1].shape,
               " does not broadcast to ", in[0].shape);
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kReals,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) { sum_to(c.in[0], c.out[0]); }),
    .strided = true,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {broadcast_like(g.dy(), g.x(0)), Val()};
    }),
    .role = Role::sum_to_like,
    .keeps = true,
    .rows = rows_rule<NoAttrs>([](auto&, SigsIn in) -> Rows {
      return {in[0].rank() == in[1].rank() ? common_axes(in[0].shape, in[1].shape) : 0};
    }),
    .samples = {{{.in = {{{2, 3, 4}, {3, 1}}}}, {.in = {{{3, 4}, {4}}}}}},
});

TW_OP(broadcast_like) = whole({
    .name = "broadcast_like",
    .doc = "Repeats x along axes of size one until it has the shape of `like`.",
    .names = {"npx.broadcast_like", "nd.broadcast_like"},
    .in = {{{.name = "x"}, {.name = "like", .shape_only = true}}},
    .infer = infer_rule<NoAttrs>([](auto&, SigsIn in, SigsOut out) {
      TW_CHECK(broadcasts_to(in[0].shape, in[1].shape), value, "broadcast_like: shape ", in[0].shape,
               " does not broadcast to ", in[1].shape);
      out[0] = {in[1].shape, in[0].dtype};
    }),
    .types = kAll,
    .kernel = cpu_rule<NoAttrs>([](auto&, Call& c) { copy_buffer(c.in[0], c.out[0]); }),
    .strided = true,
    .grad = grad_rule<NoAttrs>([](auto&, const Grad& g) -> Vals {
      return {sum_to_like(g.dy(), g.x(0)), Val()};
    }),
    .role = Role::broadcast_like,
    .keeps = true,
    .rows = rows_rule<NoAttrs>([](auto&, SigsIn in) -> Rows {
      return {in[0].rank() == in[1].rank() ? common_axes(in[0].shape, in[1].shape) : 0};
    }),
    .samples = {{{.in = {{{3, 1}, {2, 3, 4}}}}}},
});

}  // namespace twibil::ops
