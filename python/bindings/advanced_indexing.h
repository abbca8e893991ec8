// SPDX-License-Identifier: Apache-2.0
// The part of a key that consists of integer arrays and boolean masks.
#pragma once
#include "array_object.h"
#include "ops/index/basic_index.h"

namespace twibil::python {

/// An entry of a key as an array: integers as int64, masks as bool. IndexError for what cannot be an index.
Val entry_array(PyObject* entry);
/// How many axes such an array takes up: the rank of a mask, one for everything else.
inline int advanced_axes(const Value& entry) { return entry.dtype() == DType::bool_ ? entry.rank() : 1; }

class AdvancedKey {
 public:
  bool empty() const { return count_ == 0; }
  /// An ellipsis stands here: arrays on both sides of it are not neighbours.
  void ellipsis() { gap_ = count_ > 0; }
  /// Adds an entry_array that indexes the axes from `axis` on of the basic result; `dims` are their sizes. Returns how
  /// many axes it takes.
  int add(Val entry, int axis, std::span<const int64_t> dims);
  /// The elements of `x`, which is the basic part of the key applied to the array.
  Val read(Val x);
  void write(Val x, Val value);

 private:
  void push_back(Val index, int axis);
  Val operands_[kMaxRank + 2];  // room for the array and the value, then the index arrays
  int count_ = 0;               // of index arrays
  IntList axes_;
  bool gap_ = false, front_ = false;
};

}  // namespace twibil::python
