// SPDX-License-Identifier: Apache-2.0
// Random arrays. A seed in the model is not followed: numbers come from the library's stream.
#include "ops/math/elementwise.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(random_normal)
TW_DECLARE(random_uniform)

namespace {

struct RandomAttrs {
  IntList shape;
  DType dtype = DType::float32;
  Maybe<DType> like;  // of those that take the shape of an array
  double mean = 0, scale = 1, low = 0, high = 1;
};

Val normal(const RandomAttrs& a, const IntList& shape, DType t) {
  return With(op_random_normal).set("loc", a.mean).set("scale", a.scale).set("size", shape).set("dtype", t)({});
}
Val uniform(const RandomAttrs& a, const IntList& shape, DType t) {
  return With(op_random_uniform).set("low", a.low).set("high", a.high).set("size", shape).set("dtype", t)({});
}
DType like_of(const RandomAttrs& a, const Val& x) { return a.like.value_or(x->dtype()); }

}  // namespace

inline constexpr Field kOnnxNormalFields[] = {
    TW_ATTR(RandomAttrs, shape, "Sizes of the result."), TW_ATTR(RandomAttrs, dtype, "dtype of the result."),
    TW_ATTR(RandomAttrs, mean, "The mean."), TW_ATTR(RandomAttrs, scale, "The standard deviation.")};
inline constexpr Field kOnnxUniformFields[] = {
    TW_ATTR(RandomAttrs, shape, "Sizes of the result."), TW_ATTR(RandomAttrs, dtype, "dtype of the result."),
    TW_ATTR(RandomAttrs, low, "The least number."), TW_ATTR(RandomAttrs, high, "The end, which is not reached.")};
inline constexpr Field kOnnxNormalLikeFields[] = {
    TW_ATTR(RandomAttrs, like, "dtype of the result; None: that of the input."), kOnnxNormalFields[2],
    kOnnxNormalFields[3]};
inline constexpr Field kOnnxUniformLikeFields[] = {kOnnxNormalLikeFields[0], kOnnxUniformFields[2],
                                                   kOnnxUniformFields[3]};
inline constexpr Field kOnnxBernoulliFields[] = {kOnnxNormalLikeFields[0]};
inline constexpr std::array<Slot, 14> kOnnxLike = {{{.name = "input", .shape_only = true}}};

TW_OP(onnx_random_normal) = whole({
    .name = "onnx_random_normal",
    .doc = "Normal random numbers.",
    .onnx = {.names = "RandomNormal", .unused = "seed"},
    .attrs = schema<RandomAttrs>(kOnnxNormalFields),
    .types = kFloats,
    .expand = expand_rule<RandomAttrs>([](auto& a, std::span<const Val>) -> Vals {
      return {normal(a, a.shape, a.dtype)};
    }),
});
TW_OP(onnx_random_uniform) = whole({
    .name = "onnx_random_uniform",
    .doc = "Random numbers of which none is likelier than others.",
    .onnx = {.names = "RandomUniform", .unused = "seed"},
    .attrs = schema<RandomAttrs>(kOnnxUniformFields),
    .types = kFloats,
    .expand = expand_rule<RandomAttrs>([](auto& a, std::span<const Val>) -> Vals {
      return {uniform(a, a.shape, a.dtype)};
    }),
});
TW_OP(onnx_random_normal_like) = whole({
    .name = "onnx_random_normal_like",
    .doc = "Normal random numbers in the shape of an array.",
    .onnx = {.names = "RandomNormalLike", .attrs = "like:dtype", .unused = "seed"},
    .attrs = schema<RandomAttrs>(kOnnxNormalLikeFields),
    .in = kOnnxLike,
    .types = kAll,
    .expand = expand_rule<RandomAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {normal(a, IntList(in[0]->shape()), like_of(a, in[0]))};
    }),
});
TW_OP(onnx_random_uniform_like) = whole({
    .name = "onnx_random_uniform_like",
    .doc = "Random numbers of which none is likelier than others, in the shape of an array.",
    .onnx = {.names = "RandomUniformLike", .attrs = "like:dtype", .unused = "seed"},
    .attrs = schema<RandomAttrs>(kOnnxUniformLikeFields),
    .in = kOnnxLike,
    .types = kAll,
    .expand = expand_rule<RandomAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      return {uniform(a, IntList(in[0]->shape()), like_of(a, in[0]))};
    }),
});
TW_OP(onnx_bernoulli) = whole({
    .name = "onnx_bernoulli",
    .doc = "One with the probability that each element says, else 0.",
    .onnx = {.names = "Bernoulli:15", .attrs = "like:dtype", .unused = "seed"},
    .attrs = schema<RandomAttrs>(kOnnxBernoulliFields),
    .in = {{{.name = "input"}}},
    .types = kFloats,
    .expand = expand_rule<RandomAttrs>([](auto& a, std::span<const Val> in) -> Vals {
      DType t = is_floating(in[0]->dtype()) ? in[0]->dtype() : DType::float32;
      return {cast(less(uniform(a, IntList(in[0]->shape()), t), in[0]), like_of(a, in[0]))};
    }),
});

}  // namespace twibil::ops
