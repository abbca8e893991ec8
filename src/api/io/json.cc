// SPDX-License-Identifier: Apache-2.0
#include "api/io/json.h"

#include <charconv>
#include <unordered_set>

#include "base/error.h"

namespace twibil::io {

namespace {

constexpr int kMaxDepth = 64;

/// Bytes of the UTF-8 character at the front; 0 where it is none.
size_t utf8_length(std::string_view s) {
  auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  unsigned first = byte(0);
  if (first < 0x80) return 1;
  size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (n == 0 || first > 0xF4) return 0;
  unsigned code = first & (0xFFu >> (n + 1));
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr unsigned kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kLeast[n] || code > 0x10FFFF || surrogate ? 0 : n;
}

void append_utf8(std::string& s, unsigned code) {
  if (code < 0x80) {
    s += static_cast<char>(code);
    return;
  }
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  s += static_cast<char>(kFirst[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) s += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

class Parser {
 public:
  Parser(std::string_view text_of, const std::string& source) : all_(text_of), rest_(text_of), source_(source) {}

  Json whole() {
    Json v = value(0);
    skip_blanks();
    if (!rest_.empty()) fail("something follows the end");
    return v;
  }

 private:
  template <class... Parts> [[noreturn]] void fail(const Parts&... parts) const {
    throw_error(ErrorKind::value, text(source_, ": byte ", all_.size() - rest_.size(), ": ", parts...));
  }
  void skip_blanks() {
    size_t n = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(n == std::string_view::npos ? rest_.size() : n);
  }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(char c) {
    skip_blanks();
    if (!take(std::string_view(&c, 1))) fail("expected '", std::string_view(&c, 1), "'", found());
  }
  std::string found() const {
    if (rest_.empty()) return ", but the text ends. It is truncated";
    return text(", found '", utf8_length(rest_) == 1 && rest_[0] >= ' ' ? rest_.substr(0, 1) : "?", "'");
  }

  Json value(int depth) {
    if (depth > kMaxDepth) fail("values are nested more than ", kMaxDepth, " deep");
    skip_blanks();
    Json v;
    v.offset = all_.size() - rest_.size();
    if (rest_.empty()) fail("expected a value", found());
    if (rest_[0] == '{') object(v, depth);
    else if (rest_[0] == '[') array(v, depth);
    else if (rest_[0] == '"') v.kind = Json::Kind::string, v.string = string();
    else if (take("true")) v.kind = Json::Kind::boolean, v.boolean = true;
    else if (take("false")) v.kind = Json::Kind::boolean;
    else if (!take("null")) number(v);
    return v;
  }
  void object(Json& v, int depth) {
    v.kind = Json::Kind::object;
    rest_.remove_prefix(1);
    std::unordered_set<std::string> keys;
    skip_blanks();
    if (take("}")) return;
    do {
      skip_blanks();
      if (rest_.empty() || rest_[0] != '"') fail("expected a key in quotes", found());
      std::string key = string();
      if (!keys.insert(key).second) fail("the key \"", std::string_view(key).substr(0, 80), "\" stands here twice");
      expect(':');
      v.members.push_back({std::move(key), value(depth + 1)});
      skip_blanks();
    } while (take(","));
    expect('}');
  }
  void array(Json& v, int depth) {
    v.kind = Json::Kind::array;
    rest_.remove_prefix(1);
    skip_blanks();
    if (take("]")) return;
    do {
      v.items.push_back(value(depth + 1));
      skip_blanks();
    } while (take(","));
    expect(']');
  }
  void number(Json& v) {
    size_t end = rest_.find_first_not_of("+-0123456789.eE");
    std::string_view word = rest_.substr(0, end);
    const char *first = word.data(), *last = first + word.size();
    bool whole = word.find_first_of(".eE") == std::string_view::npos;
    size_t digits = word.starts_with('-') ? 1 : 0;
    bool starts = word.size() > digits && word[digits] >= '0' && word[digits] <= '9';
    bool zero_first = word.size() > digits + 1 && word[digits] == '0' && word[digits + 1] >= '0';
    if (!starts || zero_first) fail("expected a value", found());
    if (whole) {
      v.kind = Json::Kind::integer;
      auto [at, error] = std::from_chars(first, last, v.integer);
      if (error != std::errc() || at != last) fail("the number ", word.substr(0, 40), " is no 64-bit integer");
    } else {
      v.kind = Json::Kind::real;
      auto [at, error] = std::from_chars(first, last, v.real);
      if (error != std::errc() || at != last || word.back() == '.') fail(word.substr(0, 40), " is no number");
    }
    rest_.remove_prefix(word.size());
  }
  unsigned hex() {
    unsigned code = 0;
    auto [at, error] = std::from_chars(rest_.data(), rest_.data() + std::min<size_t>(4, rest_.size()), code, 16);
    if (error != std::errc() || at != rest_.data() + 4) fail("\\u needs four hexadecimal digits");
    rest_.remove_prefix(4);
    return code;
  }
  void escape(std::string& s) {
    if (rest_.empty()) fail("the text ends within a string");
    char c = rest_[0];
    rest_.remove_prefix(1);
    switch (c) {
      case '"':
      case '\\':
      case '/': s += c; return;
      case 'b': s += '\b'; return;
      case 'f': s += '\f'; return;
      case 'n': s += '\n'; return;
      case 'r': s += '\r'; return;
      case 't': s += '\t'; return;
      case 'u': {
        unsigned code = hex();
        if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
          unsigned low = hex();
          if (low < 0xDC00 || low > 0xDFFF) fail("half a surrogate pair");
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else if (code >= 0xD800 && code <= 0xDFFF) {
          fail("half a surrogate pair");
        }
        append_utf8(s, code);
        return;
      }
      default: fail("unknown escape in a string");
    }
  }
  std::string string() {
    rest_.remove_prefix(1);
    std::string s;
    while (true) {
      if (rest_.empty()) fail("the text ends within a string. It is truncated");
      if (take("\"")) return s;
      if (take("\\")) {
        escape(s);
        continue;
      }
      if (static_cast<unsigned char>(rest_[0]) < 0x20) fail("a string holds a control character");
      size_t n = utf8_length(rest_);
      if (n == 0) fail("a string is not UTF-8");
      s.append(rest_.substr(0, n));
      rest_.remove_prefix(n);
    }
  }

  std::string_view all_, rest_;
  const std::string& source_;
};

}  // namespace

const Json* Json::find(std::string_view key) const {
  for (auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

Json parse_json(std::string_view text_of, const std::string& source) { return Parser(text_of, source).whole(); }

std::string quote_json(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace twibil::io
