// SPDX-License-Identifier: Apache-2.0
// The words of a command line: positions, and options with a value ("--out DIR", "--out=DIR").
#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace twibil::cli {

/// A mistake in the command line; exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Arguments {
  std::vector<std::string> positions;
  std::map<std::string, std::string> options;  // without the dashes

  /// `known`: the options that the command has. "--" ends them.
  Arguments(const std::vector<std::string>& words, const std::vector<std::string>& known);
  std::string option(const std::string& name, const std::string& otherwise = {}) const;
  double number(const std::string& name, double otherwise, double least, double most) const;
};

}  // namespace twibil::cli
