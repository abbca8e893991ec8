// SPDX-License-Identifier: Apache-2.0
// What `twibil bench` measured, and a chart of it.
#pragma once
#include <string>
#include <vector>

namespace twibil::cli {

struct BenchRow {
  std::string network;
  int64_t batch;
  double fast, direct;  // images per second, with every algorithm and with direct ones only
};
/// An SVG file: one panel a network, two bars a batch size.
void write_chart(const std::string& path, const std::vector<BenchRow>& rows, const std::string& subtitle);

}  // namespace twibil::cli
