// SPDX-License-Identifier: Apache-2.0
// Arrays for C++: handles with NumPy's semantics. Slices, transposes and reshapes are views; errors are exceptions.
//
//   Array a = Array::ones({10}), b = Array::ones({10}) * 2;
//   auto c = b * a;
//   auto d = c + 1;
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "ir/value.h"

namespace twibil {

struct OpDef;

class TW_API Array {
 public:
  Array() = default;     // no array: an optional argument that is not given; asking it for anything is a value error
  Array(double number);  // a weak scalar: takes the dtype of the arrays it meets
  Array(int number);
  explicit Array(Val value) : value_(std::move(value)) {}

  static Array zeros(std::initializer_list<int64_t> shape, DType dtype = DType::float32);
  static Array ones(std::initializer_list<int64_t> shape, DType dtype = DType::float32);
  static Array full(std::initializer_list<int64_t> shape, double value, DType dtype = DType::float32);
  static Array zeros(const Shape& shape, DType dtype = DType::float32);
  /// Copies the elements that the shape needs, of the dtype and row by row, from memory of the caller.
  static Array from(const void* data, const Shape& shape, DType dtype);
  template <class T> static Array from(const std::vector<T>& elements, const Shape& shape) {
    TW_CHECK(shape.size() == static_cast<int64_t>(elements.size()), value, "Array::from: shape ", shape, " needs ",
             shape.size(), " elements; got ", elements.size());
    return from(elements.data(), shape, dtype_of<T>);
  }

  explicit operator bool() const { return static_cast<bool>(value_); }
  Shape shape() const { return Shape(get().shape()); }
  int64_t size() const { return get().size(); }
  int64_t dim(int axis) const;  // counts from the end when negative
  int rank() const { return get().rank(); }
  DType dtype() const { return get().dtype(); }

  /// The elements in row-major order, once they are computed; throws what went wrong in them.
  template <class T> std::vector<T> to_vector() const {
    std::vector<T> elements(static_cast<size_t>(size()));
    read(elements.data(), dtype_of<T>);
    return elements;
  }
  double item() const;  // of an array with one element
  void wait_to_read() const;

  Array operator[](int64_t i) const;                            // a view of row i
  Array slice(int64_t begin, int64_t end, int axis = 0) const;  // a view of [begin, end)
  Array reshape(const Shape& shape) const;                      // one size may be -1
  Array transpose(std::initializer_list<int64_t> axes = {}) const;
  Array astype(DType dtype) const;
  Array copy() const;
  Array detach() const;            // the same elements without history
  void assign(const Array& from);  // writes all elements; `from` is broadcast and cast

  void attach_grad(const char* grad_req = "write");
  Array grad() const;  // empty without attach_grad()
  /// Gradients of this array (ones as its own) for every variable it came from.
  void backward(const Array& head_gradient = {}, bool retain_graph = false) const;

  const Val& value() const { return value_; }

 private:
  Value& get() const {
    TW_CHECK(value_, value,
             "Array: this one is empty (it was made without a value, or stands for an argument not given)");
    return *value_;
  }
  void read(void* to, DType dtype) const;
  Val value_;
};

TW_API Array operator+(const Array& a, const Array& b);
TW_API Array operator-(const Array& a, const Array& b);
TW_API Array operator*(const Array& a, const Array& b);
TW_API Array operator/(const Array& a, const Array& b);
TW_API Array operator-(const Array& a);
TW_API Array operator<(const Array& a, const Array& b);
TW_API Array operator>(const Array& a, const Array& b);
TW_API Array operator==(const Array& a, const Array& b);
TW_API Array& operator+=(Array& a, const Array& b);
TW_API Array& operator-=(Array& a, const Array& b);
TW_API std::string to_string(const Array& a);  // "array([[1, 2], [3, 4]], float32)"

/// Any registered operator by its name, with attributes by theirs.
using Attribute =
    std::variant<bool, int64_t, double, DType, std::string, std::vector<int64_t>, std::vector<double>, std::monostate>;
struct NamedAttribute {
  const char* name;
  Attribute value;
};
TW_API std::vector<Array> call_all(const OpDef& op, std::initializer_list<Array> inputs,
                                   std::initializer_list<NamedAttribute> attributes = {});
TW_API std::vector<Array> call_all(const OpDef& op, const std::vector<Array>& inputs,
                                   std::initializer_list<NamedAttribute> attributes = {});
TW_API Array call(const char* op, std::initializer_list<Array> inputs,
                  std::initializer_list<NamedAttribute> attributes = {});

/// Records what happens in its scope for gradients, in training mode unless said otherwise.
class TW_API Record {
 public:
  explicit Record(bool training = true);
  ~Record();
  Record(const Record&) = delete;

 private:
  unsigned before_;
};
/// Nothing in its scope is recorded.
class TW_API NoGradient {
 public:
  NoGradient();
  ~NoGradient();
  NoGradient(const NoGradient&) = delete;

 private:
  unsigned before_;
};

TW_API void seed(uint64_t number);  // starts the stream of random numbers anew
TW_API void wait_all();             // until all queued work is done; throws its first error

}  // namespace twibil

namespace tw = twibil;
