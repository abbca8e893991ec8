// SPDX-License-Identifier: Apache-2.0
// The members of a zip archive that stores them as they are, without compression, as PyTorch writes its files.
#pragma once
#include <map>
#include <string>

#include "api/io/file.h"

namespace twibil::io {

/// Members by name; they point into `bytes`. Each is checked against its CRC-32. An error names `source`, the offset
/// and the reason; compressed or encrypted members are errors that say so.
std::map<std::string, ByteView> parse_stored_zip(ByteView bytes, const std::string& source);

/// CRC-32 as in zip, gzip and PNG.
uint32_t crc32(ByteView bytes);

}  // namespace twibil::io
