// SPDX-License-Identifier: Apache-2.0
// Arrays and numbers as text in an attribute of a graph file, and the words of such attributes.
#pragma once
#include <string>
#include <string_view>

#include "ir/value.h"

namespace twibil::io {

inline constexpr const char* kShapeWord = "__shape__";           // MXNet's: sizes of a variable
inline constexpr const char* kDTypeWord = "__dtype__";           // MXNet's: its number for the dtype
inline constexpr const char* kNumberWord = "__number__";         // a constant number
inline constexpr const char* kConstantWord = "__constant__";     // a constant array
inline constexpr const char* kCapturedWord = "__captured__";     // an array that a traced function used from outside
inline constexpr const char* kInputsWord = "__inputs__";         // "101": the second input is absent
inline constexpr const char* kGraphNameWord = "__graph_name__";  // of an operator, as the file had it; not written
inline constexpr const char* kUnknownSizesWord = "__unknown_sizes__";  // the shape of a created array, with zeros
inline constexpr const char* kBackwardName = "_twibil_backward";

/// MXNet's number for a dtype, as in .params files; a value error for a number that means none of ours.
int type_flag(DType t);
DType dtype_of_flag(int64_t flag);

/// A .params file of one array, in base64.
std::string store_value(const Val& v);
Val restore_value(std::string_view stored);

Scalar read_number(const Value& weak);
std::string print_number(const Value& weak);
Val parse_number(std::string_view s);

}  // namespace twibil::io
