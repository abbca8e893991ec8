// SPDX-License-Identifier: Apache-2.0
// The IDX files in which MNIST and Fashion-MNIST come, plain or compressed by gzip.
#pragma once
#include <string>
#include <vector>

#include "api/io/file.h"
#include "base/dtype.h"

namespace twibil::io {

struct IdxArray {
  DType dtype = DType::uint8;
  std::vector<int64_t> shape;
  Bytes data;  // row-major, in this machine's byte order
};

/// Reads the file; a compressed one is inflated to at most `max_bytes`.
IdxArray read_idx(const std::string& path, int64_t max_bytes = int64_t{1} << 32);
IdxArray parse_idx(ByteView bytes, const std::string& source = "<bytes>");

/// Inflates gzip data (all its members); more than `max_bytes` is an error, so that no small file fills the memory.
Bytes inflate_gzip(ByteView bytes, int64_t max_bytes, const std::string& source = "<bytes>");
bool looks_like_gzip(ByteView bytes);

}  // namespace twibil::io
