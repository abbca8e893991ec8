// SPDX-License-Identifier: Apache-2.0
#include "base/available_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace twibil {
namespace {

constexpr double kNoLimit = 1e9;

int affinity_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

/// The file cpu.max of cgroup v2 holds "quota period" in microseconds, or "max period".
double quota_v2(const std::string& directory) {
  std::ifstream in(directory + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return kNoLimit;
  return std::atof(quota.c_str()) / period;
}

double quota_v1(const std::string& directory) {
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us"), period_file(directory + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return kNoLimit;
  return quota / period;
}

/// The tightest quota on the way from our cgroup up to the root: a parent's limit binds its children.
double cgroup_limit() {
  double limit = std::min(quota_v1("/sys/fs/cgroup/cpu"), quota_v2("/sys/fs/cgroup"));
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    std::string path = line.substr(3);
    while (path.size() > 1) {
      limit = std::min(limit, quota_v2("/sys/fs/cgroup" + path));
      path.resize(path.rfind('/'));
    }
  }
  return limit;
}

}  // namespace

int available_cpus() { return std::max(1, std::min(affinity_count(), static_cast<int>(std::ceil(cgroup_limit())))); }

}  // namespace twibil
