// SPDX-License-Identifier: Apache-2.0
// Arrays from many threads at once: queued and inline work, gradients, views, batches handed from loaders to a trainer.
// The results are checked everywhere; under ThreadSanitizer these are the tests that look for races between the layers.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "engine/fixture.h"
#include "memory/allocator.h"
#include "twibil/array.h"
#include "twibil/nn.h"

namespace twibil {
namespace {

constexpr int kThreads = 4;
constexpr int64_t kQueued = 300000;  // elements: more than what runs on the calling thread

/// body(t) on each of a few threads at once.
template <class Body> void at_once(const Body& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { body(t); });
  for (std::thread& t : threads) t.join();
}

double sum(const Array& x) { return call("sum", {x}).item(); }

class Threads : public testing::Test {
 protected:
  void TearDown() override { wait_all(); }
  engine::Team team_;
};

TEST_F(Threads, ReadSharedArrays) {
  const Array small = Array::full({16}, 2), large = Array::ones({kQueued}) * 2;  // the second may still be computed
  at_once([&](int t) {
    for (int i = 0; i < 20; ++i) {
      Array y = small * t + small[3], z = large * t + large.slice(0, 1);
      EXPECT_EQ(sum(y), 16 * (2 * t + 2));
      if (i % 4 == 0) {
        EXPECT_EQ(z.slice(kQueued - 1, kQueued).item(), 2 * t + 2);
      }
    }
  });
}

TEST_F(Threads, ViewsOfOneArrayComeAndGo) {
  Array base = Array::ones({64, 64});
  at_once([&](int) {
    for (int i = 0; i < 500; ++i) {
      Array row = base[i % 64], block = base.slice(i % 32, i % 32 + 8).transpose();
      Array copy = row;
      EXPECT_EQ(copy.size() + block.size(), 64 + 8 * 64);
    }
  });
  EXPECT_EQ(sum(base), 64 * 64);
}

TEST_F(Threads, EachWritesItsOwnPart) {
  std::vector<Array> parts;
  for (int t = 0; t < kThreads; ++t) parts.push_back(Array::zeros({kQueued}));
  at_once([&](int t) {
    Array& mine = parts[static_cast<size_t>(t)];
    for (int i = 0; i < 10; ++i) {
      mine += Array(t);
      mine.slice(0, 10).assign(Array(-i));
    }
  });
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(sum(parts[static_cast<size_t>(t)]), 10.0 * t * (kQueued - 10) - 90);
}

TEST_F(Threads, GradientsOfQueuedAndInlineWork) {
  const Array data = Array::ones({kQueued});
  at_once([&](int t) {
    for (int64_t n : {int64_t{8}, kQueued}) {
      for (int i = 0; i < 6; ++i) {
        Array x = Array::full({n}, t);
        x.attach_grad();
        Array loss;
        {
          Record scope;
          Array y = x * data.slice(0, n);
          y += Array(1);
          loss = call("sum", {y * y});
        }
        loss.backward();
        EXPECT_EQ(x.grad().slice(n - 1, n).item(), 2.0 * (t + 1));
      }
    }
  });
}

TEST_F(Threads, PredictionsOfOneNetwork) {
  seed(1);
  const auto net = nn::sequential({nn::conv2d(8, 3, 1, 1), nn::batch_norm(), nn::relu(), nn::max_pool2d(2),
                                   nn::dense(32), nn::relu(), nn::dense(10)});
  const Array x = call("random_normal", {}, {{"size", std::vector<int64_t>{32, 3, 16, 16}}});
  const std::vector<float> want = (*net)(x).to_vector<float>();
  at_once([&](int) {
    for (int i = 0; i < 4; ++i) EXPECT_EQ((*net)(x).to_vector<float>(), want);
  });
}

/// Loaders make batches, one thread trains on them, as gluon's DataLoader does with threads.
TEST_F(Threads, LoadersFeedATrainer) {
  seed(2);
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<Array, Array>> batches;
  constexpr size_t kBatches = 24;
  std::atomic<int> next{0};
  std::vector<std::thread> loaders;
  for (int t = 0; t < kThreads - 1; ++t)
    loaders.emplace_back([&] {
      for (int i; (i = next++) < static_cast<int>(kBatches);) {
        std::vector<float> pixels(64 * 784, static_cast<float>(i % 5));
        Array x = Array::from(pixels, Shape{64, 784}) / 5 +
                  call("random_normal", {}, {{"size", std::vector<int64_t>{64, 784}}});
        Array label = Array::from(std::vector<int64_t>(64, i % 2), Shape{64});
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return batches.size() < 4; });
        batches.emplace_back(std::move(x), std::move(label));
        changed.notify_all();
      }
    });
  auto net = nn::sequential({nn::dense(128), nn::relu(), nn::dropout(0.2), nn::dense(2)});
  auto optimizer = nn::sgd(0.01, 0.9);
  for (size_t i = 0; i < kBatches; ++i) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !batches.empty(); });
    auto [x, label] = std::move(batches.front());
    batches.pop_front();
    changed.notify_all();
    lock.unlock();
    Array loss;
    {
      Record scope;
      loss = nn::softmax_cross_entropy((*net)(x), label);
    }
    loss.backward();
    optimizer->step(*net, 64);
    if (i % 6 == 5) {
      EXPECT_LT(call("mean", {loss}).item(), 100);
    }
  }
  for (std::thread& t : loaders) t.join();
}

TEST_F(Threads, ErrorsSurfaceOnTheThreadThatLooks) {
  const Array table = Array::ones({4, kQueued});
  at_once([&](int t) {
    for (int i = 0; i < 4; ++i) {
      Array bad = call("embedding", {Array::from(std::vector<int64_t>{1, 7 + t}, Shape{2}), table});
      Array after = bad * 2;
      EXPECT_THROW(after.wait_to_read(), Error);
      EXPECT_THROW(bad.wait_to_read(), Error);
    }
  });
}

TEST_F(Threads, MemoryFiguresWhileOthersAllocate) {
  const int64_t before = memory_stats().current_bytes;
  at_once([&](int t) {
    for (int i = 0; i < 40; ++i) {
      Array x = Array::ones({i % 2 ? 1000 * (t + 1) : kQueued});
      EXPECT_GE(memory_stats().reserved_bytes, 0);
      if (i % 8 == t) trim_memory();
      if (i % 16 == t) reset_peak_memory();
      x.wait_to_read();
    }
    engine::drain_retired();
  });
  wait_all();
  EXPECT_EQ(memory_stats().current_bytes, before);
}

TEST_F(Threads, RandomNumbersAreDrawnFromOneStream) {
  seed(5);
  std::mutex mutex;
  std::vector<float> drawn;
  at_once([&](int) {
    for (int i = 0; i < 50; ++i) {
      const double x = call("random_uniform", {}, {{"size", std::vector<int64_t>{1}}}).item();
      std::lock_guard lock(mutex);
      drawn.push_back(static_cast<float>(x));
    }
  });
  seed(5);
  std::vector<float> want;
  for (int i = 0; i < 50 * kThreads; ++i)
    want.push_back(static_cast<float>(call("random_uniform", {}, {{"size", std::vector<int64_t>{1}}}).item()));
  std::sort(drawn.begin(), drawn.end());
  std::sort(want.begin(), want.end());
  EXPECT_EQ(drawn, want);
}

}  // namespace
}  // namespace twibil
