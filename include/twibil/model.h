// SPDX-License-Identifier: Apache-2.0
// Trained networks from files, for programs that only use them: MXNet's pair of NAME-symbol.json and NAME-0000.params,
// as gluon's export() writes it, or an ONNX model.
//
//   Model model("resnet18");
//   Array scores = model(picture);   // any number of threads may call it
#pragma once
#include "twibil/symbol.h"

namespace twibil {

/// MXNet's .params files: arrays with names.
void save_arrays(const std::string& path, const std::vector<NamedArray>& arrays);
/// Reads files that torch.save() wrote (.pt, .pth) too; nothing in them is run.
std::vector<NamedArray> load_arrays(const std::string& path);

class Model {
 public:
  /// `path`: NAME, NAME-symbol.json, NAME-0012.params or NAME.onnx. Of several .params files the one with the highest
  /// number counts. Everything is read and checked before this returns; an error names the file and the reason.
  explicit Model(const std::string& path);

  /// The results, in prediction mode, for the inputs in the order of inputs().
  std::vector<Array> all(const std::vector<Array>& inputs) const;
  /// The only result.
  template <class... A>
  requires(std::is_convertible_v<A, Array>&&...) Array operator()(const A&... inputs) const {
    std::vector<Array> results = all({Array(inputs)...});
    TW_CHECK(results.size() == 1, value, "Model: this one has ", results.size(), " results; call all()");
    return std::move(results[0]);
  }

  const Symbol& symbol() const { return symbol_; }
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::map<std::string, Array>& parameters() const { return parameters_; }
  const Function& function() const { return function_; }
  const std::string& symbol_path() const { return symbol_path_; }
  const std::string& params_path() const { return params_path_; }  // empty: the graph has no parameters
  /// NAME, for files that stand beside the model.
  const std::string& stem() const { return stem_; }

 private:
  void find_files(const std::string& path);
  void read_parameters();
  void read_onnx(const std::string& path);
  void compile_graph();
  std::string stem_, symbol_path_, params_path_;
  Symbol symbol_;
  Function function_;
  std::map<std::string, Array> parameters_;
  std::vector<std::string> inputs_, labels_;  // labels are for training only; they get zeros
};

}  // namespace twibil
