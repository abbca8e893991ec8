// SPDX-License-Identifier: Apache-2.0
// What files hold is tested by tests/python/test_torch_files.py; here are names, damage of every kind, and zip
// archives.
#include "api/io/torch_file.h"

#include <gtest/gtest.h>

#include "api/io/hostile_bytes.h"
#include "api/io/zip_file.h"
#include "twibil/model.h"
#include "twibil/nn.h"

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

TEST(TorchFile, FillsANetworkOfTheSameStructure) {
  // A pickle of three tensors in PyTorch's old format, by hand.
  auto text_of_length = [](const std::string& s) { return std::string("U") + static_cast<char>(s.size()) + s; };
  auto number = [](char n) { return std::string("K") + n; };
  auto tensor = [&](const char* key, char elements, const std::string& shape, const std::string& strides) {
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + text_of_length("storage") + "ctorch\nFloatStorage\n" +
           text_of_length(key) + text_of_length("cpu") + number(elements) + "NtQK" + std::string(1, '\0') + shape +
           strides + "\x89}tR";
  };
  auto pair = [&](char a, char b) { return "(" + number(a) + number(b) + "t"; };
  auto one = [&](char a) { return "(" + number(a) + "t"; };
  std::string s = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  s += "\x80\x02M\xe9\x03.\x80\x02}.\x80\x02}(" + text_of_length("fc.weight") + tensor("a", 6, pair(2, 3), pair(3, 1)) +
       text_of_length("fc.bias") + tensor("b", 2, one(2), one(1)) + "u.";
  s += "\x80\x02](" + text_of_length("a") + text_of_length("b") + "e.";
  auto floats = [&](std::vector<float> v) {
    int64_t n = static_cast<int64_t>(v.size());
    s.append(reinterpret_cast<const char*>(&n), 8).append(reinterpret_cast<const char*>(v.data()), v.size() * 4);
  };
  floats({1, 2, 3, 4, 5, 6});
  floats({10, 20});
  std::string path = ::testing::TempDir() + "net.pth";
  write_atomic(path, bytes_of(s));
  auto net = nn::dense(2);
  nn::load_torch_parameters(*net, path);
  Array x = Array::from(std::vector<float>{1, 0, 2}, Shape{1, 3});
  EXPECT_EQ((*net)(x).to_vector<float>(), (std::vector<float>{17, 36}));
  for (const nn::LayerPointer& wrong : {nn::dense(3), nn::batch_norm(), nn::conv2d(2, 3)}) {
    EXPECT_THROW(nn::load_torch_parameters(*wrong, path), Error);
    for (const nn::Parameter& p : wrong->parameters()) EXPECT_FALSE(p.data);
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
