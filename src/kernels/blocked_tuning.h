// SPDX-License-Identifier: Apache-2.0
// Measured times of convolution algorithms, remembered in a file per user: one line for each machine, instruction set,
// number of threads, shape and algorithm.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/blocked.h"

namespace twibil::kernels {

class BlockedTuning {
 public:
  /// The file in the home directory (base/settings.h), read once.
  static BlockedTuning& instance();
  /// `path`: read now if it is there. A file that is no such file is left alone, with a warning, and counts as empty.
  explicit BlockedTuning(std::string path);

  /// Seconds of a run, from the file or measured now.
  double seconds(const BlockedAlgorithm& algorithm, const BlockedShape& s);
  std::optional<double> known(const BlockedAlgorithm& algorithm, const BlockedShape& s) const;
  /// Writes what was measured since, together with what others wrote meanwhile, in one step.
  void save();

 private:
  void read(std::map<std::string, double>& into) const;
  std::string path_;
  mutable std::mutex mutex_;
  std::map<std::string, double> seconds_, fresh_;
  bool writable_ = true;
};

/// Measures one algorithm on made-up data: the best of several runs.
double measure_blocked(const BlockedAlgorithm& algorithm, const BlockedShape& s);

}  // namespace twibil::kernels
