// SPDX-License-Identifier: Apache-2.0
#include "memory/device.h"

#include <charconv>

#include "base/error.h"

namespace twibil {

std::string_view name_of(DeviceKind kind) { return kind == DeviceKind::cpu ? "cpu" : "gpu"; }
std::string name_of(Device device) { return text(name_of(device.kind), "(", int{device.id}, ")"); }

Device device_from_name(std::string_view name) {
  std::string_view kind = name.substr(0, name.find_first_of("(:")), rest = name.substr(kind.size());
  bool known = kind == "cpu" || kind == "gpu" || kind == "cuda";
  unsigned id = 0;
  bool good = rest.empty();
  if (!good) {
    const char* end = rest.data() + rest.size();
    auto [stop, code] = std::from_chars(rest.data() + 1, end, id);
    std::string_view tail(stop, static_cast<size_t>(end - stop));
    good = code == std::errc() && id <= 255 && tail == (rest[0] == '(' ? ")" : "");
  }
  TW_CHECK(known && good, value, "device: must be written like cpu, cpu(0) or gpu:1; got `", name, "`");
  return {kind == "cpu" ? DeviceKind::cpu : DeviceKind::gpu, static_cast<uint8_t>(id)};
}

int num_gpus() { return 0; }

void require_present(Device device) {
  TW_CHECK(device.kind == DeviceKind::cpu, runtime, "device: ", device,
           " must be present; got a machine or build with ", num_gpus(), " gpus. Use cpu(), or ask num_gpus() first");
}

}  // namespace twibil
