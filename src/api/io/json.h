// SPDX-License-Identifier: Apache-2.0
// A small strict JSON reader for files that nobody vouches for: depth and sizes are limited, strings must be UTF-8, an
// error names the source, the byte and the reason.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace twibil::io {

struct JsonMember;

struct Json {
  enum class Kind : uint8_t { null, boolean, integer, real, string, array, object };
  Kind kind = Kind::null;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  std::string string;
  std::vector<Json> items;
  std::vector<JsonMember> members;  // in the file's order; keys differ
  size_t offset = 0;                // of the first byte in the text

  bool is(Kind k) const { return kind == k; }
  /// A member by key; null where there is none.
  const Json* find(std::string_view key) const;
};

struct JsonMember {
  std::string key;
  Json value;
};

/// The value that the text is. A value error otherwise: "model-symbol.json: byte 17: ...".
Json parse_json(std::string_view text, const std::string& source);
/// A string as JSON, with quotes.
std::string quote_json(std::string_view s);

}  // namespace twibil::io
