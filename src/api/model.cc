// SPDX-License-Identifier: Apache-2.0
#include "twibil/model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "api/io/onnx_import.h"
#include "api/io/params_file.h"
#include "api/io/torch_file.h"
#include "ir/modes.h"

namespace twibil {

namespace {

namespace fs = std::filesystem;
constexpr std::string_view kSymbolEnd = "-symbol.json", kParamsEnd = ".params", kOnnxEnd = ".onnx";

bool ends_with_number(std::string_view s, std::string_view stem,
                      int& number) {  // "NAME-0012.params"
  if (!s.starts_with(stem) || !s.ends_with(kParamsEnd)) return false;
  std::string_view middle = s.substr(stem.size(), s.size() - stem.size() - kParamsEnd.size());
  if (middle.empty()) return number = -1, true;
  if (middle.size() < 2 || middle.size() > 10 || middle[0] != '-') return false;
  number = 0;
  for (char c : middle.substr(1)) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + (c - '0');
  }
  return true;
}

/// "fc1_weight", "0.running_mean": what every front end calls trained arrays, so that a missing one is not an input.
bool is_parameter_name(std::string_view name) {
  size_t before = name.find_last_of("._");
  if (before == std::string_view::npos) return false;
  static constexpr std::string_view kWords[] = {"weight", "bias", "gamma", "beta", "mean", "var"};
  return std::ranges::find(kWords, name.substr(before + 1)) != std::end(kWords);
}

/// The file of the highest number beside the graph; empty where there is none.
std::string newest_params(const std::string& stem) {
  fs::path folder = fs::path(stem).parent_path();
  std::string name = fs::path(stem).filename().string(), best;
  int highest = -2;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? fs::path(".") : folder, failed)) {
    int number;
    std::string file = entry.path().filename().string();
    if (ends_with_number(file, name, number) && number > highest) highest = number, best = (folder / file).string();
  }
  return best;
}

}  // namespace

void save_arrays(const std::string& path, const std::vector<NamedArray>& arrays) {
  std::vector<io::ParamsEntry> entries;
  std::vector<Array> rows;  // a file holds elements row by row
  for (const NamedArray& a : arrays) {
    TW_CHECK(a.array, value, "save_arrays: the array called ", a.name, " is empty");
    rows.push_back(a.array.value()->has(kStrided | kWeak) ? a.array.copy() : a.array);
    rows.back().wait_to_read();
    const Value& v = *rows.back().value();
    entries.push_back({a.name,
                       v.dtype(),
                       {v.shape().begin(), v.shape().end()},
                       io::ByteView(v.data, static_cast<size_t>(v.size() * size_of(v.dtype())))});
  }
  io::write_params(path, entries);
}
std::vector<NamedArray> load_arrays(const std::string& path) {
  io::Bytes bytes = io::read_file(path);
  std::vector<NamedArray> arrays;
  auto array_of = [](const io::ParamsEntry& e) {
    return e.none ? Array() : Array::from(e.data.data(), Shape{std::span<const int64_t>(e.shape)}, e.dtype);
  };
  if (io::looks_like_torch(bytes)) {
    io::TorchFile file(std::move(bytes), path);
    std::deque<io::Bytes> kept;
    // A tensor may have many names: then they name one array, as in PyTorch.
    std::map<std::tuple<const std::byte*, std::vector<int64_t>, DType>, Array> known;
    for (const io::ParamsEntry& e : io::named_tensors(file, kept)) {
      Array& array = known[{e.data.data(), e.shape, e.dtype}];
      if (!array) array = array_of(e);
      arrays.push_back({e.name, array});
    }
  } else {
    for (const io::ParamsEntry& e : io::parse_params(bytes, path).entries) arrays.push_back({e.name, array_of(e)});
  }
  return arrays;
}

void Model::find_files(const std::string& path) {
  if (path.ends_with(kSymbolEnd)) {
    stem_ = path.substr(0, path.size() - kSymbolEnd.size());
  } else if (path.ends_with(kParamsEnd)) {
    stem_ = path.substr(0, path.size() - kParamsEnd.size());
    size_t dash = stem_.rfind('-');
    bool numbered = dash != std::string::npos && dash + 1 < stem_.size() &&
                    std::all_of(stem_.begin() + static_cast<std::ptrdiff_t>(dash) + 1, stem_.end(),
                                [](char c) { return c >= '0' && c <= '9'; });
    if (numbered && !fs::exists(stem_ + std::string(kSymbolEnd))) stem_.resize(dash);
    params_path_ = path;
  } else {
    stem_ = path;
  }
  symbol_path_ = stem_ + std::string(kSymbolEnd);
  TW_CHECK(fs::exists(symbol_path_), os, "Model: there is no file ", symbol_path_,
           "; a model is NAME-symbol.json with NAME-0000.params, as export() "
           "writes them");
  if (params_path_.empty()) params_path_ = newest_params(stem_);
}

void Model::read_parameters() {
  if (params_path_.empty()) return;
  std::vector<std::string> names = symbol_.list_inputs();
  for (NamedArray& a : load_arrays(params_path_)) {
    if (a.name.starts_with("arg:") || a.name.starts_with("aux:")) a.name.erase(0, 4);
    bool used = std::ranges::find(names, a.name) != names.end();
    if (used && a.array) parameters_[a.name] = a.array;  // files may hold more than the graph needs
  }
}

void Model::read_onnx(const std::string& path) {
  io::OnnxModel file = io::read_onnx(path);
  io::OnnxProgram program = io::import_onnx(file, path);
  symbol_path_ = params_path_ = path;
  stem_ = path.substr(0, path.size() - kOnnxEnd.size());
  symbol_ = Symbol(std::move(program.heads));
  std::vector<std::string> names = symbol_.list_inputs();
  auto used = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  for (auto& [name, value] : program.parameters)
    if (used(name)) parameters_[name] = Array(value);
  for (const io::OnnxValue& in : program.inputs)
    if (used(in.name)) inputs_.push_back(in.name);
}

void Model::compile_graph() {
  CompileSettings settings;
  for (auto& [name, array] : parameters_) settings.fixed.push_back(name);
  function_ = compile(symbol_, settings);
}

Model::Model(const std::string& path) {
  if (path.ends_with(kOnnxEnd)) {
    read_onnx(path);
    compile_graph();
    return;
  }
  find_files(path);
  symbol_ = load_symbol(symbol_path_);
  read_parameters();
  CompileSettings settings;
  std::map<std::string, Sig> known;
  for (auto& [name, array] : parameters_) {
    known[name] = {array.shape(), array.dtype()};
    settings.fixed.push_back(name);
  }
  function_ = compile(symbol_, settings);
  std::vector<std::string> missing;
  for (const std::string& name : symbol_.list_inputs()) {
    if (parameters_.contains(name)) continue;
    bool label = name.ends_with("label");
    bool parameter = is_parameter_name(name);
    if (parameter) missing.push_back(name);
    else (label ? labels_ : inputs_).push_back(name);
  }
  TW_CHECK(missing.empty(), value,
           "Model: ", params_path_.empty() ? text("there is no ", stem_, "*.params") : params_path_,
           params_path_.empty() ? ", so parameter " : " has no parameter ", missing[0],
           params_path_.empty() ? " is missing" : text(", which ", symbol_path_, " needs"));
  symbol_.infer(known,
                true);  // parameters that do not fit the graph are noticed now
}

std::vector<Array> Model::all(const std::vector<Array>& inputs) const {
  TW_CHECK(inputs.size() == inputs_.size(), type, "Model: ", stem_, " takes ", inputs_.size(), " inputs; got ",
           inputs.size());
  std::vector<NamedArray> arrays;
  std::map<std::string, Sig> known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TW_CHECK(inputs[i], value, "Model: the array given for ", inputs_[i], " is empty");
    arrays.push_back({inputs_[i], inputs[i]});
    known[inputs_[i]] = {inputs[i].shape(), inputs[i].dtype()};
  }
  for (auto& [name, array] : parameters_) arrays.push_back({name, array});
  if (!labels_.empty()) {
    for (auto& [name, array] : parameters_) known[name] = {array.shape(), array.dtype()};
    std::vector<std::string> names = symbol_.list_arguments();
    std::vector<Sig> sigs = symbol_.infer(known).arguments;
    for (size_t i = 0; i < names.size(); ++i)
      if (std::ranges::find(labels_, names[i]) != labels_.end())
        arrays.push_back({names[i], Array::zeros(sigs[i].shape, sigs[i].dtype)});
  }
  ModeScope predict(false, false);
  return function_.all(arrays);
}

}  // namespace twibil
