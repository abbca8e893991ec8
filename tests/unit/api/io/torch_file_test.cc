// SPDX-License-Identifier: Apache-2.0
// What files hold is tested by tests/python/test_torch_files.py; here are names, damage of every kind, and zip
// archives.
#include "api/io/torch_file.h"

#include <gtest/gtest.h>

#include "api/io/hostile_bytes.h"
#include "api/io/zip_file.h"
#include "twibil/model.h"

namespace twibil::io {
namespace {

std::string fixture(const char* name) {
  std::string path = std::string("tests/fixtures/torch/") + name;  // tests run in the checkout or in build/PRESET
  for (int i = 0; i < 3 && access(path.c_str(), R_OK) != 0; ++i) path = "../" + path;
  return path;
}

TEST(TorchFile, NamesOfTensors) {
  for (const char* name : {"new.pth", "old.pth"}) {
    std::vector<NamedArray> arrays = load_arrays(fixture(name));
    std::map<std::string, Array> by_name;
    for (const NamedArray& a : arrays) by_name[a.name] = a.array;
    EXPECT_EQ(arrays.size(), 22u);
    EXPECT_EQ(by_name.at("model.0.weight").to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(by_name.at("views.2").to_vector<float>(), (std::vector<float>{6, 8, 10, 12, 14, 16}));
    EXPECT_EQ(by_name.at("types.3").dtype(), DType::uint8);
  }
}

TEST(TorchFile, DamagedFilesAreRefused) {
  for (const char* name : {"new.pth", "old.pth"}) {
    Bytes valid = read_file(fixture(name));
    HostileCounts counts = feed_hostile_bytes(valid, 20000, 5, [](const Bytes& bytes) {
      TorchFile file(bytes, "f");
      std::deque<Bytes> kept;
      int64_t total = 0;
      for (const ParamsEntry& e : named_tensors(file, kept)) total += static_cast<int64_t>(e.data.size());
      EXPECT_LE(total, int64_t{1} << 30);
    });
    EXPECT_GT(counts.refused, 5000) << name;
  }
}

TEST(ZipFile, Crc32) {
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32(bytes_of("")), 0u);
  std::string long_text(1000, 'x');
  long_text[777] = 'y';
  EXPECT_NE(crc32(bytes_of(long_text)), crc32(bytes_of(std::string(1000, 'x'))));
}

}  // namespace
}  // namespace twibil::io
