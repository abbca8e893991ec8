// SPDX-License-Identifier: Apache-2.0
// Random numbers from Philox4x32-10, a counter-based generator: element i of an operation is a function of
// (key, counter, i) alone, so results do not depend on threads, and a saved (key, counter) replays them.
#pragma once
#include <span>

#include "base/dtype.h"
#include "base/scalar.h"

namespace twibil::kernels {

/// key: the seed. counter: one per operation that draws; two operations with the same pair draw the same numbers.
struct RandomStream {
  uint64_t key = 0, counter = 0;
};

// dst is contiguous everywhere, n elements. Floating dtypes only, where not said otherwise.

/// n raw words.
void random_bits(RandomStream stream, int64_t n, uint32_t* dst);

/// low + (high - low) * u, u uniform in [0, 1) with as many random bits as the dtype has (11, 8, 24, 53).
void random_uniform(RandomStream stream, DType dtype, int64_t n, void* dst, double low = 0, double high = 1);

/// Normal with mean and standard deviation (Box-Muller; float32 and halves reach +-6.6, float64 +-8.5 deviations).
void random_normal(RandomStream stream, DType dtype, int64_t n, void* dst, double mean = 0, double deviation = 1);

/// value with probability p, else 0; any dtype. Dropout's mask is p = keep, value = 1 / keep. p is taken to 32 bits.
void random_bernoulli(RandomStream stream, double p, DType dtype, int64_t n, void* dst,
                      const Scalar& value = Scalar(1));

/// Integers in [low, high], both ends included, every value equally likely over the whole range of int64; any dtype.
void random_integers(RandomStream stream, int64_t low, int64_t high, DType dtype, int64_t n, void* dst);

/// Exponential with mean `scale`.
void random_exponential(RandomStream stream, DType dtype, int64_t n, void* dst, double scale = 1);

/// Gamma with shape alpha[i * alpha_step] (same dtype as dst; step 0 for one alpha) and `scale`; alpha <= 0 gives NaN.
void random_gamma(RandomStream stream, DType dtype, int64_t n, const void* alpha, int64_t alpha_step, double scale,
                  void* dst);

/// Beta from two gammas; a and b like alpha above.
void random_beta(RandomStream stream, DType dtype, int64_t n, const void* a, int64_t a_step, const void* b,
                 int64_t b_step, void* dst);

/// numpy.random.multinomial: counts[e * k + c] of `trials` draws among k = p.size() categories, for each of
/// `experiments`. p >= 0; the last category takes what p leaves below 1.
void random_multinomial(RandomStream stream, int64_t trials, std::span<const double> p, int64_t experiments,
                        int64_t* counts);

/// For each of `rows` rows of k weights (contiguous, any dtype, >= 0, not all zero; they need not sum to one) draws
/// `samples` indices: dst[row * samples + s].
void random_categorical(RandomStream stream, int64_t rows, int64_t k, DType dtype, const void* weights, int64_t samples,
                        int64_t* dst);

/// A random permutation of 0 .. n-1; shuffle and choice without replacement are gathers along it.
void random_permutation(RandomStream stream, int64_t n, int64_t* dst);

}  // namespace twibil::kernels
