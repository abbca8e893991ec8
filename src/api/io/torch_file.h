// SPDX-License-Identifier: Apache-2.0
// Files that torch.save() wrote (.pt, .pth), in its zip format and the one before it: dictionaries, lists, numbers and
// dense tensors. Nothing in a file is run; what is neither of these is an error.
//
//   TorchFile f("weights.pth");
//   const PickleNode& root = f.node(f.root());     // a dictionary
//   ParamsEntry t = f.tensor(f.node(root.items[1]));
#pragma once
#include <deque>
#include <map>

#include "api/io/params_file.h"
#include "api/io/pickle.h"

namespace twibil::io {

class TorchFile final : public PickleMachine {
 public:
  /// Reads all of it or throws: an error names the file, the offset and the reason.
  explicit TorchFile(const std::string& path, int64_t max_bytes = kMaxFileBytes);
  TorchFile(Bytes bytes, std::string source);
  TorchFile(const TorchFile&) = delete;
  TorchFile& operator=(const TorchFile&) = delete;

  uint32_t root() const { return root_; }
  /// A node of kind tensor as an array in row-major order, without a name. `kept` holds its bytes where they had to be
  /// put in order.
  ParamsEntry tensor(const PickleNode& node, Bytes& kept) const;

 private:
  struct Storage {
    std::string key;
    DType dtype;
    int64_t elements;
    ByteView data;
  };
  struct Tensor {
    int64_t storage, offset;
    std::vector<int64_t> shape, strides;
  };
  void read();
  void read_zip();
  void read_old();
  void check_tensors();
  void set_data(Storage& s, ByteView data);

  bool knows(const std::string& name) const override;
  uint32_t call(const std::string& name, uint32_t arguments) override;
  uint32_t persistent(uint32_t id) override;
  uint32_t make_dictionary(uint32_t arguments);
  uint32_t make_tensor(uint32_t arguments);
  std::vector<int64_t> sizes(uint32_t i, const char* what) const;

  Bytes bytes_;
  std::string source_;
  uint32_t root_ = 0;
  std::vector<Storage> storages_;
  std::map<std::string, uint32_t> storage_nodes_;
  std::vector<Tensor> tensors_;
};

/// Whether the bytes begin as one of the formats does; every zip archive does.
bool looks_like_torch(ByteView bytes);

/// All tensors with the names under which they stand in dictionaries and lists, joined by dots: those of
/// {"model": {"fc.weight": tensor}} are "model.fc.weight". A tensor without a name is called "0".
/// Entries point into the file or into `kept`.
std::vector<ParamsEntry> named_tensors(const TorchFile& file, std::deque<Bytes>& kept);

}  // namespace twibil::io
