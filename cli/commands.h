// SPDX-License-Identifier: Apache-2.0
// The commands of `twibil`. Each returns the exit status: 0, or 1 when something went wrong that it has said.
#pragma once
#include <string>
#include <vector>

namespace twibil::cli {

using Words = std::vector<std::string>;

int predict(const Words& words);
int summary(const Words& words);
int explain(const Words& words);
int doctor(const Words& words);
int bench(const Words& words);

std::string processor_name();  // as the system tells it

}  // namespace twibil::cli
