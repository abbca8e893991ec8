// SPDX-License-Identifier: Apache-2.0
#include "twibil/operator.h"

#include <dlfcn.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

namespace twibil {

namespace {

/// A definition made at run time owns what it points to.
struct OwnedDefinition {
  OpDef def;
  Program formula;
  std::vector<Program> gradient;
  std::deque<std::string> texts;
  const char* keep(std::string s) { return texts.emplace_back(std::move(s)).c_str(); }
};

bool is_identifier(std::string_view s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !s.empty() && letter(s[0]) &&
         std::ranges::all_of(s, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void fill(OwnedDefinition& d, const std::string& name, const PointwiseOptions& o) {
  OpDef& op = d.def;
  const Program& p = d.formula;
  op.name = d.keep(name);
  op.doc = d.keep(o.doc.empty() ? text("A formula of the user: ", to_text(p)) : o.doc);
  size_t at = 0;
  for (const std::string& n : o.names.empty() ? std::vector<std::string>{"npx." + name, "nd." + name} : o.names)
    op.names.at(at++) = d.keep(n);
  for (size_t i = 0; i < p.argument_count; ++i) {
    op.in[i].name = d.keep(i < o.inputs.size() ? o.inputs[i] : p.argument_count == 1 ? "x" : text("x", i + 1));
    if (i < op.inplace.size() && !p.mask_output()) op.inplace[i] = {0, static_cast<int8_t>(i)};
  }
  op.program = &d.formula;
  op.types = kFloats;
  if (p.runs_in(DType::int64)) op.types |= kInts;
  if (p.runs_in(DType::bool_)) op.types |= kBool;
  op.rule = p.mask_output() ? Rule::compare : p.runs_in(DType::int64) ? Rule::same : Rule::floating;
  if (p.mask_output()) op.no_grad = "the result is true or false";
  else op.auto_grad = true, op.needs = kAllInputs;
  if (!d.gradient.empty()) op.derivatives = d.gradient.data();
  Sample& same = op.samples[0];
  for (size_t i = 0; i < std::min<size_t>(p.argument_count, same.in.size()); ++i)
    same.in[i] = SampleInput({3, 4}, o.domain);
  same.smooth = o.smooth;
  if (p.argument_count == 2) {
    op.samples[1].in = {SampleInput({2, 3, 4}, o.domain), SampleInput({3, 1}, o.domain)};
    op.samples[1].smooth = o.smooth;
  }
  op = counted(op);
}

}  // namespace

const OpDef& register_pointwise(const std::string& name, const Program& formula, const PointwiseOptions& options) {
  const char* who = "register_pointwise: ";
  TW_CHECK(is_identifier(name), value, who, "the name must be letters, digits and _; got \"", name, "\"");
  TW_CHECK(!formula.empty(), value, who, name, ": the formula is empty");
  TW_CHECK(formula.param_count == 0, value, who, name,
           ": a formula with Param needs attributes; declare it with TW_OP and schema");
  TW_CHECK(formula.argument_count > 0 && formula.argument_count <= 13, value, who, name,
           ": the formula must have 1 to 13 arguments; it has ", static_cast<int>(formula.argument_count));
  TW_CHECK(options.inputs.empty() || options.inputs.size() == formula.argument_count, value, who, name, ": ",
           static_cast<int>(formula.argument_count), " names of inputs are needed; got ", options.inputs.size());
  TW_CHECK(options.names.size() <= OpDef().names.size(), value, who, name, ": at most ", OpDef().names.size(),
           " public names; got ", options.names.size());
  for (const std::string& n : options.inputs)
    TW_CHECK(is_identifier(n), value, who, name, ": an input's name must be letters, digits and _; got \"", n, "\"");
  TW_CHECK(options.gradient.empty() || options.gradient.size() == formula.argument_count, value, who, name,
           ": a gradient is needed by each of the ", static_cast<int>(formula.argument_count), " inputs, or none; got ",
           options.gradient.size());
  TW_CHECK(options.gradient.empty() || !formula.mask_output(), value, who, name,
           ": the result is true or false, so it has no gradient");
  for (const Program& g : options.gradient)
    TW_CHECK(g.argument_count == formula.argument_count + 1 && g.param_count == 0 && !g.mask_output(), value, who, name,
             ": a gradient must be a formula of the inputs and dy, ", formula.argument_count + 1, " arguments; it has ",
             static_cast<int>(g.argument_count));

  static std::mutex mutex;
  static std::deque<OwnedDefinition> storage;
  std::lock_guard lock(mutex);
  OwnedDefinition& d = storage.emplace_back();
  d.formula = formula;
  d.gradient = options.gradient;
  try {
    fill(d, name, options);
    register_operator(d.def);
  } catch (Error& e) {
    storage.pop_back();
    e.prefix(who);
    throw;
  }
  return d.def;
}

std::vector<const OpDef*> load_operators(const std::string& path) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  // The library finds this one's functions among the global symbols. Python's module is not there by itself.
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&load_operators), &self) && self.dli_fname)
    dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  RegistrationScope scope;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    throw_error(ErrorKind::os, text("load_operators: ", why ? why : path.c_str()));
  }
  static std::map<void*, std::vector<const OpDef*>> loaded;
  if (auto known = loaded.find(library); known != loaded.end()) return known->second;
  try {
    std::vector<const OpDef*> added = scope.commit(path);
    TW_CHECK(!added.empty(), value, path, " declares no operator (TW_OP), or was loaded before by other means");
    return loaded[library] = std::move(added);
  } catch (Error& e) {
    dlclose(library);
    e.prefix("load_operators: ");
    throw;
  }
}

}  // namespace twibil
