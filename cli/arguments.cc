// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace twibil::cli {

Arguments::Arguments(const std::vector<std::string>& words, const std::vector<std::string>& known) {
  bool ended = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& w = words[i];
    if (ended || !w.starts_with("-") || w == "-") {
      positions.push_back(w);
      continue;
    }
    if (w == "--") {
      ended = true;
      continue;
    }
    size_t equals = w.find('=');
    std::string name = w.starts_with("--") ? w.substr(2, equals == std::string::npos ? equals : equals - 2) : w;
    if (std::ranges::find(known, name) == known.end()) {
      std::string list;
      for (const std::string& k : known) list += " --" + k;
      throw UsageError("there is no option " + w + (known.empty() ? "" : "; the options are" + list));
    }
    if (equals != std::string::npos) options[name] = w.substr(equals + 1);
    else if (++i < words.size()) options[name] = words[i];
    else throw UsageError("option " + w + " needs a value");
  }
}

std::string Arguments::option(const std::string& name, const std::string& otherwise) const {
  auto found = options.find(name);
  return found == options.end() ? otherwise : found->second;
}

double Arguments::number(const std::string& name, double otherwise, double least, double most) const {
  auto found = options.find(name);
  if (found == options.end()) return otherwise;
  const std::string& s = found->second;
  double v = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size() || !(v >= least && v <= most))
    throw UsageError(text("option --", name, " must be a number from ", least, " to ", most, "; got ", s));
  return v;
}

}  // namespace twibil::cli
