// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocked_tuning.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/settings.h"
#include "kernels/isa.h"

namespace twibil::kernels {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kHead = "twibil measured convolutions 1";
constexpr std::uintmax_t kLargest = 16 << 20;
constexpr size_t kMostLines = 100000;

/// "AMD EPYC 9B45 64-Core": the processor's name without blanks, or "unknown".
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      std::string name = line.substr(line.find(':') + 2);
      std::ranges::replace_if(
          name, [](char c) { return !(std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.'); }, '_');
      return name;
    }
  return "unknown";
}

std::string key_of(const BlockedAlgorithm& a, const BlockedShape& s) {
  static const std::string machine = processor_name();
  std::string name = a.name;
  std::ranges::replace(name, ' ', '_');
  auto pair = [](const int64_t* p) { return text(p[0], "x", p[1]); };
  return text(machine, " ", name_of(isa()), " ", num_threads(), " n", s.batch, " c", s.in_channels, " o",
              s.out_channels, " g", s.groups, " in", pair(s.in), " out", pair(s.out), " k", pair(s.kernel), " s",
              pair(s.stride), " d", pair(s.dilation), " p", pair(s.pad), " ", name);
}

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], Free>;
Floats floats(int64_t n) {
  auto bytes = static_cast<size_t>(checked_mul(n, int64_t{sizeof(float)}) + 63) / 64 * 64;
  auto* p = static_cast<float*>(std::aligned_alloc(64, bytes));
  TW_CHECK(p, memory, "autotune: no memory for ", bytes, " bytes");
  for (int64_t i = 0; i < n; ++i) p[i] = static_cast<float>(i % 13 - 6) * 0.125F;
  return Floats(p);
}

void warn(const std::string& path, const std::string& why) {
  std::fprintf(stderr, "twibil: %s is ignored: %s\n", path.c_str(), why.c_str());
}

}  // namespace

double measure_blocked(const BlockedAlgorithm& a, const BlockedShape& s) {
  int64_t in = a.plain_input ? s.in_channels : channel_blocks(s.in_channels) * kChannelBlock;
  Floats x = floats(in * s.batch * s.in[0] * s.in[1]);
  Floats y = floats(channel_blocks(s.out_channels) * kChannelBlock * s.batch * s.out[0] * s.out[1]);
  Floats packed = floats(a.packed_size(s));
  {
    Floats w = floats(s.out_channels * (s.in_channels / s.groups) * s.kernel[0] * s.kernel[1]);
    a.pack(s, w.get(), packed.get());
  }
  BlockedEpilogue e{.lower = 0};
  double best = INFINITY, spent = 0;
  for (int run = 0; run < 12 && (run < 3 || spent < 0.03); ++run) {
    auto begin = std::chrono::steady_clock::now();
    a.run(s, x.get(), packed.get(), e, y.get());
    double now = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (run > 0) best = std::min(best, now);  // the first one fetches
    spent += now;
  }
  return best;
}

BlockedTuning& BlockedTuning::instance() {
  static BlockedTuning tuning((fs::path(home_directory()) / "convolutions.txt").string());
  return tuning;
}

BlockedTuning::BlockedTuning(std::string path) : path_(std::move(path)) {
  try {
    read(seconds_);
  } catch (const std::exception& e) {
    warn(path_, e.what());
    seconds_.clear();
    writable_ = false;  // it is somebody else's
  }
}

/// Every line is "KEY = SECONDS"; anything else throws.
void BlockedTuning::read(std::map<std::string, double>& into) const {
  std::error_code failed;
  if (!fs::is_regular_file(path_, failed)) {
    TW_CHECK(!fs::exists(path_, failed), value, "it is no file");
    return;
  }
  TW_CHECK(fs::file_size(path_) <= kLargest, value, "it is larger than ", kLargest, " bytes");
  std::ifstream file(path_);
  std::string line;
  TW_CHECK(std::getline(file, line) && line == kHead, value, "it does not begin with \"", kHead, "\"");
  for (size_t number = 2; std::getline(file, line); ++number) {
    size_t at = line.rfind(" = ");
    char* end = nullptr;
    double seconds = at == std::string::npos ? 0 : std::strtod(line.c_str() + at + 3, &end);
    bool good = at != std::string::npos && end && *end == '\0' && seconds > 0 && seconds < 1e6 && line.size() < 1000;
    TW_CHECK(good && into.size() < kMostLines, value, "line ", number, " is not \"SHAPE = SECONDS\"");
    into[line.substr(0, at)] = seconds;
  }
}

std::optional<double> BlockedTuning::known(const BlockedAlgorithm& a, const BlockedShape& s) const {
  std::lock_guard lock(mutex_);
  auto found = seconds_.find(key_of(a, s));
  return found == seconds_.end() ? std::nullopt : std::optional(found->second);
}

double BlockedTuning::seconds(const BlockedAlgorithm& a, const BlockedShape& s) {
  if (auto before = known(a, s)) return *before;
  double now = measure_blocked(a, s);
  std::lock_guard lock(mutex_);
  std::string key = key_of(a, s);
  fresh_[key] = now;
  return seconds_[key] = now;
}

void BlockedTuning::save() {
  std::lock_guard lock(mutex_);
  if (fresh_.empty() || !writable_) return;
  std::string temporary = text(path_, ".", getpid(), ".new");
  try {
    std::map<std::string, double> all;
    read(all);  // another process may have written
    for (auto& [key, value] : fresh_) all[key] = value;
    fs::create_directories(fs::path(path_).parent_path());
    {
      std::ofstream file(temporary, std::ios::trunc);
      file << kHead << '\n';
      for (auto& [key, value] : all) file << key << " = " << text(value) << '\n';
      file.flush();
      TW_CHECK(file.good(), os, "writing ", temporary, " failed");
    }
    fs::rename(temporary, path_);
    fresh_.clear();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "twibil: measured times are not kept: %s\n", e.what());
    std::error_code ignored;
    fs::remove(temporary, ignored);
    writable_ = false;
  }
}

}  // namespace twibil::kernels
