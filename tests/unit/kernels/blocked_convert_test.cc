// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocked_convert.h"

#include <gtest/gtest.h>

#include "kernels/blocked.h"
#include "kernels/kernel_fixture.h"

namespace twibil::kernels {
namespace {

class BlockedConvert : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(EachIsa, BlockedConvert, testing::ValuesIn(kIsas), isa_of_test);

TEST_P(BlockedConvert, EveryElementComesToItsPlaceAndBack) {
  set_num_threads(3);
  for (int64_t batch : {1, 3})
    for (int64_t channels : {1, 3, 15, 16, 17, 35})
      for (int64_t pixels : {1, 3, 4, 7, 8, 15, 16, 17, 49, 1024, 2500}) {
        const auto x = random_values<float>(batch * channels * pixels, 1);
        const int64_t blocks = channel_blocks(channels), size = blocks * batch * pixels * kChannelBlock;
        std::vector<float> y(static_cast<size_t>(size) + 16, 7.f), back(x.size() + 16, 7.f);
        to_blocked(batch, channels, pixels, x.data(), y.data());
        for (int64_t i = 0; i < size; ++i) {
          const int64_t lane = i % 16, pixel = i / 16 % pixels, image = i / 16 / pixels % batch;
          const int64_t channel = i / 16 / pixels / batch * 16 + lane;
          const float expected = channel < channels ? x[(image * channels + channel) * pixels + pixel] : 0.f;
          ASSERT_EQ(y[i], expected) << batch << " " << channels << " " << pixels << " element " << i;
        }
        from_blocked(batch, channels, pixels, y.data(), back.data());
        for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(back[i], x[i]) << batch << " " << channels << " " << pixels;
        for (size_t i = 0; i < 16; ++i) {  // nothing was written behind the ends
          ASSERT_EQ(y[static_cast<size_t>(size) + i], 7.f);
          ASSERT_EQ(back[x.size() + i], 7.f);
        }
      }
}

}  // namespace
}  // namespace twibil::kernels
