// SPDX-License-Identifier: Apache-2.0
#include "memory/device.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace twibil {
namespace {

TEST(Device, NamesGoBothWays) {
  EXPECT_EQ(name_of(cpu()), "cpu(0)");
  EXPECT_EQ(name_of(gpu(3)), "gpu(3)");
  EXPECT_EQ(device_from_name("cpu"), cpu());
  EXPECT_EQ(device_from_name("cpu(2)"), cpu(2));
  EXPECT_EQ(device_from_name("gpu:1"), gpu(1));
  EXPECT_EQ(device_from_name("cuda(1)"), gpu(1));
  for (const char* bad :
       {"", "cp", "cpu(", "cpu()", "cpu(1", "cpu(1))", "gpu:", "gpu:-1", "gpu:256", "gpu:1)", "tpu(0)"})
    EXPECT_THROW(device_from_name(bad), Error) << bad;
}

TEST(Device, AbsentOnesSaySo) {
  EXPECT_EQ(num_gpus(), 0);
  EXPECT_NO_THROW(require_present(cpu(7)));
  try {
    require_present(gpu(1));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "device: gpu(1) must be present; got a machine or build with 0 gpus. Use cpu(), or ask num_gpus() first");
  }
}

}  // namespace
}  // namespace twibil
