// SPDX-License-Identifier: Apache-2.0
// MXNet's NDArray list, the format of `.params` files and of nd.save: reading every version of it, writing the two
// that MXNet 1.x writes. Only bytes, shapes and dtypes here; the callers make arrays of them.
//
//   u64 0x112 | u64 reserved | u64 count, arrays | u64 count, names        (little endian)
//   array V2, V3: u32 magic | i32 storage type | i32 rank | i64 sizes | i32 device, i32 device id | i32 dtype | data
//
// MXNet ignores the reserved word. Twibil's files hold there a checksum of all bytes but that word's, so that a file
// damaged later is noticed; files without one (MXNet's own) are read all the same.
#pragma once
#include <string>
#include <vector>

#include "api/io/file.h"
#include "base/dtype.h"

namespace twibil::io {

struct ParamsEntry {
  std::string name;  // empty in a list without names
  DType dtype = DType::float32;
  std::vector<int64_t> shape;
  ByteView data;      // row-major; of a ParamsFile: points into its bytes, with no alignment promised
  bool none = false;  // MXNet can store "no array": it has neither shape nor data
};

struct ParamsFile {
  std::vector<ParamsEntry> entries;
  bool has_names = false;
  bool has_checksum = false;  // and it was right, else reading would have failed
  Bytes bytes;                // owns the data when read_params made it
};

/// Reads all of it or throws: an error names `source`, the offset and the reason.
ParamsFile read_params(const std::string& path, int64_t max_bytes = kMaxFileBytes);
/// The same from memory; the entries point into `bytes`, which must outlive them.
ParamsFile parse_params(ByteView bytes, const std::string& source = "<bytes>");

/// MXNet reads an array only in the mode in which it was written: V3 after npx.set_np(), V2 without. In V2 rank 0 and
/// zero sizes cannot be said.
enum class ParamsForm { numpy, legacy };

/// Writes the file anew, atomically. Entries have all a name or none has.
void write_params(const std::string& path, const std::vector<ParamsEntry>& entries,
                  ParamsForm form = ParamsForm::numpy);
Bytes format_params(const std::vector<ParamsEntry>& entries, ParamsForm form = ParamsForm::numpy);

/// Whether the bytes begin as this format does.
bool looks_like_params(ByteView bytes);

}  // namespace twibil::io
