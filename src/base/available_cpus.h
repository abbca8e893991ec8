// SPDX-License-Identifier: Apache-2.0
// How many CPUs this process may really use: what a container was given, not what the machine has.
#pragma once

namespace twibil {

/// The smaller of the affinity mask and the CPU quota of the cgroup (rounded up), at least 1. Reads files: keep the
/// result.
int available_cpus();

}  // namespace twibil
