// SPDX-License-Identifier: Apache-2.0
// Each group is sequential; groups that lie side by side (inner > 1) run together as tiles of columns.
#include "kernels/scan.h"

#include <type_traits>

#include "kernels/copy.h"
#include "kernels/copy_convert.h"

namespace twibil::kernels {
namespace {

constexpr int64_t kTile = 256;

// Integers accumulate as uint64, whose wrapping is defined.
template <class T> using ScanType = std::conditional_t<kIsFloat<T>, native_t<T>, uint64_t>;

template <Scan kOp, class A> A step(A a, A b) { return kOp == Scan::sum ? a + b : a * b; }

template <class T> ScanType<T> widen(const T* x, int64_t i) {
  if constexpr (kIsFloat<T>) return load(x, i);
  else return static_cast<uint64_t>(static_cast<int64_t>(load(x, i)));
}

template <class A> DType scan_dtype() { return std::is_same_v<A, uint64_t> ? DType::int64 : dtype_of<A>; }

template <Scan kOp, class T> class Scanner {
 public:
  using A = ScanType<T>;
  Scanner(DType out, int64_t n, int64_t inner, bool reverse, const void* x, void* y)
      : out_(out), n_(n), inner_(inner), reverse_(reverse), x_(static_cast<const T*>(x)), y_(static_cast<char*>(y)) {}

  void row(int64_t group) const {  // inner = 1
    A sum = kOp == Scan::sum ? A{0} : A{1}, buffer[kTile];
    for (int64_t done = 0; done < n_;) {
      int64_t m = std::min(kTile, n_ - done), first = group * n_ + (reverse_ ? n_ - done - m : done);
      for (int64_t k = 0; k < m; ++k) {
        int64_t j = reverse_ ? m - 1 - k : k;
        buffer[j] = sum = step<kOp>(sum, widen(x_, first + j));
      }
      write(buffer, first, m);
      done += m;
    }
  }

  void columns(int64_t group, int64_t first, int64_t width) const {
    A sum[kTile];
    for (int64_t i = 0; i < width; ++i) sum[i] = kOp == Scan::sum ? A{0} : A{1};
    for (int64_t k = 0; k < n_; ++k) {
      int64_t at = (group * n_ + (reverse_ ? n_ - 1 - k : k)) * inner_ + first;
      for (int64_t i = 0; i < width; ++i) sum[i] = step<kOp>(sum[i], widen(x_, at + i));
      write(sum, at, width);
    }
  }

 private:
  void write(const A* values, int64_t at, int64_t n) const {
    convert_row(scan_dtype<A>(), out_, values, y_ + at * size_of(out_), n);
  }
  DType out_;
  int64_t n_, inner_;
  bool reverse_;
  const T* x_;
  char* y_;
};

}  // namespace

void scan(Scan op, DType in, DType out, int64_t outer, int64_t n, int64_t inner, bool reverse, const void* x, void* y) {
  if (outer == 0 || n == 0 || inner == 0) return;
  dispatch(in, [&]<class T>() {
    auto run = [&](const auto& scanner) {
      int64_t tiles = (inner + kTile - 1) / kTile, width = std::min(inner, kTile);
      parallel_for(outer * tiles, std::max<int64_t>(1, kPiece / (n * width)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (inner == 1) scanner.row(i);
          else scanner.columns(i / tiles, i % tiles * kTile, std::min(kTile, inner - i % tiles * kTile));
        }
      });
    };
    if (op == Scan::sum) run(Scanner<Scan::sum, T>(out, n, inner, reverse, x, y));
    else run(Scanner<Scan::prod, T>(out, n, inner, reverse, x, y));
  });
}

}  // namespace twibil::kernels
