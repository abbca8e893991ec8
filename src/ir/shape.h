// SPDX-License-Identifier: Apache-2.0
// Shapes and signatures: what is known about a value without its data.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <span>

#include "base/checked.h"
#include "base/dtype.h"

namespace twibil {

inline constexpr int kMaxRank = 8;
inline constexpr int64_t kUnknownDim = -1;  // in graphs only: a size that is not known before data arrives

/// Up to 8 sizes, kept in place. A rank of zero is a scalar; a size of zero is an empty array.
class Shape {
 public:
  constexpr Shape() = default;
  Shape(std::initializer_list<int64_t> dims) { assign({dims.begin(), dims.size()}); }
  explicit Shape(std::span<const int64_t> dims) { assign(dims); }
  /// From a whole row of sizes, of which `rank` count: one fixed copy instead of a loop.
  Shape(const int64_t (&dims)[kMaxRank], int rank) : rank_(static_cast<uint8_t>(rank)) {
    for (int i = 0; i < kMaxRank; ++i) dims_[i] = dims[i];
  }
  int rank() const { return rank_; }
  int64_t& operator[](int i) { return dims_[i]; }
  int64_t operator[](int i) const { return dims_[i]; }
  void push_back(int64_t d) {
    check_rank(rank_ + 1);
    dims_[rank_++] = d;
  }
  void insert(int at, int64_t d) {
    push_back(d);
    std::rotate(dims_ + at, dims_ + rank_ - 1, dims_ + rank_);
  }
  void erase(int at) { std::copy(dims_ + at + 1, dims_ + rank_, dims_ + at), --rank_; }
  void resize(int rank) {
    check_rank(rank);
    for (int i = rank_; i < rank; ++i) dims_[i] = 1;
    rank_ = static_cast<uint8_t>(rank);
  }
  const int64_t* data() const { return dims_; }
  int64_t* data() { return dims_; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + rank_; }
  std::span<const int64_t> span() const { return {dims_, static_cast<size_t>(rank_)}; }
  operator std::span<const int64_t>() const { return span(); }
  int64_t size() const { return checked_product(span()); }
  bool operator==(const Shape& o) const { return std::equal(begin(), end(), o.begin(), o.end()); }

 private:
  static void check_rank(size_t rank) {
    TW_CHECK(rank <= kMaxRank, value, "arrays have at most ", kMaxRank, " dimensions; got ", rank);
  }
  void assign(std::span<const int64_t> dims) {
    check_rank(dims.size());
    std::copy(dims.begin(), dims.end(), dims_);
    rank_ = static_cast<uint8_t>(dims.size());
  }
  int64_t dims_[kMaxRank] = {};
  uint8_t rank_ = 0;
};
inline void append_part(std::string& to, const Shape& s) { append_part(to, s.span()); }

/// Shape and dtype of a value. An absent optional input has the unknown dtype.
struct Sig {
  Shape shape;
  DType dtype = kUnknownDType;
  bool weak = false;   // a Python scalar: does not take part in promotion
  int64_t number = 0;  // of a weak integer: what it is, so that one that does not fit a dtype is noticed
  int rank() const { return shape.rank(); }
  bool present() const { return dtype != kUnknownDType; }
};
inline void append_part(std::string& to, const Sig& s) {
  append_part(to, s.dtype);
  append_part(to, s.shape.span());
}

/// Row-major strides in elements.
inline void contiguous_strides(std::span<const int64_t> dims, int64_t* strides) {
  int64_t step = 1;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) strides[i] = step, step *= std::max<int64_t>(dims[i], 1);
}

/// Where the elements of a view lie inside its root: offset and strides count elements.
struct Layout {
  Shape shape;
  int64_t strides[kMaxRank] = {};
  int64_t offset = 0;
  bool possible = true;  // false: this layout cannot be expressed as a view (a reshape of a transposed array)
};

/// Axis in [0, rank), from one that may count from the end. `who` starts the message.
inline int normalize_axis(int64_t axis, int rank, std::string_view who) {
  TW_CHECK(axis >= -rank && axis < rank, value, who, ": axis ", axis, " is out of range for an array with ", rank,
           rank == 1 ? " dimension" : " dimensions",
           rank ? text("; valid is ", -rank, " to ", rank - 1) : std::string());
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// Whether `from` broadcasts to exactly `to`.
inline bool broadcasts_to(const Shape& from, const Shape& to) {
  int shift = to.rank() - from.rank();
  bool fits = shift >= 0;
  for (int i = 0; fits && i < from.rank(); ++i) fits = from[i] == 1 || from[i] == to[i + shift];
  return fits;
}

/// NumPy's broadcasting of two shapes.
inline Shape broadcast(const Shape& a, const Shape& b, std::string_view who) {
  const Shape& big = a.rank() >= b.rank() ? a : b;
  const Shape& small = a.rank() >= b.rank() ? b : a;
  Shape out = big;
  int shift = big.rank() - small.rank();
  for (int i = 0; i < small.rank(); ++i) {
    int64_t x = big[i + shift], y = small[i];
    if (x == y || y == 1) continue;
    TW_CHECK(x == 1, value, who, ": shapes ", a, " and ", b, " do not broadcast together (sizes ", x, " and ", y,
             " differ and neither is 1)");
    out[i + shift] = y;
  }
  return out;
}

}  // namespace twibil
