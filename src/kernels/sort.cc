// SPDX-License-Identifier: Apache-2.0
// Every element becomes an unsigned key whose order is the wanted one; keys are radix sorted together with positions.
#include "kernels/sort.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/recycled.h"
#include "kernels/copy_convert.h"
#include "kernels/copy_dims.h"

namespace twibil::kernels {
namespace {

template <class T> using KeyOf = std::conditional_t<sizeof(native_t<T>) == 8, uint64_t, uint32_t>;

// Ascending keys; NaN is the largest, in both directions.
template <class T> KeyOf<T> key_of(native_t<T> x, bool descending) {
  using Key = KeyOf<T>;
  constexpr Key kTop = Key{1} << (8 * sizeof(Key) - 1);
  Key key;
  if constexpr (kIsFloat<T>) {
    if (x != x) return static_cast<Key>(-1);
    key = std::bit_cast<Key>(x + native_t<T>{0});  // -0 + 0 is 0
    key = key & kTop ? ~key : key | kTop;
  } else {
    key = static_cast<Key>(static_cast<std::make_signed_t<Key>>(x)) ^ kTop;
  }
  return descending ? ~key : key;
}

template <class Key> struct Entry {
  Key key;
  int64_t index;
  bool operator<(const Entry& o) const { return key != o.key ? key < o.key : index < o.index; }
};

// Least significant byte first; passes in which all bytes agree are skipped.
template <class Key> void radix_sort(Recycled<Entry<Key>>& entries, Recycled<Entry<Key>>& other) {
  size_t n = entries.size();
  other.resize(n);
  for (size_t shift = 0; shift < 8 * sizeof(Key); shift += 8) {
    size_t start[257] = {};
    for (auto& e : entries) ++start[(e.key >> shift & 255) + 1];
    if (start[(entries[0].key >> shift & 255) + 1] == n) continue;
    for (int b = 0; b < 256; ++b) start[b + 1] += start[b];
    for (auto& e : entries) other[start[e.key >> shift & 255]++] = e;
    entries.swap(other);
  }
}

template <class T> class Sorter {
 public:
  using Key = KeyOf<T>;

  /// Orders n elements `step` apart; the first k places are final.
  const Recycled<Entry<Key>>& order(const T* x, int64_t n, int64_t step, bool descending, int64_t k) {
    entries_.resize(n);
    for (int64_t i = 0; i < n; ++i) entries_[i] = {key_of<T>(load(x, i * step), descending), i};
    if (k * 8 < n) std::partial_sort(entries_.begin(), entries_.begin() + k, entries_.end());
    else if (n <= 128) std::sort(entries_.begin(), entries_.end());
    else radix_sort(entries_, other_);
    return entries_;
  }

 private:
  Recycled<Entry<Key>> entries_, other_;
};

// body(sorter, element offset of the group) for every group, in parallel.
template <class T, class Body> void each_group(int64_t outer, int64_t n, int64_t inner, const Body& body) {
  if (n == 0) return;  // there may be 2^62 such groups
  parallel_for(outer * inner, std::max<int64_t>(1, kPiece / 8 / std::max<int64_t>(1, n)),
               [&](int64_t begin, int64_t end) {
                 Sorter<T> sorter;
                 for (int64_t g = begin; g < end; ++g) body(sorter, g / inner, g % inner);
               });
}

}  // namespace

void sort(DType dtype, int64_t outer, int64_t n, int64_t inner, bool descending, const void* x, void* values,
          int64_t* indices) {
  topk(dtype, outer, n, inner, n, descending, x, values, indices, nullptr);
}

void topk(DType dtype, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest, const void* x, void* values,
          int64_t* indices, uint8_t* mask) {
  TW_ASSERT(k >= 0 && k <= n);
  if (mask) std::fill_n(mask, outer * n * inner, uint8_t{0});
  dispatch(dtype, [&]<class T>() {
    each_group<T>(outer, n, inner, [&](Sorter<T>& sorter, int64_t o, int64_t i) {
      int64_t from = o * n * inner + i, to = o * k * inner + i;
      const T* source = static_cast<const T*>(x) + from;
      auto& order = sorter.order(source, n, inner, largest, k);
      for (int64_t j = 0; j < k; ++j) {
        int64_t at = order[j].index;
        if (values) static_cast<T*>(values)[to + j * inner] = source[at * inner];
        if (indices) indices[to + j * inner] = at;
        if (mask) mask[from + at * inner] = 1;
      }
    });
  });
}

int64_t unique(DType dtype, int64_t n, const void* x, void* values, int64_t* first, int64_t* inverse, int64_t* counts) {
  int64_t found = 0;
  if (n == 0) return 0;
  dispatch(dtype, [&]<class T>() {
    const T* source = static_cast<const T*>(x);
    Sorter<T> sorter;
    auto& order = sorter.order(source, n, 1, false, n);
    for (int64_t j = 0; j < n; ++j) {
      if (j == 0 || order[j].key != order[j - 1].key) {
        static_cast<T*>(values)[found] = source[order[j].index];
        if (first) first[found] = order[j].index;
        if (counts) counts[found] = 0;
        ++found;
      }
      if (counts) ++counts[found - 1];
      if (inverse) inverse[order[j].index] = found - 1;
    }
  });
  return found;
}

void search_sorted(DType dtype, int64_t n, const void* sorted, int64_t m, const void* values, bool right,
                   int64_t* dst) {
  dispatch(dtype, [&]<class T>() {
    const T *a = static_cast<const T*>(sorted), *v = static_cast<const T*>(values);
    parallel_for(m, kPiece / 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        auto key = key_of<T>(load(v, i), false);
        int64_t low = 0, high = n;
        while (low < high) {
          int64_t middle = low + (high - low) / 2;
          auto at = key_of<T>(load(a, middle), false);
          if (right ? at <= key : at < key) low = middle + 1;
          else high = middle;
        }
        dst[i] = low;
      }
    });
  });
}

}  // namespace twibil::kernels
