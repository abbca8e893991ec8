// SPDX-License-Identifier: Apache-2.0
// Where an array lives. Part of every array and task; nothing above memory/, kernels/ and engine/ looks deeper.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace twibil {

enum class DeviceKind : uint8_t { cpu, gpu };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  uint8_t id = 0;  // all CPU ids mean the same memory; they differ only in name
  constexpr bool operator==(const Device&) const = default;
};

constexpr Device cpu(int id = 0) { return {DeviceKind::cpu, static_cast<uint8_t>(id)}; }
constexpr Device gpu(int id = 0) { return {DeviceKind::gpu, static_cast<uint8_t>(id)}; }

std::string_view name_of(DeviceKind kind);  // "cpu", "gpu"
std::string name_of(Device device);         // "cpu(0)"
/// Reads "cpu", "cpu(0)", "cpu:0"; "cuda" means gpu. Throws a value error for anything else.
Device device_from_name(std::string_view name);
int num_gpus();  // 0 in this build
/// Throws a runtime error when the device is absent; every entry that takes a device from a user calls it.
void require_present(Device device);

inline void append_part(std::string& to, Device device) { to += name_of(device); }

}  // namespace twibil
