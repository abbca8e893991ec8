// SPDX-License-Identifier: Apache-2.0
// `twibil doctor`: what a report of a problem should begin with.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "api/io/image_file.h"
#include "arguments.h"
#include "base/available_cpus.h"
#include "base/parallel.h"
#include "base/settings.h"
#include "commands.h"
#include "ir/registry.h"
#include "kernels/isa.h"
#include "memory/allocator.h"

namespace twibil::cli {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name") || line.starts_with("Model"))
      if (size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown";
}

int doctor(const Words& words) {
  Arguments a(words, {});
  if (!a.positions.empty()) throw UsageError("doctor takes no arguments");
  std::printf("twibil           %s, %zu operators\n", TWIBIL_VERSION, registry().size());
  std::printf("compiler         %s\n", __VERSION__);
  std::printf("processor        %s\n", processor_name().c_str());
  std::printf("instruction sets");
  for (kernels::Isa isa : kernels::kIsas)
    if (kernels::isa_available(isa))
      std::printf(" %s%s", std::string(kernels::name_of(isa)).c_str(), isa == kernels::isa() ? " (in use)" : "");
  std::printf("\nthreads          %d (%ld processors in the machine)\n", num_threads(), sysconf(_SC_NPROCESSORS_ONLN));
  double gib = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 30);
  MemoryStats m = memory_stats();
  std::printf("memory           %.1f GiB in the machine, limit for arrays %s\n", gib,
              m.limit_bytes > 0 && m.limit_bytes < INT64_MAX ? text(m.limit_bytes, " bytes").c_str() : "none");
  std::printf("pictures         %s\n", io::has_image_codecs() ? "JPEG and PNG" : "not in this build");
  std::printf("\nsettings\n%s", describe_settings().c_str());
  return 0;
}

}  // namespace twibil::cli
