// SPDX-License-Identifier: Apache-2.0
// `twibil summary` and `twibil explain`: what a model is, and what the compiler makes of it.
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "api/io/file.h"
#include "arguments.h"
#include "commands.h"
#include "ir/compose.h"
#include "runtime/lower.h"
#include "settings.h"

namespace twibil::cli {

namespace {

Shape parse_shape(const std::string& s) {
  Shape shape;
  const char *at = s.data(), *end = at + s.size();
  for (;;) {
    int64_t size = 0;
    auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1 || size > (int64_t{1} << 31) || shape.rank() == kMaxRank)
      throw UsageError("--shape must be sizes such as 1x3x224x224; got " + s);
    shape.push_back(size);
    if (next == end) return shape;
    if (*next != 'x') throw UsageError("--shape must be sizes such as 1x3x224x224; got " + s);
    at = next + 1;
  }
}

/// The shape of the input: as the command line says, as the graph says, or that of a picture.
std::map<std::string, Sig> input_signatures(const Model& model, const Arguments& a) {
  std::map<std::string, Sig> known;
  for (auto& [name, array] : model.parameters()) known[name] = {array.shape(), array.dtype()};
  if (model.inputs().empty()) return known;
  std::string given = a.option("shape");
  PredictSettings s = read_settings(model);
  bool all_said = true;  // of several inputs the graph must tell the shapes
  for (const std::string& name : model.inputs()) {
    Hint h = hint_of(model, name);
    Shape picture{1, 3, s.height, s.width}, shape = h.has_shape ? h.shape : picture;
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] < 0) shape[i] = shape.rank() == 4 ? picture[i] : 1;
    all_said &= h.has_shape;
    known[name] = {given.empty() ? shape : parse_shape(given), h.dtype == kUnknownDType ? DType::float32 : h.dtype};
  }
  TW_CHECK(model.inputs().size() == 1 || (given.empty() && all_said), value, model.symbol_path(), ": the network has ",
           model.inputs().size(), " inputs; this command knows networks with one, or that say all shapes themselves");
  return known;
}

std::string with_commas(int64_t n) {
  std::string s = std::to_string(n);
  for (int64_t i = static_cast<int64_t>(s.size()) - 3; i > 0; i -= 3) s.insert(static_cast<size_t>(i), ",");
  return s;
}

const Model& only_model(const Arguments& a, std::optional<Model>& holder) {
  if (a.positions.size() != 1) throw UsageError("one model is needed");
  return holder.emplace(a.positions[0]);
}

std::string escaped(std::string_view s) {
  std::string t;
  for (char c : s) {
    if (c == '&') t += "&amp;";
    else if (c == '<') t += "&lt;";
    else if (c == '>') t += "&gt;";
    else if (c == '"') t += "&quot;";
    else t += c;
  }
  return t;
}

/// The arena: time from left to right, offsets from bottom to top.
std::string memory_picture(const passes::MemoryPlan& plan) {
  int last = 1;
  for (const passes::PlannedBuffer& b : plan.buffers) last = std::max(last, b.last + 1);
  constexpr double kWidth = 900, kHeight = 360;
  auto x = [&](int t) { return kWidth * t / last; };
  auto y = [&](int64_t bytes) {
    return kHeight * static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(plan.arena_bytes, 1));
  };
  std::string s = text("<svg viewBox=\"0 0 ", kWidth, " ", kHeight, "\" width=\"100%\" role=\"img\">\n");
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const passes::PlannedBuffer& b = plan.buffers[i];
    s += text("<rect x=\"", x(b.first), "\" y=\"", kHeight - y(b.offset + b.bytes), "\" width=\"",
              std::max(1.0, x(b.last + 1) - x(b.first)), "\" height=\"", std::max(0.5, y(b.bytes)), "\" fill=\"hsl(",
              static_cast<int>(i * 47 % 360), " 55% 65%)\" stroke=\"#fff\"><title>%", b.value.node, ", ", b.bytes,
              " bytes at ", b.offset, "</title></rect>\n");
  }
  return s + "</svg>\n";
}

}  // namespace

int summary(const Words& words) {
  Arguments a(words, {"shape"});
  std::optional<Model> holder;
  const Model& model = only_model(a, holder);
  const auto& heads = model.symbol().outputs();
  std::unordered_map<const SymbolNode*, Sig> known;
  auto signatures = input_signatures(model, a);
  for (SymbolNode* v : variables_of(heads))
    if (auto it = signatures.find(v->name); it != signatures.end()) known[v] = it->second;
  InferredSigs found = infer_sigs(heads, known, false, true);
  std::printf("%-28s %-24s %-22s %14s\n", "layer", "operator", "result", "parameters");
  int64_t total = 0, bytes = 0;
  for (auto& [name, array] : model.parameters()) total += array.size(), bytes += array.size() * size_of(array.dtype());
  for (SymbolNode* n : reachable(heads)) {
    if (n->is_input() && model.parameters().contains(n->name)) continue;
    int64_t own = 0;
    for (const SymbolRef& r : n->in)
      if (r)
        if (auto it = model.parameters().find(r.node->name); it != model.parameters().end()) own += it->second.size();
    Sig s = found.of({owners_of(heads)[n], 0});
    std::printf("%-28s %-24s %-22s %14s\n", n->name.c_str(), n->is_input() ? "input" : n->op_name(),
                s.present() ? text(s.shape).c_str() : "?", own ? with_commas(own).c_str() : "");
  }
  std::printf("%s parameters, %s bytes\n", with_commas(total).c_str(), with_commas(bytes).c_str());
  return 0;
}

int explain(const Words& words) {
  Arguments a(words, {"shape", "html"});
  std::optional<Model> holder;
  const Model& model = only_model(a, holder);
  auto signatures = input_signatures(model, a);
  std::vector<Array> inputs;
  for (const std::string& name : model.inputs()) {
    const Sig& s = signatures[name];
    inputs.push_back(Array::zeros(s.shape, s.dtype));
  }
  for (const Array& y : model.all(inputs)) y.wait_to_read();
  std::string report = model.function().explain();
  std::string to = a.option("html");
  if (to.empty()) return std::fputs(report.c_str(), stdout) < 0;
  const passes::MemoryPlan plan = model.function().plan();
  std::string page =
      text("<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>", escaped(model.stem()),
           "</title>\n<style>body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
           "pre{background:#f6f6f4;padding:1rem;overflow-x:auto;font-size:12px}svg{background:#f6f6f4}</style>\n<h1>",
           escaped(model.stem()), "</h1>\n<p>", model.function().num_kernels(), " kernels; ",
           with_commas(plan.planned_bytes()), " bytes planned, no plan needs fewer than ",
           with_commas(plan.lower_bound_bytes()),
           ".</p>\n<h2>Memory between inputs and outputs</h2>\n<p>From left to right: "
           "the order of the kernels. Each box is one value at its place in ",
           with_commas(plan.arena_bytes), " bytes.</p>\n", memory_picture(plan), "<h2>Report</h2>\n<pre>",
           escaped(report), "</pre></html>\n");
  io::write_atomic(to, io::bytes_of(page));
  std::printf("written to %s\n", to.c_str());
  return 0;
}

}  // namespace twibil::cli
