// SPDX-License-Identifier: Apache-2.0
#include "passes/pack_arena.h"

#include <algorithm>

namespace twibil::passes {

namespace {

constexpr int kRepairs = 24;            // tries of the local search
constexpr size_t kManyBuffers = 10000;  // beyond, two orders are enough

int64_t aligned(int64_t n) { return (n + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

class Packer {
 public:
  explicit Packer(std::span<const Lifetime> buffers) : all_(buffers) {
    for (size_t i = 0; i < all_.size(); ++i)
      if (all_[i].bytes > 0) order_.push_back(static_cast<int>(i));
    best_.offsets.assign(all_.size(), 0);
    find_lower_bound();
  }

  Packing side_by_side() {
    for (int m : order_) best_.offsets[static_cast<size_t>(m)] = best_.bytes, best_.bytes += size(m);
    return std::move(best_);
  }

  Packing packed() {
    if (order_.empty()) return std::move(best_);
    best_.bytes = INT64_MAX;
    auto life = [&](int m) { return of(m).last - of(m).first; };
    auto area = [&](int m) { return static_cast<double>(size(m)) * (life(m) + 1); };
    attempt([&](int a, int b) { return size(a) > size(b); });
    attempt([&](int a, int b) { return life(a) != life(b) ? life(a) > life(b) : size(a) > size(b); });
    if (order_.size() <= kManyBuffers) {
      attempt([&](int a, int b) { return area(a) > area(b); });
      attempt([&](int a, int b) { return of(a).first < of(b).first; });
      attempt([&](int a, int b) { return of(a).last > of(b).last; });
      repair();
    }
    return std::move(best_);
  }

 private:
  struct Placed {
    int64_t begin, end;
    int first, last;
  };
  const Lifetime& of(int m) const { return all_[static_cast<size_t>(m)]; }
  int64_t size(int m) const { return aligned(of(m).bytes); }
  bool proven() const { return best_.bytes == best_.lower_bound; }

  void find_lower_bound() {
    int end = 0, begin = 0;
    for (const Lifetime& l : all_) end = std::max(end, l.last), begin = std::min(begin, l.first);
    std::vector<int64_t> change(static_cast<size_t>(end - begin) + 2);
    for (int m : order_) {
      change[static_cast<size_t>(of(m).first - begin)] += size(m);
      change[static_cast<size_t>(of(m).last - begin) + 1] -= size(m);
    }
    int64_t live = 0;
    for (int64_t c : change) live += c, best_.lower_bound = std::max(best_.lower_bound, live);
  }

  template <class Less> void attempt(Less less) {
    if (proven()) return;
    std::vector<int> order = order_;
    std::ranges::stable_sort(order, less);
    place(std::move(order));
  }

  /// Buffers in the given order, each at the lowest place that is free for its whole life.
  bool place(std::vector<int> order) {
    std::vector<int64_t> offsets(all_.size());
    std::vector<Placed> placed;  // by their begin
    placed.reserve(order.size());
    int64_t high = 0;
    for (int m : order) {
      const Lifetime& l = of(m);
      int64_t offset = 0;
      for (const Placed& p : placed) {
        if (p.first > l.last || l.first > p.last) continue;
        if (p.begin - offset >= size(m)) break;
        offset = std::max(offset, p.end);
      }
      high = std::max(high, offset + size(m));
      if (high >= best_.bytes) return false;
      offsets[static_cast<size_t>(m)] = offset;
      auto after = std::ranges::upper_bound(placed, offset, {}, &Placed::begin);
      placed.insert(after, {offset, offset + size(m), l.first, l.last});
    }
    best_.bytes = high;
    best_.offsets = std::move(offsets);
    best_order_ = std::move(order);
    return true;
  }

  /// The buffer at the top of the best packing came too late: it goes to the front of the order, again and again.
  void repair() {
    std::vector<int> order = best_order_;
    for (int i = 0; i < kRepairs && !proven(); ++i) {
      auto top = [&](int m) { return best_.offsets[static_cast<size_t>(m)] + size(m) == best_.bytes; };
      auto late = std::find_if(order.begin() + i % static_cast<int>(order.size()), order.end(), top);
      if (late == order.end()) late = std::ranges::find_if(order, top);
      std::rotate(order.begin(), late, late + 1);
      if (!place(order)) continue;
      order = best_order_;
    }
  }

  std::span<const Lifetime> all_;
  std::vector<int> order_, best_order_;
  Packing best_;
};

}  // namespace

Packing pack_arena(std::span<const Lifetime> buffers, bool share) {
  Packer packer(buffers);
  return share ? packer.packed() : packer.side_by_side();
}

}  // namespace twibil::passes
