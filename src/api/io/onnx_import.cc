// SPDX-License-Identifier: Apache-2.0
#include "api/io/onnx_import.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "api/io/onnx_attributes.h"
#include "ir/apply.h"
#include "ir/modes.h"
#include "ir/onnx_form.h"
#include "ir/registry.h"
#include "ir/trace.h"
#include "runtime/lower.h"
#include "runtime/unrolled_flow.h"

namespace twibil::io {

namespace {

using Opsets = std::map<std::string, int64_t>;
constexpr int kMaxCallDepth = 32;                  // of functions of the model
constexpr int64_t kMostInnerNodes = 1 << 18;       // of functions, at each call, and of graphs inside of nodes
constexpr int64_t kMostFolded = int64_t{4} << 30;  // bytes that constants may be computed to while reading

/// ONNX's three operators with graphs inside. They are no operators here but functions (runtime/unrolled_flow.h).
enum class Flow : uint8_t { none, choice, repetition, scan };
Flow flow_of(const OnnxNode& n) {
  if (!n.domain.empty()) return Flow::none;
  return n.type == "If"     ? Flow::choice
         : n.type == "Loop" ? Flow::repetition
         : n.type == "Scan" ? Flow::scan
                            : Flow::none;
}

int64_t version_of(const Opsets& opsets, const std::string& domain) {
  auto it = opsets.find(domain);
  return it == opsets.end() ? (domain.empty() ? 0 : 1) : it->second;
}
std::string full_name(const OnnxNode& n) { return n.domain.empty() ? n.type : n.domain + "." + n.type; }
std::string label_of(const OnnxNode& n) {
  const std::string& name = !n.name.empty() || n.outputs.empty() ? n.name : n.outputs[0];
  return text("'", name.substr(0, 80), "' (", full_name(n).substr(0, 80), ")");
}

// ---- what is missing, before anything is built ------------------------------------------------------------------

class Survey {
 public:
  explicit Survey(const OnnxModel& m) : model_(m) {
    for (const OnnxFunction& f : m.functions) functions_[f.domain + "." + f.name] = &f;
  }
  const OnnxFunction* function_of(const OnnxNode& n) const {
    auto it = functions_.find(n.domain + "." + n.type);
    return it == functions_.end() ? nullptr : it->second;
  }
  void look() {
    look(model_.graph.nodes, model_.opsets);
    for (size_t i = 0; i < called_.size(); ++i) look(called_[i]->nodes, called_[i]->opsets);
  }
  /// One error for all that is missing.
  void check(const std::string& source) const {
    int64_t version = version_of(model_.opsets, "");
    TW_CHECK(version <= kLastOpset, not_implemented, "onnx: '", source, "' has opset ", version, "; ", kLastOpset,
             " is the last one that is known");
    TW_CHECK(version >= kFirstOpset || model_.opsets.count("") == 0, not_implemented, "onnx: '", source, "' has opset ",
             version, "; ", kFirstOpset, " is the first one that is read");
    if (missing_.empty()) return;
    std::string list;
    for (auto& [what, nodes] : missing_) {
      list += text(list.empty() ? "" : "; ", what, " at ");
      for (size_t i = 0; i < nodes.size() && i < 3; ++i) list += (i ? ", " : "") + nodes[i];
      if (nodes.size() > 3) list += text(" and ", nodes.size() - 3, " more nodes");
    }
    throw_error(ErrorKind::not_implemented, text("onnx: '", source, "' needs operators that are not there: ", list));
  }
  std::map<std::string, int64_t> operators;

 private:
  void look(const std::vector<OnnxNode>& nodes, const Opsets& opsets) {
    for (const OnnxNode& n : nodes) {
      ++operators[full_name(n)];
      for (const OnnxAttribute& a : n.attributes)
        if (a.graph) look(a.graph->nodes, opsets);
      if (flow_of(n) != Flow::none) continue;
      int64_t version = version_of(opsets, n.domain);
      if (find_onnx_op(n.domain, n.type, version)) continue;
      if (const OnnxFunction* f = function_of(n)) {
        if (seen_.insert(f).second) called_.push_back(f);
        continue;
      }
      missing_[text(full_name(n).substr(0, 80), " of opset ", version)].push_back(label_of(n));
    }
  }

  const OnnxModel& model_;
  std::map<std::string, const OnnxFunction*> functions_;
  std::unordered_set<const OnnxFunction*> seen_;
  std::vector<const OnnxFunction*> called_;  // one after the other, as chains of calls may be long
  std::map<std::string, std::vector<std::string>> missing_;
};

// ---- names and what they stand for ------------------------------------------------------------------------------

/// A tensor's name in a graph. Known elements become a constant or a parameter only where somebody reads them.
struct Named {
  SymbolRef ref;  // a result, an input; empty: `value` only
  Val value;      // known elements
  SymbolRef constant, parameter;
  std::string refused;  // why the tensor cannot be used
};

struct Scope {
  Scope* outer = nullptr;
  bool sub_graph = false;  // names of outer scopes come in as variables
  std::unordered_map<std::string, Named> names;
  std::unordered_set<std::string> values;  // names whose elements decide shapes: they stay constants
  std::vector<SymbolRef> captured;         // by a sub-graph, in the order of `variables`
  std::vector<SymbolNodePtr> variables;
};

class Importer {
 public:
  Importer(const OnnxModel& m, const std::string& source, Survey& survey)
      : model_(m), source_(source), survey_(survey) {}

  OnnxProgram run() {
    Scope scope;
    const OnnxGraph& g = model_.graph;
    add_initializers(g, scope);
    for (const OnnxValue& in : g.inputs) {
      if (scope.names.contains(in.name)) continue;  // until IR 3 initializers stood among the inputs too
      TW_CHECK(in.is_tensor, not_implemented, where(), "input '", in.name.substr(0, 80),
               "' must be a tensor; sequences, maps and optional values are not supported");
      TW_CHECK(dtype_of_onnx(in.type) != kUnknownDType, not_implemented, where(), "input '", in.name.substr(0, 80),
               "' has dtype ", name_of_onnx_type(in.type), ", which is not supported");
      TW_CHECK(in.dims.size() <= kMaxRank, value, where(), "input '", in.name.substr(0, 80), "' has more than ",
               kMaxRank, " axes");
      Hint hint;
      hint.dtype = dtype_of_onnx(in.type);
      hint.has_shape = in.has_shape && std::ranges::none_of(in.dims, [](int64_t d) { return d == 0; });
      if (hint.has_shape)
        for (int64_t d : in.dims) hint.shape.push_back(d < 0 ? kUnknownDim : d);
      scope.names[in.name].ref = {make_variable(unique(in.name), hint), 0};
      program_.inputs.push_back(in);
      program_.inputs.back().name = scope.names[in.name].ref.node->name;
    }
    find_values(g.nodes, scope);
    build(g.nodes, model_.opsets, scope, 0);
    for (const OnnxValue& out : g.outputs) {
      program_.heads.push_back(resolve(out.name, scope, false));
      program_.outputs.push_back(out.name);
    }
    TW_CHECK(!program_.heads.empty(), value, where(), "the graph has no outputs");
    program_.operators = survey_.operators;
    return std::move(program_);
  }

 private:
  std::string where() const { return text("onnx: '", source_, "': "); }

  /// Names of variables and nodes must differ, as arrays are given by name.
  std::string unique(const std::string& name) {
    std::string free = name.empty() ? std::string("x") : name;
    int& tried = tried_[free];  // calls of a function bring the same names many times
    for (const std::string first = free; !taken_.insert(free).second;) free = text(first, "_", ++tried);
    return free;
  }

  void add_initializers(const OnnxGraph& g, Scope& scope) {
    for (const OnnxTensor& t : g.initializers) {
      TW_CHECK(!t.name.empty() || !t.refused.empty(), value, where(), "an initializer has no name");
      Named& n = scope.names[t.name];
      n.value = t.value;
      n.refused = t.refused;
    }
  }

  /// The names whose elements decide shapes: inputs that operators say so of, and what these are computed from.
  void find_values(const std::vector<OnnxNode>& nodes, Scope& scope) const {
    for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
      bool needed = std::ranges::any_of(n->outputs, [&](const std::string& o) { return scope.values.contains(o); });
      const OpDef* op = find_onnx_op(n->domain, n->type, version_of(model_.opsets, n->domain));
      for (size_t i = 0; i < n->inputs.size(); ++i) {
        bool read = op && op->inputs()
                        ? op->slot(static_cast<int>(i)).value || (needed && !op->slot(static_cast<int>(i)).shape_only)
                        : flow_of(*n) != Flow::none;
        if (read) scope.values.insert(n->inputs[i]);
      }
    }
  }

  // ---- names ----

  Named* find(const std::string& name, Scope& scope) {
    auto it = scope.names.find(name);
    return it == scope.names.end() ? nullptr : &it->second;
  }

  /// What stands for a name; `as_value`: its elements are looked at.
  SymbolRef resolve(const std::string& name, Scope& scope, bool as_value) {
    if (Named* n = find(name, scope)) return reference(*n, name, as_value || scope.values.contains(name));
    TW_CHECK(scope.outer, value, where(), "nothing is called '", name.substr(0, 80),
             "' where it is read; nodes must come before those that read them");
    SymbolRef outside = resolve(name, *scope.outer, as_value || scope.values.contains(name));
    if (!scope.sub_graph || outside.node->kind == SymbolNode::Kind::constant) return outside;
    SymbolNodePtr variable = make_variable(name);
    scope.captured.push_back(outside);
    scope.variables.push_back(variable);
    return (scope.names[name].ref = SymbolRef{variable, 0});
  }

  SymbolRef reference(Named& n, const std::string& name, bool as_value) {
    TW_CHECK(n.refused.empty(), not_implemented, where(), "tensor '", name.substr(0, 80), "': ", n.refused);
    if (n.ref) return n.ref;
    bool constant = as_value || !is_floating(n.value->dtype()) || n.value->size() <= 1;
    if (constant) {
      if (!n.constant) n.constant = {make_constant(n.value), 0};
      return n.constant;
    }
    if (!n.parameter) {
      Hint hint{true, Shape(n.value->shape()), n.value->dtype()};
      n.parameter = {make_variable(unique(name), hint), 0};
      program_.parameters.emplace_back(n.parameter.node->name, n.value);
    }
    return n.parameter;
  }

  void define(const std::string& name, Scope& scope, Named what) {
    if (name.empty()) return;
    TW_CHECK(!scope.names.contains(name), value, where(), "two values are called '", name.substr(0, 80), "'");
    scope.names.emplace(name, std::move(what));
  }

  // ---- nodes ----

  void build(const std::vector<OnnxNode>& nodes, const Opsets& opsets, Scope& scope, int depth) {
    if (depth > 0) inner_nodes_ += static_cast<int64_t>(nodes.size());
    TW_CHECK(inner_nodes_ <= kMostInnerNodes, value, "functions and graphs inside of nodes make more than ",
             kMostInnerNodes, " nodes, counted at each call");
    for (const OnnxNode& n : nodes) {
      try {
        if (Flow flow = flow_of(n); flow != Flow::none) build_flow(n, flow, opsets, scope, depth);
        else if (const OpDef* op = find_onnx_op(n.domain, n.type, version_of(opsets, n.domain)))
          build_call(n, *op, version_of(opsets, n.domain), scope);
        else build_function(n, *survey_.function_of(n), scope, depth);
      } catch (Error& e) {
        if (e.message().find(where()) == std::string::npos)
          e.prefix(text(where(), "offset ", n.offset, ", node ", label_of(n), ": "));
        throw;
      }
    }
  }

  void build_call(const OnnxNode& n, const OpDef& op, int64_t version, Scope& scope) {
    OnnxCall call = read_onnx_call(op, n, version);
    std::vector<SymbolRef> in;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      bool fits = op.variadic() || static_cast<int>(i) < op.inputs();
      TW_CHECK(fits || n.inputs[i].empty(), not_implemented, "input ", i, " is not supported");
      if (!fits) break;
      const Slot& slot = op.slot(static_cast<int>(i));
      in.push_back(n.inputs[i].empty() ? SymbolRef() : resolve(n.inputs[i], scope, slot.value));
    }
    for (auto& [slot, value] : call.constants) {
      in.resize(std::max(in.size(), slot + 1));
      TW_CHECK(!in[slot], value, "attribute '", op.in[slot].name, "' stands beside the input of that name");
      in[slot] = {make_constant(value), 0};
    }
    for (int i = 0; i < op.inputs(); ++i) {
      bool given = static_cast<size_t>(i) < in.size() && in[static_cast<size_t>(i)];
      bool needed = op.in[static_cast<size_t>(i)].kind == SlotKind::required ||
                    op.in[static_cast<size_t>(i)].kind == SlotKind::aux;
      TW_CHECK(given || !needed, value, "input ", i, " (", op.in[static_cast<size_t>(i)].name, ") is missing");
    }
    const void* attrs = call.attrs.empty() ? nullptr : call.attrs.data();
    SymbolNodePtr node =
        make_call(op, attrs, std::move(in), unique(!n.name.empty() || n.outputs.empty() ? n.name : n.outputs[0]));
    int shown = node->visible_outputs();
    if (op.count) shown = node->outputs = op.visible_outputs(attrs);
    std::vector<Val> known = fold(*node, shown);
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      if (n.outputs[k].empty()) continue;
      TW_CHECK(static_cast<int>(k) < shown, not_implemented, "output ", k, " is not supported");
      Named result;
      if (!known.empty()) result.value = known[k];
      else result.ref = {node, static_cast<int>(k)};
      define(n.outputs[k], scope, std::move(result));
    }
  }

  /// The results of a call on constants. None: it depends on something else.
  std::vector<Val> fold(SymbolNode& node, int shown) {
    if (node.op->random || node.op->writes_inputs() || (node.in.empty() && !node.op->unfolds)) return {};
    for (const SymbolRef& r : node.in)
      if (r && r.node->kind != SymbolNode::Kind::constant) return {};
    ModeScope mode(false, false);
    std::vector<SymbolRef> heads;
    SymbolNodePtr borrowed(&node, [](SymbolNode*) {});
    for (int k = 0; k < shown; ++k) heads.push_back({borrowed, k});
    std::vector<Val> results = Interpreter({}).run(heads);
    for (const Val& v : results) {
      folded_ += v->size() * size_of(v->dtype());
      TW_CHECK(folded_ <= kMostFolded, memory, "the constants of the model take more than ", kMostFolded >> 30, " GiB");
    }
    return results;
  }

  void build_function(const OnnxNode& n, const OnnxFunction& f, Scope& scope, int depth) {
    TW_CHECK(depth < kMaxCallDepth, value, "functions call each other more than ", kMaxCallDepth, " deep");
    Scope inner;
    for (size_t i = 0; i < f.inputs.size() && i < n.inputs.size(); ++i) {
      if (n.inputs[i].empty()) continue;
      Named* given = nullptr;
      for (Scope* s = &scope; s && !given && !s->sub_graph; s = s->outer) given = find(n.inputs[i], *s);
      Named named;
      if (given && given->value && !given->ref) named = *given;
      else named.ref = resolve(n.inputs[i], scope, false);
      inner.names[f.inputs[i]] = named;
    }
    std::vector<OnnxNode> nodes = f.nodes;
    for (OnnxNode& node : nodes) {
      bind_attributes(node, n, f);
      // An input that the call leaves out is left out inside as well.
      for (std::string& name : node.inputs) {
        auto place = std::ranges::find(f.inputs, name);
        if (place != f.inputs.end() && !inner.names.contains(name)) name.clear();
      }
    }
    find_values(nodes, inner);
    build(nodes, f.opsets, inner, depth + 1);
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      if (n.outputs[k].empty()) continue;
      TW_CHECK(k < f.outputs.size(), value, "the function has ", f.outputs.size(), " outputs; the node takes more");
      Named* made = find(f.outputs[k], inner);
      TW_CHECK(made, value, "the function does not compute its output '", f.outputs[k].substr(0, 80), "'");
      define(n.outputs[k], scope, *made);
    }
  }
  /// Attributes of nodes inside a function, and of nodes in their graphs, that stand for those of the call.
  static void bind_attributes(OnnxNode& node, const OnnxNode& call, const OnnxFunction& f) {
    std::vector<OnnxAttribute> bound;
    for (OnnxAttribute& a : node.attributes) {
      if (a.refers.empty()) {
        if (a.graph) {
          auto graph = std::make_shared<OnnxGraph>(*a.graph);
          for (OnnxNode& inside : graph->nodes) bind_attributes(inside, call, f);
          a.graph = std::move(graph);
        }
        bound.push_back(std::move(a));
        continue;
      }
      const OnnxAttribute* given = call.find(a.refers);
      for (const OnnxAttribute& d : f.defaults)
        if (!given && d.name == a.refers) given = &d;
      if (!given) continue;
      bound.push_back(*given);
      bound.back().name = a.name;
    }
    node.attributes = std::move(bound);
  }

  // ---- graphs inside nodes ----

  struct Inner {
    SubSymbol symbol;
    std::vector<SymbolRef> captured;
  };
  Inner build_graph(const OnnxNode& n, const char* attribute, const Opsets& opsets, Scope& outer, int depth) {
    const OnnxAttribute* a = n.find(attribute);
    TW_CHECK(a && a->graph, value, "attribute '", attribute, "' must be a graph");
    TW_CHECK(depth < kMaxCallDepth, value, "graphs stand inside of each other more than ", kMaxCallDepth, " deep");
    const OnnxGraph& g = *a->graph;
    Scope scope;
    scope.outer = &outer;
    scope.sub_graph = true;
    add_initializers(g, scope);
    Inner inner;
    for (const OnnxValue& in : g.inputs) {
      SymbolNodePtr v = make_variable(in.name);
      scope.names[in.name] = Named();
      scope.names[in.name].ref = {v, 0};
      inner.symbol.inputs.push_back(std::move(v));
    }
    find_values(g.nodes, scope);
    // Tensors of a graph inside are parameters of the whole; they come in like other values from outside.
    std::vector<std::string> own;
    for (const OnnxTensor& t : g.initializers) own.push_back(t.name);
    build(g.nodes, opsets, scope, depth + 1);
    for (const OnnxValue& out : g.outputs) inner.symbol.heads.push_back(resolve(out.name, scope, false));
    capture_parameters(scope, inner.symbol.heads);
    inner.captured = scope.captured;
    inner.symbol.inputs.insert(inner.symbol.inputs.end(), scope.variables.begin(), scope.variables.end());
    return inner;
  }
  /// Parameters that were met inside are variables of the whole model: the graph inside reads them as its inputs.
  static void capture_parameters(Scope& scope, std::span<const SymbolRef> heads) {
    std::unordered_set<const SymbolNode*> known;
    for (const SymbolNodePtr& v : scope.variables) known.insert(v.get());
    std::set<std::pair<uint64_t, SymbolNodePtr>> met;
    auto look = [&](const SymbolRef& r) {
      if (r && r.node->kind == SymbolNode::Kind::variable && r.node->hint.has_shape && !known.contains(r.node.get()))
        met.insert({r.node->sequence, r.node});
    };
    for (const SymbolRef& h : heads) look(h);
    for (SymbolNode* n : reachable(heads))
      for (const SymbolRef& r : n->in) look(r);
    for (auto& [sequence, node] : met) {
      scope.captured.push_back({node, 0});
      scope.variables.push_back(node);
    }
  }

  static std::vector<int64_t> integers(const OnnxNode& n, const char* name) {
    const OnnxAttribute* a = n.find(name);
    return a ? a->integers : std::vector<int64_t>();
  }

  void build_flow(const OnnxNode& n, Flow flow, const Opsets& opsets, Scope& scope, int depth) {
    std::vector<SymbolRef> in;
    for (const std::string& name : n.inputs)
      in.push_back(name.empty() ? SymbolRef() : resolve(name, scope, flow != Flow::scan));
    std::shared_ptr<const GraphFunction> f;
    size_t outputs = 0;
    auto append = [&](const Inner& g) { in.insert(in.end(), g.captured.begin(), g.captured.end()); };
    if (flow == Flow::choice) {
      TW_CHECK(in.size() == 1 && in[0], value, "a branch must have one input, the condition");
      Inner yes = build_graph(n, "then_branch", opsets, scope, depth),
            no = build_graph(n, "else_branch", opsets, scope, depth);
      outputs = yes.symbol.heads.size();
      TW_CHECK(no.symbol.heads.size() == outputs, value, "both branches must have as many outputs");
      append(yes);
      append(no);
      f = make_choice(std::move(yes.symbol), std::move(no.symbol));
    } else if (flow == Flow::repetition) {
      Inner body = build_graph(n, "body", opsets, scope, depth);
      in.resize(std::max<size_t>(in.size(), 2));
      size_t states = in.size() - 2, own = body.symbol.inputs.size() - body.captured.size();
      TW_CHECK(own == states + 2 && body.symbol.heads.size() >= states + 1, value, "the body must take ", states + 2,
               " inputs and give at least ", states + 1, " outputs; it has ", own, " and ", body.symbol.heads.size());
      outputs = body.symbol.heads.size() - 1;
      append(body);
      f = make_repetition(std::move(body.symbol), static_cast<int>(states));
    } else {
      TW_CHECK(version_of(opsets, "") >= 9, not_implemented, "the form of opset 8 is not supported");
      Inner body = build_graph(n, "body", opsets, scope, depth);
      const OnnxAttribute* count = n.find("num_scan_inputs");
      int64_t data = count ? count->integer : 0,
              own = static_cast<int64_t>(body.symbol.inputs.size() - body.captured.size());
      int64_t states = static_cast<int64_t>(in.size()) - data;
      TW_CHECK(
          data > 0 && states >= 0 && own == states + data && static_cast<int64_t>(body.symbol.heads.size()) >= states,
          value, "the body must take the states and the data of the scan");
      outputs = body.symbol.heads.size();
      append(body);
      ScanForm form{static_cast<int>(states),
                    static_cast<int>(data),
                    integers(n, "scan_input_axes"),
                    integers(n, "scan_output_axes"),
                    integers(n, "scan_input_directions"),
                    integers(n, "scan_output_directions")};
      f = make_scan(std::move(body.symbol), std::move(form));
    }
    TW_CHECK(n.outputs.size() <= outputs, value, "the node has ", outputs, " outputs; ", n.outputs.size(),
             " are named");
    SymbolNodePtr node = make_function(std::move(f), std::move(in), static_cast<int>(outputs),
                                       unique(!n.name.empty() || n.outputs.empty() ? n.name : n.outputs[0]));
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      Named result;
      result.ref = {node, static_cast<int>(k)};
      define(n.outputs[k], scope, std::move(result));
    }
  }

  const OnnxModel& model_;
  const std::string& source_;
  Survey& survey_;
  OnnxProgram program_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> tried_;
  int64_t folded_ = 0, inner_nodes_ = 0;
};

}  // namespace

OnnxProgram import_onnx(const OnnxModel& model, const std::string& source) {
  TraceScope outside(nullptr);  // constants are computed here, also while somebody traces
  Survey survey(model);
  survey.look();
  survey.check(source);
  return Importer(model, source, survey).run();
}

}  // namespace twibil::io
