// SPDX-License-Identifier: Apache-2.0
// One message of a protocol buffer in memory. protozero checks every length; that a field has the type in which it is
// read is checked here, where protozero would only assert it.
#pragma once
#include <protozero/pbf_reader.hpp>
#include <string>

#include "base/error.h"

namespace twibil::io {

class OnnxMessage {
 public:
  explicit OnnxMessage(protozero::data_view bytes) : reader_(bytes) {}
  explicit OnnxMessage(const std::string& bytes) : reader_(bytes) {}

  bool next() { return reader_.next(); }
  uint32_t number() const { return reader_.tag(); }
  void skip() { reader_.skip(); }
  bool is_bytes() const { return reader_.wire_type() == protozero::pbf_wire_type::length_delimited; }

  protozero::data_view bytes() {
    need(protozero::pbf_wire_type::length_delimited, "bytes");
    return reader_.get_view();
  }
  std::string string() {
    protozero::data_view v = bytes();
    return {v.data(), v.size()};
  }
  int64_t integer() {
    need(protozero::pbf_wire_type::varint, "a whole number");
    return reader_.get_int64();
  }
  double real() {
    need(protozero::pbf_wire_type::fixed32, "a float");
    return static_cast<double>(reader_.get_float());
  }
  /// Numbers one after the other in a field of bytes, or one in a field of its own.
  template <class List> void add_integers(List& list) {
    if (!is_bytes()) return list.push_back(integer());
    for (int64_t n : reader_.get_packed_int64()) list.push_back(n);
  }
  template <class List> void add_reals(List& list) {
    if (!is_bytes()) return list.push_back(real());
    for (float x : reader_.get_packed_float()) list.push_back(static_cast<double>(x));
  }

 private:
  void need(protozero::pbf_wire_type type, const char* what) const {
    TW_CHECK(reader_.wire_type() == type, value, "field ", reader_.tag(), " must be ", what,
             "; the file is no ONNX model, or it is damaged");
  }
  protozero::pbf_reader reader_;
};

}  // namespace twibil::io
