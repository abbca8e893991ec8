// SPDX-License-Identifier: Apache-2.0
// The little language in which operators say how foreign files spell them: lists of words, and "own:word=default".
#pragma once
#include <string_view>

namespace twibil {

/// Calls f with every word of a list that is separated by blanks, until f says that it is done.
template <class F> void each_word(const char* words, F f) {
  std::string_view rest = words ? words : "";
  while (!rest.empty()) {
    size_t blank = rest.find(' ');
    std::string_view word = rest.substr(0, blank);
    rest = blank == std::string_view::npos ? std::string_view() : rest.substr(blank + 1);
    if (!word.empty() && f(word)) return;
  }
}

struct AttrForm {
  std::string_view own, word, fallback;
  bool has_fallback = false;
};
/// "axis:dim=1": own attribute, word, default.
inline AttrForm parse_form(std::string_view item) {
  AttrForm f;
  size_t equals = item.find('=');
  f.has_fallback = equals != std::string_view::npos;
  if (f.has_fallback) f.fallback = item.substr(equals + 1);
  std::string_view head = item.substr(0, equals);
  size_t colon = head.find(':');
  f.own = head.substr(0, colon);
  f.word = colon == std::string_view::npos ? f.own : head.substr(colon + 1);
  return f;
}

}  // namespace twibil
