// SPDX-License-Identifier: Apache-2.0
// Random arrays. Each call takes one key of the process-wide stream; equal keys give equal numbers on any machine.
#include "kernels/random.h"

#include <limits>
#include <vector>

#include "base/recycled.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

namespace {

struct RangeAttrs {
  double low = 0, high = 1;
  Maybe<IntList> size;
  Maybe<DType> dtype;
};
struct NormalAttrs {
  double loc = 0, scale = 1;
  Maybe<IntList> size;
  Maybe<DType> dtype;
};
struct RandintAttrs {
  int64_t low = 0;
  Maybe<int64_t> high;
  Maybe<IntList> size;
  Maybe<DType> dtype;
};
struct BernoulliAttrs {
  double prob = 0.5;
  Maybe<IntList> size;
  Maybe<DType> dtype;
};
struct CountAttrs {
  int64_t n = 0;
};
struct CategoricalAttrs {
  int64_t samples = 1;
};
struct MultinomialAttrs {
  int64_t n = 1;
  Maybe<IntList> size;
};
struct ExponentialAttrs {
  double scale = 1;
  Maybe<IntList> size;
  Maybe<DType> dtype;
};
struct GammaAttrs {
  double shape = 1, scale = 1;
  Maybe<IntList> size;
  Maybe<DType> dtype;
};

Shape shape_of(const Maybe<IntList>& size) { return size ? Shape((*size).span()) : Shape(); }
kernels::RandomStream stream(const Call& c) { return {c.key.seed, c.key.counter}; }
constexpr const char* kNoInput = "random numbers do not depend on other arrays";
constexpr const char* kSizeDoc = "Shape of the result; None: one number.";
constexpr const char* kDTypeDoc = "dtype of the result; None: float32, or float64 after set_np(dtype=True).";

}  // namespace

inline constexpr Field kUniformFields[] = {
    TW_ATTR(RangeAttrs, low, "Least number."), TW_ATTR(RangeAttrs, high, "End, not included."),
    TW_ATTR(RangeAttrs, size, kSizeDoc, .renames = "shape"), TW_ATTR(RangeAttrs, dtype, kDTypeDoc)};
TW_OP(random_uniform) = whole({
    .name = "random_uniform",
    .doc = "Numbers evenly distributed over [low, high).",
    .names = {"np.random.uniform", "nd.random_uniform"},
    .graph = {.names = "_random_uniform random_uniform uniform _npi_uniform", .attrs = "size:shape"},
    .attrs = schema<RangeAttrs>(kUniformFields),
    .infer = infer_rule<RangeAttrs>([](auto& a, SigsIn, SigsOut out) {
      out[0] = {shape_of(a.size), a.dtype.value_or(default_float())};
    }),
    .types = kFloats,
    .kernel = cpu_rule<RangeAttrs>([](auto& a, Call& c) {
      kernels::random_uniform(stream(c), c.out[0].dtype, c.out[0].size, c.out[0].data, a.low, a.high);
    }),
    .no_grad = kNoInput,
    .random = true,
    .creates = true,
    .samples = {{{.attrs = "low=-1.0, high=2.0, size=(3, 4)"}}},
});

inline constexpr Field kNormalFields[] = {
    TW_ATTR(NormalAttrs, loc, "Mean."), TW_ATTR(NormalAttrs, scale, "Standard deviation, not negative."),
    TW_ATTR(NormalAttrs, size, kSizeDoc, .renames = "shape"), TW_ATTR(NormalAttrs, dtype, kDTypeDoc)};
TW_OP(random_normal) = whole({
    .name = "random_normal",
    .doc = "Normally distributed numbers.",
    .names = {"np.random.normal", "nd.random_normal"},
    .graph = {.names = "_random_normal random_normal normal _npi_normal", .attrs = "size:shape"},
    .attrs = schema<NormalAttrs>(kNormalFields),
    .infer = infer_rule<NormalAttrs>([](auto& a, SigsIn, SigsOut out) {
      TW_CHECK(a.scale >= 0, value, "random_normal: scale must not be negative; got ", a.scale);
      out[0] = {shape_of(a.size), a.dtype.value_or(default_float())};
    }),
    .types = kFloats,
    .kernel = cpu_rule<NormalAttrs>([](auto& a, Call& c) {
      kernels::random_normal(stream(c), c.out[0].dtype, c.out[0].size, c.out[0].data, a.loc, a.scale);
    }),
    .no_grad = kNoInput,
    .random = true,
    .creates = true,
    .samples = {{{.attrs = "loc=1.0, scale=2.0, size=(3, 4)"}}},
});

inline constexpr Field kRandintFields[] = {
    TW_ATTR(RandintAttrs, low, "Least number; with high None the end, from 0.", .required = true),
    TW_ATTR(RandintAttrs, high, "End, not included."), TW_ATTR(RandintAttrs, size, kSizeDoc, .renames = "shape"),
    TW_ATTR(RandintAttrs, dtype, "dtype of the result; int64 when None.")};
TW_OP(random_randint) = whole({
    .name = "random_randint",
    .doc = "Whole numbers from low to high - 1, each as likely as the others.",
    .names = {"np.random.randint", "nd.random_randint"},
    .attrs = schema<RandintAttrs>(kRandintFields),
    .infer = infer_rule<RandintAttrs>([](auto& a, SigsIn, SigsOut out) {
      int64_t low = a.high ? a.low : 0, high = a.high ? *a.high : a.low;
      TW_CHECK(low < high, value, "random_randint: low must be less than high; got ", low, " and ", high);
      DType t = a.dtype.value_or(DType::int64);
      TW_CHECK(holds(t, low) && holds(t, high - 1), value, "random_randint: numbers from ", low, " to ", high - 1,
               " do not fit dtype ", t);
      out[0] = {shape_of(a.size), t};
    }),
    .types = kReals,
    .kernel = cpu_rule<RandintAttrs>([](auto& a, Call& c) {
      int64_t low = a.high ? a.low : 0, high = a.high ? *a.high : a.low;
      kernels::random_integers(stream(c), low, high - 1, c.out[0].dtype, c.out[0].size, c.out[0].data);
    }),
    .no_grad = kNoInput,
    .random = true,
    .creates = true,
    .samples = {{{.attrs = "low=2, high=9, size=(3, 4)"}}},
});

inline constexpr Field kBernoulliFields[] = {TW_ATTR(BernoulliAttrs, prob, "Probability of 1."),
                                             TW_ATTR(BernoulliAttrs, size, kSizeDoc, .renames = "shape"),
                                             TW_ATTR(BernoulliAttrs, dtype, kDTypeDoc)};
TW_OP(random_bernoulli) = whole({
    .name = "random_bernoulli",
    .doc = "1 with probability prob, else 0.",
    .names = {"npx.random_bernoulli"},
    .attrs = schema<BernoulliAttrs>(kBernoulliFields),
    .infer = infer_rule<BernoulliAttrs>([](auto& a, SigsIn, SigsOut out) {
      TW_CHECK(a.prob >= 0 && a.prob <= 1, value, "random_bernoulli: prob must be in [0, 1]; got ", a.prob);
      out[0] = {shape_of(a.size), a.dtype.value_or(default_float())};
    }),
    .types = kAll,
    .kernel = cpu_rule<BernoulliAttrs>([](auto& a, Call& c) {
      kernels::random_bernoulli(stream(c), a.prob, c.out[0].dtype, c.out[0].size, c.out[0].data);
    }),
    .no_grad = kNoInput,
    .random = true,
    .creates = true,
    .samples = {{{.attrs = "prob=0.3, size=(3, 4)"}}},
});

inline constexpr Field kExponentialFields[] = {TW_ATTR(ExponentialAttrs, scale, "Mean, not negative."),
                                               TW_ATTR(ExponentialAttrs, size, kSizeDoc, .renames = "shape"),
                                               TW_ATTR(ExponentialAttrs, dtype, kDTypeDoc)};
TW_OP(random_exponential) = whole({
    .name = "random_exponential",
    .doc = "Exponentially distributed numbers.",
    .names = {"np.random.exponential"},
    .attrs = schema<ExponentialAttrs>(kExponentialFields),
    .infer = infer_rule<ExponentialAttrs>([](auto& a, SigsIn, SigsOut out) {
      TW_CHECK(a.scale >= 0, value, "random_exponential: scale must not be negative; got ", a.scale);
      out[0] = {shape_of(a.size), a.dtype.value_or(default_float())};
    }),
    .types = kFloats,
    .kernel = cpu_rule<ExponentialAttrs>([](auto& a, Call& c) {
      kernels::random_exponential(stream(c), c.out[0].dtype, c.out[0].size, c.out[0].data, a.scale);
    }),
    .no_grad = kNoInput,
    .random = true,
    .creates = true,
    .samples = {{{.attrs = "scale=2.0, size=(3, 4)"}}},
});

inline constexpr Field kGammaFields[] = {TW_ATTR(GammaAttrs, shape, "Shape parameter, positive.", .required = true),
                                         TW_ATTR(GammaAttrs, scale, "Scale, positive."),
                                         TW_ATTR(GammaAttrs, size, kSizeDoc), TW_ATTR(GammaAttrs, dtype, kDTypeDoc)};
TW_OP(random_gamma) = whole({
    .name = "random_gamma",
    .doc = "Gamma-distributed numbers.",
    .names = {"np.random.gamma"},
    .attrs = schema<GammaAttrs>(kGammaFields),
    .infer = infer_rule<GammaAttrs>([](auto& a, SigsIn, SigsOut out) {
      TW_CHECK(a.shape > 0 && a.shape < 1e15 && a.scale > 0, value,
               "random_gamma: shape and scale must be positive, shape below 1e15; got ", a.shape, " and ", a.scale);
      out[0] = {shape_of(a.size), a.dtype.value_or(default_float())};
    }),
    .types = bit_of(DType::float32) | bit_of(DType::float64),
    .kernel = cpu_rule<GammaAttrs>([](auto& a, Call& c) {
      float narrow = static_cast<float>(a.shape);
      const void* alpha = c.out[0].dtype == DType::float64 ? static_cast<const void*>(&a.shape) : &narrow;
      kernels::random_gamma(stream(c), c.out[0].dtype, c.out[0].size, alpha, 0, a.scale, c.out[0].data);
    }),
    .no_grad = kNoInput,
    .random = true,
    .creates = true,
    .samples = {{{.attrs = "shape=2.0, size=(3, 4)"}}},
});

inline constexpr Field kPermutationFields[] = {TW_ATTR(CountAttrs, n, "How many numbers.", .required = true)};
TW_OP(random_permutation) = whole({
    .name = "random_permutation",
    .doc = "The numbers 0 to n - 1 in random order, int64.",
    .names = {"npx.random_permutation"},
    .attrs = schema<CountAttrs>(kPermutationFields),
    .infer = infer_rule<CountAttrs>([](auto& a, SigsIn, SigsOut out) {
      TW_CHECK(a.n >= 0, value, "random_permutation: n must not be negative; got ", a.n);
      out[0] = {Shape{a.n}, DType::int64};
    }),
    .types = bit_of(DType::int64),
    .kernel = cpu_rule<CountAttrs>([](auto& a, Call& c) {
      kernels::random_permutation(stream(c), a.n, c.out[0].template as<int64_t>());
    }),
    .no_grad = kNoInput,
    .random = true,
    .creates = true,
    .samples = {{{.attrs = "n=7"}}},
});

inline constexpr Field kCategoricalFields[] = {TW_ATTR(CategoricalAttrs, samples, "Draws per row.")};
TW_OP(random_categorical) = whole({
    .name = "random_categorical",
    .doc = "Draws indices with probabilities proportional to the last axis of weights.",
    .names = {"npx.random_categorical"},
    .attrs = schema<CategoricalAttrs>(kCategoricalFields),
    .in = {{{.name = "weights", .doc = "(..., k), not negative; rows need not sum to one."}}},
    .infer = infer_rule<CategoricalAttrs>([](auto& a, SigsIn in, SigsOut out) {
      Shape shape = in[0].shape;
      TW_CHECK(shape.rank() >= 1 && shape[shape.rank() - 1] > 0, value,
               "random_categorical: weights must have a last axis that is not empty; got shape ", shape);
      TW_CHECK(a.samples >= 0, value, "random_categorical: samples must not be negative; got ", a.samples);
      shape[shape.rank() - 1] = a.samples;
      out[0] = {shape, DType::int64};
    }),
    .types = kReals,
    .kernel = cpu_rule<CategoricalAttrs>([](auto& a, Call& c) {
      int64_t k = c.in[0].dim(c.in[0].rank - 1);
      Recycled<double> weights(static_cast<size_t>(c.in[0].size));
      kernels::convert_row(c.in[0].dtype, DType::float64, c.in[0].data, weights.data(), c.in[0].size);
      for (double w : weights) TW_CHECK(w >= 0, value, "random_categorical: weights must not be negative; got ", w);
      for (int64_t row = 0; row < c.in[0].size / k; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) sum += weights[static_cast<size_t>(row * k + i)];
        TW_CHECK(sum > 0, value, "random_categorical: the weights of row ", row, " must not all be 0");
      }
      kernels::random_categorical(stream(c), c.in[0].size / k, k, DType::float64, weights.data(), a.samples,
                                  c.out[0].template as<int64_t>());
    }),
    .no_grad = "indices are whole numbers",
    .random = true,
    .samples = {{{.in = {{{{3, 4}, Domain::positive}}}, .attrs = "samples=5"}}},
});

inline constexpr Field kMultinomialFields[] = {
    TW_ATTR(MultinomialAttrs, n, "Number of trials.", .required = true),
    TW_ATTR(MultinomialAttrs, size, "Number of experiments, a shape; None: one.")};
TW_OP(random_multinomial) = whole({
    .name = "random_multinomial",
    .doc = "How often each outcome comes up in n trials, int64.",
    .names = {"npx.random_multinomial"},
    .attrs = schema<MultinomialAttrs>(kMultinomialFields),
    .in = {{{.name = "pvals", .doc = "(k,) probabilities that sum to one."}}},
    .infer = infer_rule<MultinomialAttrs>([](auto& a, SigsIn in, SigsOut out) {
      TW_CHECK(in[0].rank() == 1 && in[0].shape[0] > 0, value, "random_multinomial: pvals must have shape (k,); got ",
               in[0].shape);
      TW_CHECK(a.n >= 0 && a.n <= 1 << 30, value,
               "random_multinomial: n must be between 0 and 2**30, for each trial is drawn; got ", a.n);
      Shape shape = shape_of(a.size);
      shape.push_back(in[0].shape[0]);
      out[0] = {shape, DType::int64};
    }),
    .types = kReals,
    .kernel = cpu_rule<MultinomialAttrs>([](auto& a, Call& c) {
      Recycled<double> p(static_cast<size_t>(c.in[0].size));
      kernels::convert_row(c.in[0].dtype, DType::float64, c.in[0].data, p.data(), c.in[0].size);
      double sum = 0;
      for (double v : p) {
        TW_CHECK(v >= 0 && v <= 1, value, "random_multinomial: probabilities must be in [0, 1]; got ", v);
        sum += v;
      }
      TW_CHECK(sum <= 1.0 + 1e-5, value, "random_multinomial: probabilities must sum to 1; they sum to ", sum);
      kernels::random_multinomial(stream(c), a.n, p, c.out[0].size / c.in[0].size, c.out[0].template as<int64_t>());
    }),
    .no_grad = "counts are whole numbers",
    .random = true,
    .samples = {{{.in = {{SampleInput({1}, Domain::unit)}}, .attrs = "n=5"}}},
});

}  // namespace twibil::ops
