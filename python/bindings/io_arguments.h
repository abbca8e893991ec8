// SPDX-License-Identifier: Apache-2.0
// What the functions on files and pictures share: arrays as bytes and back, paths, work without the interpreter's lock.
#pragma once
#include <cstring>
#include <string>

#include "api/io/file.h"
#include "api/io/picture.h"
#include "convert.h"
#include "runtime/launch.h"

namespace twibil::python {

/// Lets other Python threads run until the end of the scope, in which no Python object and no Value may be touched.
class WithoutLock {
 public:
  WithoutLock() : state_(PyEval_SaveThread()) {}
  ~WithoutLock() { PyEval_RestoreThread(state_); }
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  PyThreadState* state_;
};

/// str, bytes or os.PathLike.
inline std::string to_path(PyObject* o) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(o, &bytes)) throw PythonError{};
  const Ref held(bytes);
  return {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
}

/// The array itself when its elements lie row by row, else a copy that does; its data is there when this returns.
inline Val row_major(PyObject* o, const char* op, const char* argument) {
  Val v = require_operand(o, op, argument);
  if (v->has(kStrided)) v = to_array(o, {});
  wait_to_read(*v);
  return v;
}

inline io::ByteView bytes_of_value(const Value& v) {
  return {v.data, static_cast<size_t>(v.size() * size_of(v.dtype()))};
}

inline Val value_from_bytes(DType dtype, std::span<const int64_t> shape, io::ByteView bytes) {
  Val v = Val::adopt(new_value(dtype, shape));
  TW_ASSERT(static_cast<size_t>(v->size() * size_of(dtype)) == bytes.size());
  if (!bytes.empty()) std::memcpy(v->data, bytes.data(), bytes.size());
  return v;
}

inline Val value_from_picture(const io::Picture& p) {
  const int64_t shape[] = {p.height, p.width, p.channels};
  return value_from_bytes(DType::uint8, shape, std::as_bytes(std::span(p.pixels)));
}

inline io::Picture to_picture(PyObject* o, const char* op) {
  const Val v = row_major(o, op, "picture");
  TW_CHECK(v->dtype() == DType::uint8 && v->rank() == 3, type, op,
           ": a picture must be uint8 of shape [height, width, ", "channels]; got ", v->dtype(), " of shape ",
           v->shape());
  io::Picture picture(v->dims[0], v->dims[1], v->dims[2]);
  if (!picture.pixels.empty()) std::memcpy(picture.pixels.data(), v->data, picture.pixels.size());
  return picture;
}

}  // namespace twibil::python
