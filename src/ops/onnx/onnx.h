// SPDX-License-Identifier: Apache-2.0
// What the operators share that exist for ONNX's sake. They are composed of others; inputs whose elements decide shapes
// (Slot::value) are looked at while the call is expanded.
#pragma once
#include <vector>

#include "ops/forms.h"
#include "ops/legacy/slices.h"
#include "ops/shape/join.h"

namespace twibil::ops {

/// A call of an operator whose attributes are set by name: With(op_take).set("axis", 1)({x, i}).
class With {
 public:
  explicit With(const OpDef& op);
  With& set(const char* name, int64_t v);
  With& set(const char* name, int v) { return set(name, int64_t{v}); }
  With& set(const char* name, bool v) { return set(name, int64_t{v}); }
  With& set(const char* name, double v);
  With& set(const char* name, DType v);
  With& set(const char* name, const IntList& v);
  With& set(const char* name, const char* word);
  With& set(const char* name, const Scalar& v);
  Val operator()(std::initializer_list<Val> in) const;
  Vals all(std::span<const Val> in) const;

 private:
  const Field& field(const char* name) const;
  const OpDef& op_;
  std::vector<std::byte> attrs_;
};

/// Whether the elements are there to be looked at.
inline bool is_known(const Val& v) { return v && !v->has(kTraced); }
/// The elements of an array that must be known; else the error says that the result's shape depends on the data.
std::vector<int64_t> ints_of(const Val& v, const char* who);
std::vector<double> reals_of(const Val& v, const char* who);
int64_t int_of(const Val& v, const char* who);
double real_of(const Val& v, const char* who);
IntList list_of(const std::vector<int64_t>& v, const char* who);

/// An array of whole numbers, a number as an array of a dtype.
Val int_array(const std::vector<int64_t>& v);
Val int_array(const std::vector<int64_t>& v, const Shape& shape);
Val real_array(const std::vector<double>& v, const Shape& shape, DType t);
Val number(double v, DType t);
Val full(const Shape& shape, const Scalar& v, DType t);

/// A number that takes the dtype of what it meets, where the element is known; else the array as it is.
Val as_weak(const Val& v);
/// Tables that are made while a call is expanded have a limit, so that a claimed size costs nothing.
inline void check_table(int64_t n, const char* who) {
  constexpr int64_t kLongestTable = int64_t{1} << 26;
  TW_CHECK(n <= kLongestTable, value, who, ": more than ", kLongestTable, " positions are not supported; got ", n);
}
/// Distinct axes in [0, rank), ascending.
std::vector<int> axes_of(const std::vector<int64_t>& given, int rank, const char* who);
inline Shape shape_of(const Val& v) { return Shape(v->shape()); }
/// Zeros or another number around x; negative counts cut off.
Val pad_or_cut(const Val& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after, const char* mode,
               const Scalar& fill);
/// Attributes of spatial operators as ONNX says them.
struct WindowAttrs {
  IntList kernel_shape, strides, dilations, pads;
  Choice auto_pad;
  int64_t group = 1;                                                         // of convolutions
  IntList output_padding, output_shape;                                      // of transposed ones
  bool ceil_mode = false, count_include_pad = false, storage_order = false;  // of pooling
  int64_t p = 2, outputs = 1;
};
enum AutoPad { kNotSet, kSameUpper, kSameLower, kNoPad };
inline constexpr const char* kAutoPads = "NOTSET|SAME_UPPER|SAME_LOWER|VALID";
/// One axis of a window that walks over data.
struct Window {
  int64_t kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  int64_t covered() const { return (kernel - 1) * dilation + 1; }
};
/// The windows along the axes after the first two, with the padding that is meant.
std::vector<Window> windows_of(const WindowAttrs& a, std::span<const int64_t> kernel, const Val& x, const char* who);

}  // namespace twibil::ops
