// SPDX-License-Identifier: Apache-2.0
// Arrays made from a shape or a range.
#include <cmath>

#include "kernels/copy_convert.h"
#include "ops/create/arange.h"
#include "ops/forms.h"
#include "ops/strides.h"

namespace twibil::ops {

namespace {

struct CreateAttrs {
  IntList shape;
  Maybe<DType> dtype;
};
struct FullAttrs {
  IntList shape;
  Scalar fill_value;
  Maybe<DType> dtype;
};
struct LinspaceAttrs {
  Scalar start, stop;
  int64_t num = 50;
  bool endpoint = true;
  Maybe<DType> dtype;
};
struct TriAttrs {
  int64_t k = 0;
};

void fill_all(Call& c, const Scalar& value) {
  kernels::fill(c.out[0].dtype, c.out[0].shape(), c.out[0].data, Strides(c.out[0]), value);
}

constexpr const char* kDTypeDoc = "dtype of the result; None: float32, or float64 after set_np(dtype=True).";

/// How many steps lead from start to stop, never negative.
int64_t arange_count(const ArangeAttrs& a) {
  double start = a.stop ? a.start.as_double() : 0.0, stop = a.stop ? (*a.stop).as_double() : a.start.as_double(),
         step = a.step.as_double();
  TW_CHECK(step != 0, value, "arange: step must not be 0");
  double n = std::ceil((stop - start) / step);
  TW_CHECK(std::isfinite(n) && n < 9e18, value, "arange: from ", start, " to ", stop, " by ", step,
           " is not a size that fits 64 bits");
  return n > 0 ? static_cast<int64_t>(n) : 0;
}

DType arange_dtype(const ArangeAttrs& a) {
  bool real = a.start.is_real() || a.step.is_real() || (a.stop && (*a.stop).is_real());
  return default_dtype(real ? Scalar(0.0) : Scalar(0));
}

/// out[i] = value(i) in double, or exactly for integers.
template <class F> void generate(Call& c, F value) {
  dispatch(c.out[0].dtype, [&]<class T>() {
    T* out = c.out[0].as<T>();
    for (int64_t i = 0; i < c.out[0].size; ++i) kernels::store(out, i, value(i));
  });
}

}  // namespace

inline constexpr Field kCreateFields[] = {
    TW_ATTR(CreateAttrs, shape, "Sizes of the result.", .required = true),
    TW_ATTR(CreateAttrs, dtype, kDTypeDoc),
};
inline constexpr auto kCreateInfer = infer_rule<CreateAttrs>([](auto& a, SigsIn, SigsOut out) {
  out[0] = {Shape(a.shape.span()), a.dtype.value_or(default_float())};
});

TW_OP(zeros) = whole({
    .name = "zeros",
    .doc = "An array of zeros.",
    .names = {"np.zeros", "nd.zeros", "np.empty", "nd.empty"},
    .graph = {.names = "_zeros zeros _npi_zeros", .attrs = "shape"},
    .attrs = schema<CreateAttrs>(kCreateFields),
    .infer = kCreateInfer,
    .types = kAll,
    .kernel = cpu_rule<CreateAttrs>([](auto&, Call& c) { fill_all(c, Scalar(0)); }),
    .no_grad = "it has no array input",
    .creates = true,
    .samples = {{{.attrs = "shape=(3, 4)"}}},
});

TW_OP(ones) = whole({
    .name = "ones",
    .doc = "An array of ones.",
    .names = {"np.ones", "nd.ones"},
    .graph = {.names = "_ones ones _npi_ones", .attrs = "shape"},
    .attrs = schema<CreateAttrs>(kCreateFields),
    .infer = kCreateInfer,
    .types = kAll,
    .kernel = cpu_rule<CreateAttrs>([](auto&, Call& c) { fill_all(c, Scalar(1)); }),
    .no_grad = "it has no array input",
    .creates = true,
    .samples = {{{.attrs = "shape=(3, 4)"}}},
});

inline constexpr Field kFullFields[] = {
    TW_ATTR(FullAttrs, shape, "Sizes of the result.", .required = true),
    TW_ATTR(FullAttrs, fill_value, "The number in every element.", .required = true, .renames = "val"),
    TW_ATTR(FullAttrs, dtype,
            "dtype of the result; None: bool for a bool, else float32, or after set_np(dtype=True) int64 or float64."),
};
TW_OP(full) = whole({
    .name = "full",
    .doc = "An array with one number in every element.",
    .names = {"np.full", "nd.full"},
    .graph = {.names = "_full full _npi_full", .attrs = "shape fill_value:value"},
    .attrs = schema<FullAttrs>(kFullFields),
    .infer = infer_rule<FullAttrs>([](auto& a, SigsIn, SigsOut out) {
      out[0] = {Shape(a.shape.span()), a.dtype.value_or(default_dtype(a.fill_value))};
      check_number("full", a.fill_value, out[0].dtype);
    }),
    .types = kAll,
    .kernel = cpu_rule<FullAttrs>([](auto& a, Call& c) { fill_all(c, a.fill_value); }),
    .no_grad = "it has no array input",
    .creates = true,
    .samples = {{{.attrs = "shape=(3, 4), fill_value=2.5"}}},
});

struct FullLikeAttrs {
  Scalar fill_value;
  Maybe<DType> dtype;
};
inline constexpr Field kFullLikeFields[] = {
    TW_ATTR(FullLikeAttrs, fill_value, "The number in every element.", .required = true),
    TW_ATTR(FullLikeAttrs, dtype, "dtype of the result; that of a when None."),
};
TW_OP(full_like) = whole({
    .name = "full_like",
    .doc = "An array with the shape of a and one number in every element.",
    .names = {"np.full_like", "nd.full_like"},
    .attrs = schema<FullLikeAttrs>(kFullLikeFields),
    .in = {{{.name = "a", .shape_only = true}}},
    .infer = infer_rule<FullLikeAttrs>([](auto& a, SigsIn in, SigsOut out) {
      out[0] = {in[0].shape, a.dtype.value_or(in[0].dtype)};
      check_number("full_like", a.fill_value, out[0].dtype);
    }),
    .types = kAll,
    .kernel = cpu_rule<FullLikeAttrs>([](auto& a, Call& c) { fill_all(c, a.fill_value); }),
    .strided = true,
    .no_grad = "the result does not depend on the values of a",
    .samples = {{{.in = {{{3, 4}}}, .attrs = "fill_value=2.5"}}},
});

inline constexpr Field kArangeFields[] = {
    TW_ATTR(ArangeAttrs, start, "First number; the end when stop is None.", .required = true),
    TW_ATTR(ArangeAttrs, stop, "End, not included."),
    TW_ATTR(ArangeAttrs, step, "Distance of the numbers."),
    TW_ATTR(ArangeAttrs, dtype,
            "dtype of the result; None: float32, or after set_np(dtype=True) int64 for integers and else float64."),
};
TW_OP(arange) = whole({
    .name = "arange",
    .doc = "Evenly spaced numbers from start up to stop.",
    .names = {"np.arange", "nd.arange"},
    .graph = {.names = "_arange arange _npi_arange", .attrs = "start"},
    .attrs = schema<ArangeAttrs>(kArangeFields),
    .infer = infer_rule<ArangeAttrs>([](auto& a, SigsIn, SigsOut out) {
      out[0] = {Shape{arange_count(a)}, a.dtype.value_or(arange_dtype(a))};
    }),
    .types = kReals,
    .kernel = cpu_rule<ArangeAttrs>([](auto& a, Call& c) {
      Scalar start = a.stop ? a.start : Scalar(0);
      if (!start.is_real() && !a.step.is_real())  // wraps around, as all sums of integers
        generate(c, [&](int64_t i) {
          return static_cast<int64_t>(static_cast<uint64_t>(start.integer) +
                                      static_cast<uint64_t>(i) * static_cast<uint64_t>(a.step.integer));
        });
      else generate(c, [&](int64_t i) { return start.as_double() + static_cast<double>(i) * a.step.as_double(); });
    }),
    .no_grad = "it has no array input",
    .creates = true,
    .samples = {{{.attrs = "start=5"}, {.attrs = "start=1.0, stop=2.0, step=0.25"}}},
});

inline constexpr Field kLinspaceFields[] = {
    TW_ATTR(LinspaceAttrs, start, "First number.", .required = true),
    TW_ATTR(LinspaceAttrs, stop, "Last number.", .required = true),
    TW_ATTR(LinspaceAttrs, num, "How many numbers."),
    TW_ATTR(LinspaceAttrs, endpoint, "Whether stop is among them."),
    TW_ATTR(LinspaceAttrs, dtype, kDTypeDoc),
};
TW_OP(linspace) = whole({
    .name = "linspace",
    .doc = "A number of evenly spaced numbers from start to stop.",
    .names = {"np.linspace"},
    .attrs = schema<LinspaceAttrs>(kLinspaceFields),
    .infer = infer_rule<LinspaceAttrs>([](auto& a, SigsIn, SigsOut out) {
      TW_CHECK(a.num >= 0, value, "linspace: num must not be negative; got ", a.num);
      out[0] = {Shape{a.num}, a.dtype.value_or(default_float())};
    }),
    .types = kReals,
    .kernel = cpu_rule<LinspaceAttrs>([](auto& a, Call& c) {
      double start = a.start.as_double(), stop = a.stop.as_double(),
             steps = static_cast<double>(a.endpoint ? a.num - 1 : a.num);
      bool whole = is_integer(c.out[0].dtype);
      generate(c, [&](int64_t i) {
        double v = a.endpoint && i == a.num - 1 && i > 0
                       ? stop
                       : start + (steps > 0 ? (stop - start) / steps * static_cast<double>(i) : 0.0);
        return whole ? std::floor(v) : v;
      });
    }),
    .no_grad = "it has no array input",
    .creates = true,
    .samples = {{{.attrs = "start=0, stop=1, num=5"}}},
});

inline constexpr Field kEyeFields[] = {
    TW_ATTR(EyeAttrs, N, "Number of rows.", .required = true),
    TW_ATTR(EyeAttrs, M, "Number of columns; N when None."),
    TW_ATTR(EyeAttrs, k, "Which diagonal holds the ones; positive: above the main one."),
    TW_ATTR(EyeAttrs, dtype, kDTypeDoc),
};
TW_OP(eye) = whole({
    .name = "eye",
    .doc = "A matrix with ones on a diagonal and zeros elsewhere.",
    .names = {"np.eye", "nd.eye"},
    .graph = {.names = "_eye eye _npi_eye", .attrs = "N"},
    .attrs = schema<EyeAttrs>(kEyeFields),
    .infer = infer_rule<EyeAttrs>([](auto& a, SigsIn, SigsOut out) {
      int64_t m = a.M.value_or(a.N);
      TW_CHECK(a.N >= 0 && m >= 0, value, "eye: N and M must not be negative; got ", a.N, " and ", m);
      out[0] = {Shape{a.N, m}, a.dtype.value_or(default_float())};
    }),
    .types = kAll,
    .kernel = cpu_rule<EyeAttrs>([](auto& a, Call& c) {
      fill_all(c, Scalar(0));
      int64_t n = c.out[0].dim(0), m = c.out[0].dim(1);
      if (a.k >= m || a.k <= -n) return;
      int64_t row = std::max<int64_t>(0, -a.k), count = std::min(n - row, m - (row + a.k));
      int64_t step = m + 1;
      kernels::fill(c.out[0].dtype, {&count, 1}, c.out[0].data + (row * m + row + a.k) * size_of(c.out[0].dtype),
                    {&step, 1}, Scalar(1));
    }),
    .no_grad = "it has no array input",
    .creates = true,
    .samples = {{{.attrs = "N=4"}, {.attrs = "N=3, M=5, k=1"}}},
});

inline constexpr Field kTriFields[] = {
    TW_ATTR(TriAttrs, k, "The diagonal up to which elements are kept; positive: above the main one.")};
template <bool lower> static void keep_triangle(const TriAttrs& a, Call& c) {
  copy_buffer(c.in[0], c.out[0]);
  int rank = c.out[0].rank;
  int64_t n = c.out[0].dim(rank - 2), m = c.out[0].dim(rank - 1), width = size_of(c.out[0].dtype);
  int64_t matrices = n > 0 && m > 0 ? c.out[0].size / (n * m) : 0, one = 1;
  int64_t k = std::clamp(a.k, -n - 1, m + 1);  // diagonals further out are as empty as these
  for (int64_t row = 0; row < matrices * n; ++row) {
    int64_t edge = std::clamp<int64_t>(row % n + k + (lower ? 1 : 0), 0, m), from = lower ? edge : 0,
            count = lower ? m - edge : edge;
    kernels::fill(c.out[0].dtype, {&count, 1}, c.out[0].data + (row * m + from) * width, {&one, 1}, Scalar(0));
  }
}
inline constexpr auto kTriInfer = infer_rule<TriAttrs>([](auto&, SigsIn in, SigsOut out) {
  TW_CHECK(in[0].rank() >= 2, value, "the array must have at least 2 dimensions; got shape ", in[0].shape);
  out[0] = {in[0].shape, in[0].dtype};
});
extern const OpDef op_tril, op_triu;
TW_OP(tril) = whole({
    .name = "tril",
    .doc = "The lower triangle of the last two axes; zeros above.",
    .names = {"np.tril"},
    .attrs = schema<TriAttrs>(kTriFields),
    .in = {{{.name = "m"}}},
    .infer = kTriInfer,
    .types = kAll,
    .kernel = cpu_rule<TriAttrs>([](auto& a, Call& c) { keep_triangle<true>(a, c); }),
    .strided = true,
    .grad = grad_rule<TriAttrs>([](auto& a, const Grad& g) -> Vals { return {apply(op_tril, a, {g.dy()})}; }),
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 3}}}, .attrs = "k=-1"}}},
});
TW_OP(triu) = whole({
    .name = "triu",
    .doc = "The upper triangle of the last two axes; zeros below.",
    .names = {"np.triu"},
    .attrs = schema<TriAttrs>(kTriFields),
    .in = {{{.name = "m"}}},
    .infer = kTriInfer,
    .types = kAll,
    .kernel = cpu_rule<TriAttrs>([](auto& a, Call& c) { keep_triangle<false>(a, c); }),
    .strided = true,
    .grad = grad_rule<TriAttrs>([](auto& a, const Grad& g) -> Vals { return {apply(op_triu, a, {g.dy()})}; }),
    .samples = {{{.in = {{{3, 4}}}}, {.in = {{{2, 3, 3}}}, .attrs = "k=1"}}},
});

}  // namespace twibil::ops
