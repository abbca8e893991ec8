// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers, in place. In all of them the gradient is rescaled, then clipped, then the decay is added:
// g = clip(grad * rescale_grad, +-clip_gradient) + wd * weight; clip_gradient <= 0 does not clip.
#include <cmath>

#include "base/parallel.h"
#include "ops/forms.h"

namespace twibil::ops {

namespace {

struct SgdAttrs {
  double lr = 0.01, momentum = 0, wd = 0, rescale_grad = 1, clip_gradient = -1;
  bool lazy_update = true;
};
struct AdamAttrs {
  double lr = 0.001, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, wd = 0, rescale_grad = 1, clip_gradient = -1;
  bool lazy_update = true;
};
struct AdaGradAttrs {
  double lr = 0.01, epsilon = 1e-7, wd = 0, rescale_grad = 1, clip_gradient = -1;
};
struct RmsPropAttrs {
  double lr = 0.001, rho = 0.9, momentum = 0.9, epsilon = 1e-8, wd = 0, rescale_grad = 1, clip_gradient = -1,
         clip_weights = -1;
};
struct AdaDeltaAttrs {
  double lr = 1, rho = 0.9, epsilon = 1e-5, wd = 0, rescale_grad = 1, clip_gradient = -1;
};

constexpr const char* kLr = "Learning rate.";
constexpr const char* kWd = "Weight decay.";
constexpr const char* kRescale = "Multiplies the gradient first.";
constexpr const char* kClip = "Bound of the rescaled gradient's elements; 0 or less: none.";

/// step(a, w, g, states) for every element, in the weight's dtype (halves: float32).
template <class A, class F> void update(const A& a, Call& c, F step) {
  const Buffer& w = c.out[0];
  dispatch(w.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) return;
    else {
      using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
      C rescale = static_cast<C>(a.rescale_grad), clip = static_cast<C>(a.clip_gradient), wd = static_cast<C>(a.wd);
      T *weight = w.as<T>(), *s0 = c.out.size() > 1 ? c.out[1].template as<T>() : nullptr,
        *s1 = c.out.size() > 2 ? c.out[2].template as<T>() : nullptr,
        *s2 = c.out.size() > 3 ? c.out[3].template as<T>() : nullptr;
      const T* grad = c.in[1].template as<T>();
      parallel_for(w.size, 65536, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          C x = static_cast<C>(weight[i]), g = static_cast<C>(grad[i]) * rescale;
          if (clip > 0) g = std::min(std::max(g, -clip), clip);
          g += wd * x;
          C state[3] = {s0 ? static_cast<C>(s0[i]) : C(0), s1 ? static_cast<C>(s1[i]) : C(0),
                        s2 ? static_cast<C>(s2[i]) : C(0)};
          step(a, x, g, state);
          weight[i] = T(x);
          if (s0) s0[i] = T(state[0]);
          if (s1) s1[i] = T(state[1]);
          if (s2) s2[i] = T(state[2]);
        }
      });
    }
  });
}

void infer_update(const void*, SigsIn in, SigsOut out) {
  TW_CHECK(in[1].shape == in[0].shape, value, "the gradient must have the weight's shape ", in[0].shape, "; got ",
           in[1].shape);
  out[0] = in[0];
  for (size_t k = 1; k < out.size(); ++k) {
    const Sig& s = in[k + 1];
    TW_CHECK(s.shape == in[0].shape && s.dtype == in[0].dtype, value, "state ", k - 1,
             " must have the weight's shape and dtype; got ", s);
    out[k] = s;
  }
}

/// The definition of a step from its states, which stand in `.in`: they come after weight and gradient, and like the
/// weight they are written in place. `step(a, x, g, s)` computes the new weight x and states s of one element.
template <class A, Captureless Step> constexpr OpDef step_of(OpDef d, Step) {
  for (size_t k = d.in.size() - 1; k >= 2; --k) d.in[k] = d.in[k - 2];
  d.in[0] = {.name = "weight", .kind = SlotKind::aux};
  d.in[1] = {.name = "grad"};
  d.out[0] = "weight";
  d.updates[0] = {0, 0};
  for (int k = 1; d.in[k + 1].name; ++k) {
    d.in[k + 1].kind = SlotKind::aux;
    d.out[k] = d.in[k + 1].name;
    d.updates[k] = {static_cast<int8_t>(k), static_cast<int8_t>(k + 1)};
  }
  d.visible = 1;
  d.infer = infer_update;
  d.types = kFloats;
  d.kernel = cpu_rule<A>([](auto& a, Call& c) { update(a, c, Step{}); });
  d.same_dtype = true;
  d.no_grad = "it changes weights in place";
  return whole(d);
}

}  // namespace

inline constexpr Field kSgdFields[] = {
    TW_ATTR(SgdAttrs, lr, kLr, .required = true), TW_ATTR(SgdAttrs, wd, kWd), TW_ATTR(SgdAttrs, rescale_grad, kRescale),
    TW_ATTR(SgdAttrs, clip_gradient, kClip), TW_ATTR(SgdAttrs, lazy_update, "Accepted for compatibility.")};
inline constexpr Field kMomentumFields[] = {TW_ATTR(SgdAttrs, lr, kLr, .required = true),
                                            TW_ATTR(SgdAttrs, momentum, "How much of the last step is kept."),
                                            TW_ATTR(SgdAttrs, wd, kWd),
                                            TW_ATTR(SgdAttrs, rescale_grad, kRescale),
                                            TW_ATTR(SgdAttrs, clip_gradient, kClip),
                                            TW_ATTR(SgdAttrs, lazy_update, "Accepted for compatibility.")};

TW_OP(sgd_update) = step_of<SgdAttrs>(
    {
        .name = "sgd_update",
        .doc = "weight -= lr * g.",
        .names = {"npx.sgd_update", "nd.sgd_update"},
        .attrs = schema<SgdAttrs>(kSgdFields),
        .samples = {{{.in = {{{3, 4}, {3, 4}}}, .attrs = "lr=0.1, wd=0.01"}}},
    },
    [](auto& a, auto& x, auto g, auto*) { x -= static_cast<decltype(g)>(a.lr) * g; });
TW_OP(sgd_mom_update) = step_of<SgdAttrs>(
    {
        .name = "sgd_mom_update",
        .doc = "mom = momentum * mom - lr * g; weight += mom.",
        .names = {"npx.sgd_mom_update", "nd.sgd_mom_update"},
        .attrs = schema<SgdAttrs>(kMomentumFields),
        .in = {{{.name = "mom"}}},
        .samples = {{{.in = {{{3, 4}, {3, 4}, {3, 4}}}, .attrs = "lr=0.1, momentum=0.9"}}},
    },
    [](auto& a, auto& x, auto g, auto* s) {
      using C = decltype(g);
      s[0] = static_cast<C>(a.momentum) * s[0] - static_cast<C>(a.lr) * g;
      x += s[0];
    });
TW_OP(nag_mom_update) = step_of<SgdAttrs>(
    {
        .name = "nag_mom_update",
        .doc = "Nesterov's momentum: mom = momentum * mom - lr * g; weight += momentum * mom - lr * g.",
        .names = {"npx.nag_mom_update", "nd.nag_mom_update"},
        .attrs = schema<SgdAttrs>(kMomentumFields),
        .in = {{{.name = "mom"}}},
        .samples = {{{.in = {{{3, 4}, {3, 4}, {3, 4}}}, .attrs = "lr=0.1, momentum=0.9"}}},
    },
    [](auto& a, auto& x, auto g, auto* s) {
      using C = decltype(g);
      s[0] = static_cast<C>(a.momentum) * s[0] - static_cast<C>(a.lr) * g;
      x += static_cast<C>(a.momentum) * s[0] - static_cast<C>(a.lr) * g;
    });

inline constexpr Field kAdamFields[] = {
    TW_ATTR(AdamAttrs, lr, "Learning rate, with the bias correction of the step in it.", .required = true),
    TW_ATTR(AdamAttrs, beta1, "Decay of the mean."),
    TW_ATTR(AdamAttrs, beta2, "Decay of the mean square."),
    TW_ATTR(AdamAttrs, epsilon, "Added to the root."),
    TW_ATTR(AdamAttrs, wd, kWd),
    TW_ATTR(AdamAttrs, rescale_grad, kRescale),
    TW_ATTR(AdamAttrs, clip_gradient, kClip),
    TW_ATTR(AdamAttrs, lazy_update, "Accepted for compatibility.")};
TW_OP(adam_update) = step_of<AdamAttrs>(
    {
        .name = "adam_update",
        .doc = "mean = beta1 mean + (1 - beta1) g; var = beta2 var + (1 - beta2) g^2; weight -= lr mean / (sqrt(var) + "
               "epsilon). Kingma and Ba, 2014.",
        .names = {"npx.adam_update", "nd.adam_update"},
        .attrs = schema<AdamAttrs>(kAdamFields),
        .in = {{{.name = "mean"}, {.name = "var"}}},
        .samples = {{{.in = {{{3, 4}, {3, 4}, {3, 4}, {{3, 4}, Domain::positive}}}, .attrs = "lr=0.1"}}},
    },
    [](auto& a, auto& x, auto g, auto* s) {
      using C = decltype(g);
      C b1 = static_cast<C>(a.beta1), b2 = static_cast<C>(a.beta2);
      s[0] = b1 * s[0] + (1 - b1) * g;
      s[1] = b2 * s[1] + (1 - b2) * g * g;
      x -= static_cast<C>(a.lr) * s[0] / (std::sqrt(s[1]) + static_cast<C>(a.epsilon));
    });

inline constexpr Field kAdaGradFields[] = {
    TW_ATTR(AdaGradAttrs, lr, kLr, .required = true), TW_ATTR(AdaGradAttrs, epsilon, "Added to the root."),
    TW_ATTR(AdaGradAttrs, wd, kWd), TW_ATTR(AdaGradAttrs, rescale_grad, kRescale),
    TW_ATTR(AdaGradAttrs, clip_gradient, kClip)};
TW_OP(adagrad_update) = step_of<AdaGradAttrs>(
    {
        .name = "adagrad_update",
        .doc = "history += g^2; weight -= lr g / (sqrt(history) + epsilon). Duchi et al., 2011.",
        .names = {"npx.adagrad_update", "nd.adagrad_update"},
        .attrs = schema<AdaGradAttrs>(kAdaGradFields),
        .in = {{{.name = "history"}}},
        .samples = {{{.in = {{{3, 4}, {3, 4}, {{3, 4}, Domain::positive}}}, .attrs = "lr=0.1"}}},
    },
    [](auto& a, auto& x, auto g, auto* s) {
      using C = decltype(g);
      s[0] += g * g;
      x -= static_cast<C>(a.lr) * g / (std::sqrt(s[0]) + static_cast<C>(a.epsilon));
    });

inline constexpr Field kRmsPropFields[] = {
    TW_ATTR(RmsPropAttrs, lr, kLr, .required = true),
    TW_ATTR(RmsPropAttrs, rho, "Decay of the means.", .renames = "gamma1"),
    TW_ATTR(RmsPropAttrs, epsilon, "Added under the root."),
    TW_ATTR(RmsPropAttrs, wd, kWd),
    TW_ATTR(RmsPropAttrs, rescale_grad, kRescale),
    TW_ATTR(RmsPropAttrs, clip_gradient, kClip),
    TW_ATTR(RmsPropAttrs, clip_weights, "Bound of the weights; 0 or less: none.")};
inline constexpr Field kRmsPropAlexFields[] = {
    kRmsPropFields[0],
    kRmsPropFields[1],
    TW_ATTR(RmsPropAttrs, momentum, "How much of the last step is kept.", .renames = "gamma2"),
    kRmsPropFields[2],
    kRmsPropFields[3],
    kRmsPropFields[4],
    kRmsPropFields[5],
    kRmsPropFields[6]};
template <class C> static void bound_weight(C& x, double limit) {
  if (limit > 0) x = std::min(std::max(x, static_cast<C>(-limit)), static_cast<C>(limit));
}
TW_OP(rmsprop_update) = step_of<RmsPropAttrs>(
    {
        .name = "rmsprop_update",
        .doc = "n = rho n + (1 - rho) g^2; weight -= lr g / sqrt(n + epsilon). Tieleman and Hinton, 2012.",
        .names = {"npx.rmsprop_update", "nd.rmsprop_update"},
        .attrs = schema<RmsPropAttrs>(kRmsPropFields),
        .in = {{{.name = "n"}}},
        .samples = {{{.in = {{{3, 4}, {3, 4}, {{3, 4}, Domain::positive}}}, .attrs = "lr=0.1"}}},
    },
    [](auto& a, auto& x, auto g, auto* s) {
      using C = decltype(g);
      C rho = static_cast<C>(a.rho);
      s[0] = rho * s[0] + (1 - rho) * g * g;
      x -= static_cast<C>(a.lr) * g / std::sqrt(s[0] + static_cast<C>(a.epsilon));
      bound_weight(x, a.clip_weights);
    });
TW_OP(rmspropalex_update) = step_of<RmsPropAttrs>(
    {
        .name = "rmspropalex_update",
        .doc = "RMSProp around the mean, with momentum: delta = momentum delta - lr g / sqrt(n - mean^2 + epsilon); "
               "weight "
               "+= delta. Graves, 2013.",
        .names = {"npx.rmspropalex_update", "nd.rmspropalex_update"},
        .attrs = schema<RmsPropAttrs>(kRmsPropAlexFields),
        .in = {{{.name = "n"}, {.name = "g"}, {.name = "delta"}}},
        .samples = {{{.in = {{{3, 4}, {3, 4}, {{3, 4}, Domain::above_one}, {{3, 4}, Domain::unit}, {3, 4}}},
                      .attrs = "lr=0.1"}}},
    },
    [](auto& a, auto& x, auto g, auto* s) {
      using C = decltype(g);
      C rho = static_cast<C>(a.rho);
      s[0] = rho * s[0] + (1 - rho) * g * g;
      s[1] = rho * s[1] + (1 - rho) * g;
      s[2] = static_cast<C>(a.momentum) * s[2] -
             static_cast<C>(a.lr) * g / std::sqrt(s[0] - s[1] * s[1] + static_cast<C>(a.epsilon));
      x += s[2];
      bound_weight(x, a.clip_weights);
    });

inline constexpr Field kAdaDeltaFields[] = {TW_ATTR(AdaDeltaAttrs, lr, kLr),
                                            TW_ATTR(AdaDeltaAttrs, rho, "Decay of the means."),
                                            TW_ATTR(AdaDeltaAttrs, epsilon, "Added under the roots."),
                                            TW_ATTR(AdaDeltaAttrs, wd, kWd),
                                            TW_ATTR(AdaDeltaAttrs, rescale_grad, kRescale),
                                            TW_ATTR(AdaDeltaAttrs, clip_gradient, kClip)};
TW_OP(adadelta_update) = step_of<AdaDeltaAttrs>(
    {
        .name = "adadelta_update",
        .doc = "acc_g = rho acc_g + (1 - rho) g^2; d = sqrt((acc_delta + eps) / (acc_g + eps)) g; acc_delta = rho "
               "acc_delta + (1 - rho) d^2; weight -= lr d. Zeiler, 2012.",
        .names = {"npx.adadelta_update", "nd.adadelta_update"},
        .attrs = schema<AdaDeltaAttrs>(kAdaDeltaFields),
        .in = {{{.name = "acc_g"}, {.name = "acc_delta"}}},
        .samples = {{{.in = {{{3, 4}, {3, 4}, {{3, 4}, Domain::positive}, {{3, 4}, Domain::positive}}},
                      .attrs = "rho=0.9"}}},
    },
    [](auto& a, auto& x, auto g, auto* s) {
      using C = decltype(g);
      C rho = static_cast<C>(a.rho), eps = static_cast<C>(a.epsilon);
      s[0] = rho * s[0] + (1 - rho) * g * g;
      C d = std::sqrt((s[1] + eps) / (s[0] + eps)) * g;
      s[1] = rho * s[1] + (1 - rho) * d * d;
      x -= static_cast<C>(a.lr) * d;
    });

}  // namespace twibil::ops
