// SPDX-License-Identifier: Apache-2.0
// The part of a key that consists of integer arrays and boolean masks.
#pragma once
#include <vector>

#include "array_object.h"
#include "ops/index/basic_index.h"

namespace twibil::python {

/// How many axes an entry of a key takes up: the rank of a mask, one for everything else.
int advanced_axes(PyObject* entry);

class AdvancedKey {
 public:
  bool empty() const { return indices_.empty(); }
  /// An ellipsis stands here: arrays on both sides of it are not neighbours.
  void ellipsis() { gap_ = !indices_.empty(); }
  /// Adds an integer, integer array, list or mask that indexes the axes from `axis` on of the basic result; `dims` are
  /// their sizes. Returns how many axes it takes.
  int add(PyObject* entry, int axis, std::span<const int64_t> dims);
  Val read(const Val& view) const;
  void write(Value& x, const ops::BasicIndexAttrs& basic, const Val& value) const;

 private:
  std::vector<Val> indices_;  // int64
  IntList axes_;
  bool gap_ = false, front_ = false;
};

}  // namespace twibil::python
