// SPDX-License-Identifier: Apache-2.0
// Tensors of ONNX models, as arrays.
#pragma once
#include "api/io/onnx_file.h"
#include "api/io/onnx_source.h"

namespace twibil::io {

/// A TensorProto between two offsets. `folder`: where tensors in files of their own lie; null: they cannot.
OnnxTensor read_onnx_tensor(const OnnxSource& source, int64_t begin, int64_t end, const std::string* folder);

}  // namespace twibil::io
