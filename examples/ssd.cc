// SPDX-License-Identifier: Apache-2.0
// A single-shot detector in C++: one scale of anchors over a small network, trained on bright squares on noise, then
// asked where they are. The demo in Python is the full TinySSD.
#include <cstdio>
#include <cstdlib>

#include "twibil/nn.h"
#include "twibil/ops.h"

using namespace twibil;

constexpr int64_t kSide = 64, kBatch = 8;

/// Pictures (batch, 3, side, side) with one square each, and its label (batch, 1, 5).
static std::pair<Array, Array> make_batch(unsigned& state) {
  auto random = [&] { return static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f; };
  std::vector<float> x(kBatch * 3 * kSide * kSide), y;
  for (float& v : x) v = 0.3f * random();
  for (int64_t n = 0; n < kBatch; ++n) {
    int64_t size = 16 + static_cast<int64_t>(random() * 12),
            left = static_cast<int64_t>(random() * static_cast<float>(kSide - size)),
            top = static_cast<int64_t>(random() * static_cast<float>(kSide - size));
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t i = top; i < top + size; ++i)
        for (int64_t j = left; j < left + size; ++j)
          x[static_cast<size_t>(((n * 3 + c) * kSide + i) * kSide + j)] = 0.7f + 0.3f * random();
    auto unit = [](int64_t v) { return static_cast<float>(v) / kSide; };
    y.insert(y.end(), {0.0f, unit(left), unit(top), unit(left + size), unit(top + size)});
  }
  return {Array::from(x, Shape{kBatch, 3, kSide, kSide}), Array::from(y, Shape{kBatch, 1, 5})};
}

int main(int argc, char** argv) {
  int steps = argc > 1 ? std::atoi(argv[1]) : 150;
  try {
    seed(1);
    auto body = nn::sequential({nn::conv2d(16, 3, 1, 1), nn::batch_norm(), nn::relu(), nn::max_pool2d(2),
                                nn::conv2d(32, 3, 1, 1), nn::batch_norm(), nn::relu(), nn::max_pool2d(2),
                                nn::conv2d(32, 3, 1, 1), nn::batch_norm(), nn::relu(), nn::max_pool2d(2)});
    constexpr int64_t kAnchors = 3;
    auto classes = nn::conv2d(kAnchors * 2, 3, 1, 1), boxes = nn::conv2d(kAnchors * 4, 3, 1, 1);
    auto net = nn::sequential({body, classes, boxes});  // for its parameters only
    auto optimizer = nn::adam(0.003);
    unsigned state = 7;
    auto predict = [&](const Array& x, Array& anchors, Array& scores, Array& offsets) {
      Array map = (*body)(x);
      anchors = op::multibox_prior(map, {.sizes = {0.3, 0.4}, .ratios = {1, 0.8}});
      scores = (*classes)(map).transpose({0, 2, 3, 1}).reshape(Shape{x.dim(0), -1, 2});
      offsets = (*boxes)(map).transpose({0, 2, 3, 1}).reshape(Shape{x.dim(0), -1});
    };
    Array anchors, scores, offsets;
    for (int step = 0; step < steps; ++step) {
      auto [x, label] = make_batch(state);
      Array loss;
      {
        Record scope;
        predict(x, anchors, scores, offsets);
        auto target = op::multibox_target(anchors, label, scores.transpose({0, 2, 1}).detach());
        loss =
            nn::softmax_cross_entropy(scores, target[2]) + nn::l1_loss(offsets * target[1], target[0] * target[1]) * 4;
      }
      loss.backward();
      optimizer->step(*net, kBatch);
      if (step % 50 == 0) std::printf("step %3d: loss %.4f\n", step, op::mean(loss).item());
    }
    auto [x, label] = make_batch(state);
    predict(x, anchors, scores, offsets);
    Array found = op::multibox_detection(op::softmax(scores).transpose({0, 2, 1}), offsets, anchors);
    std::vector<double> rows = found.to_vector<double>(), truth = label.to_vector<double>();
    double overlap = 0;
    for (int64_t n = 0; n < kBatch; ++n) {
      const double* best = &rows[static_cast<size_t>(n * found.dim(1) * 6)];
      Array a = Array::from(std::vector<double>(best + 2, best + 6), Shape{1, 4}),
            b = Array::from(std::vector<double>(truth.begin() + n * 5 + 1, truth.begin() + n * 5 + 5), Shape{1, 4});
      overlap += op::box_iou(a, b).item() / kBatch;
      if (n < 3)
        std::printf("picture %lld: score %.2f box %.2f %.2f %.2f %.2f, truth %.2f %.2f %.2f %.2f\n",
                    static_cast<long long>(n), best[1], best[2], best[3], best[4], best[5], truth[n * 5 + 1],
                    truth[n * 5 + 2], truth[n * 5 + 3], truth[n * 5 + 4]);
    }
    std::printf("mean overlap of the best detections with the truth: %.2f\n", overlap);
    return overlap > 0.5 || steps < 100 ? 0 : 1;  // fewer steps are only a trial run
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
