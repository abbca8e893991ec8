// SPDX-License-Identifier: Apache-2.0
// Reading, with what changed between MXNet's versions: 0.8 kept the operator's attributes in "param" and those of users
// in "attr", 0.9 to 0.12 all of them in "attr", later versions in "attrs". Until 0.8 auxiliary states did not stand in
// files, edges had two numbers, and each node a "backward_source_id", which nobody needs.
#include <algorithm>
#include <unordered_set>

#include "api/io/json.h"
#include "api/io/stored_value.h"
#include "api/io/symbol_json.h"
#include "ir/graph_form.h"
#include "ir/registry.h"

namespace twibil::io {

namespace {

/// What files may say that does not change the result here.
constexpr const char* kWithoutEffect =
    "num_args ctx cudnn_tune cudnn_off workspace is_int min_calib_range max_calib_range forward_stype order "
    "infer_range "
    "sparse_grad lazy_update profiler_scope repeat=1";

class Reader {
 public:
  Reader(std::string_view text_of, const std::string& source) : source_(source), root_(parse_json(text_of, source)) {}

  std::vector<SymbolRef> read() {
    check(root_.is(Json::Kind::object), root_, "a graph must be an object with \"nodes\" and \"heads\"");
    const Json& nodes = array(root_, "nodes", root_);
    numpy_ = read_version();
    for (const Json& n : nodes.items) {
      where_ = text("node ", nodes_.size());
      read_node(n);
    }
    where_ = "heads";
    std::vector<SymbolRef> heads;
    const Json& list = array(root_, "heads", root_);
    check(!list.items.empty(), list, "a graph must have at least one head");
    for (const Json& h : list.items) heads.push_back(edge(h));
    check_arguments();
    return heads;
  }

 private:
  template <class... Parts> void check(bool held, const Json& at, const Parts&... parts) const {
    if (held) return;
    throw_error(ErrorKind::value,
                text(source_, ": byte ", at.offset, where_.empty() ? "" : ", ", where_, ": ", text(parts...)));
  }
  const Json& array(const Json& of, std::string_view key, const Json& at) const {
    const Json* found = of.find(key);
    check(found && found->is(Json::Kind::array), at, "\"", key, "\" must be a list");
    return *found;
  }
  const std::string& string(const Json& of, std::string_view key) const {
    const Json* found = of.find(key);
    check(found && found->is(Json::Kind::string), found ? *found : of, "\"", key, "\" must be a text");
    return found->string;
  }

  /// Whether shapes are NumPy's, in which 0 is a size.
  bool read_version() {
    const Json* attrs = root_.find("attrs");
    if (!attrs) return false;
    check(attrs->is(Json::Kind::object), *attrs, "\"attrs\" must be an object");
    auto number = [&](const char* key) -> int64_t {
      const Json* v = attrs->find(key);
      if (!v) return 0;
      bool fits = v->is(Json::Kind::array) && v->items.size() == 2 && v->items[1].is(Json::Kind::integer);
      check(fits, *v, "\"", key, "\" must be a type and a number");
      return v->items[1].integer;
    };
    version_ = number("mxnet_version");
    return number("is_np_shape") != 0;
  }

  SymbolRef edge(const Json& e) const {
    bool shaped = e.is(Json::Kind::array) && (e.items.size() == 2 || e.items.size() == 3);
    for (const Json& i : e.items) shaped = shaped && i.is(Json::Kind::integer);
    check(shaped, e, "an edge must be two or three integers");
    int64_t node = e.items[0].integer, output = e.items[1].integer;
    check(node >= 0 && node < static_cast<int64_t>(nodes_.size()), e, "an edge names node ", node,
          ", which does not stand before it. Nodes must come before those that read them");
    const SymbolNodePtr& n = nodes_[static_cast<size_t>(node)];
    check(output >= 0 && output < n->outputs, e, "an edge names output ", output, " of node ", node, " (", n->name,
          "), which has ", n->outputs);
    return {n, static_cast<int>(output)};
  }

  struct Texts {  // the attributes of a node; in old files those of the operator stand apart
    const Json* own = nullptr;
    const Json* marks = nullptr;
  };
  Texts attributes_of(const Json& n) const {
    Texts t{n.find("param"), n.find("attr")};
    if (const Json* now = n.find("attrs")) {
      check(!t.own && !t.marks, *now, "attributes stand in \"attrs\" and in \"attr\" or \"param\"");
      t.own = now;
    } else if (!t.own) {
      t.own = t.marks, t.marks = nullptr;
    }
    for (const Json* list : {t.own, t.marks}) {
      if (!list) continue;
      check(list->is(Json::Kind::object), *list, "attributes must be an object");
      for (auto& [key, value] : list->members)
        check(value.is(Json::Kind::string), value, "attribute ", key.substr(0, 80), " must be a text");
    }
    return t;
  }

  void read_node(const Json& n) {
    check(n.is(Json::Kind::object), n, "a node must be an object");
    const std::string& op = string(n, "op");
    const std::string& name = string(n, "name");
    where_ = text("node ", nodes_.size(), " (", name.substr(0, 80), ")");
    Texts texts = attributes_of(n);
    std::vector<SymbolRef> in;
    for (const Json& e : array(n, "inputs", n).items) in.push_back(edge(e));
    try {
      SymbolNodePtr made = op == "null"          ? variable(name, texts, in)
                           : op == kBackwardName ? backward(name, texts, std::move(in))
                                                 : call(op, name, texts, std::move(in));
      nodes_.push_back(std::move(made));
    } catch (Error& e) {
      if (!e.message().starts_with(source_)) e.prefix(text(source_, ": byte ", n.offset, ", ", where_, ": "));
      throw;
    }
  }

  // ---- variables ----

  SymbolNodePtr variable(const std::string& name, const Texts& texts, const std::vector<SymbolRef>& in) const {
    TW_CHECK(in.empty(), value, "a variable must have no inputs; it has ", in.size());
    SymbolNodePtr v = make_variable(name);
    for (const Json* list : {texts.own, texts.marks})
      for (auto& [key, value] : list ? list->members : decltype(list->members)()) mark_variable(*v, key, value.string);
    return v;
  }
  void mark_variable(SymbolNode& v, const std::string& key, const std::string& value) const {
    if (key == kShapeWord) return set_shape(v, value);
    if (key == kDTypeWord) return set_dtype(v, value);
    if (key == kNumberWord || key == kConstantWord || key == kCapturedWord) {
      v.value = key == kNumberWord ? parse_number(value) : restore_value(value);
      v.kind = key == kCapturedWord ? SymbolNode::Kind::captured : SymbolNode::Kind::constant;
      if (key == kCapturedWord) v.hint = {true, Shape(v.value->shape()), v.value->dtype()};
      return;
    }
    std::string hidden = hidden_attribute(key);
    std::string& place = v.marks[hidden.empty() ? key : hidden];
    place = value;
    // Until 0.9.3 an initializer stood under its name alone.
    if (version_ < 904 && key == "__init__" && !value.starts_with('[')) place = text("[\"", value, "\", {}]");
  }
  void set_shape(SymbolNode& v, const std::string& value) const {
    struct ShapeAttr {
      IntList sizes;
    } a;
    if (value == "None") return;
    constexpr Field kField = TW_ATTR(ShapeAttr, sizes, "Sizes.");
    parse_attr(kField, &a, value);
    TW_CHECK(a.sizes.size() <= kMaxRank, value, "the shape ", value.substr(0, 80), " has more than ", kMaxRank,
             " axes");
    Hint h;
    for (int64_t size : a.sizes) {
      TW_CHECK(size >= -1, value, "the shape ", value.substr(0, 80), " has a negative size");
      h.shape.push_back(size == 0 && !numpy_ ? kUnknownDim : size);
    }
    v.hint.shape = h.shape;
    v.hint.has_shape = numpy_ || !a.sizes.empty();  // before NumPy's shapes, () was an unknown one
  }
  static void set_dtype(SymbolNode& v, const std::string& value) {
    struct FlagAttr {
      int64_t flag = 0;
    } a;
    if (value == "None" || value == "-1") return;
    if (!value.empty() && (value[0] < '0' || value[0] > '9')) {
      v.hint.dtype = dtype_from_name(value);
      return;
    }
    constexpr Field kField = TW_ATTR(FlagAttr, flag, "A dtype.");
    parse_attr(kField, &a, value);
    v.hint.dtype = dtype_of_flag(a.flag);
  }

  // ---- calls ----

  SymbolNodePtr call(const std::string& op_name, const std::string& name, const Texts& texts,
                     std::vector<SymbolRef> in) {
    const OpDef& op = require_graph_op(op_name);
    AttrBytes attrs = graph_defaults(op);
    std::map<std::string, std::string> marks;
    std::string mask;
    bool apart = texts.own && texts.marks;
    std::unordered_set<const Field*> given;
    for (auto& [key, value] : texts.own ? texts.own->members : decltype(texts.own->members)()) {
      if (key == kInputsWord) {
        mask = value.string;
      } else if (const Field* f = find_graph_field(op, key)) {
        TW_CHECK(given.insert(f).second, value, op_name, ": attribute ", key, " stands here twice");
        // Until 0.9.4 -1 was how argmax said "of all elements".
        bool old_flatten = version_ < 905 && f->kind == AttrKind::maybe_integer && key == "axis" &&
                           value.string == "-1" && print_attr(*f, op.attrs.defaults) == "None";
        if (!old_flatten) parse_attr(*f, attrs.data(), value.string);
        if (op.creates && !numpy_ && f->kind == AttrKind::int_list)
          forget_sizes(attr_at<IntList>(attrs.data(), *f), marks, value.string);
      } else {
        mark_call(op, op_name, in, marks, key, value.string, false);
      }
    }
    for (auto& [key, value] : apart ? texts.marks->members : decltype(texts.own->members)())
      mark_call(op, op_name, in, marks, key, value.string, true);
    for (const Field& f : op.attrs.span())
      TW_CHECK(!f.required || given.contains(&f), value, op_name, ": attribute ", graph_word(op, f).word,
               " is missing. ", f.doc);
    if (!mask.empty()) in = spread(std::move(in), mask);
    complete_inputs(op, attrs, name, in, marks);
    TW_CHECK(op.variadic() || static_cast<int>(in.size()) <= op.inputs(), value, op_name, ": takes at most ",
             op.inputs(), " inputs; got ", in.size());
    SymbolNodePtr n = make_call(op, attrs.data(), std::move(in), name);
    n->marks = std::move(marks);
    if (op_name != graph_name(op)) n->marks[kGraphNameWord] = op_name;
    return n;
  }
  /// In MXNet 1 a created array may have sizes that are not known, written 0: states of recurrent layers for any batch.
  /// They have size 1 here and broadcast; the mark keeps the text.
  static void forget_sizes(IntList& shape, std::map<std::string, std::string>& marks, const std::string& value) {
    for (int i = 0; i < shape.size(); ++i) {
      if (shape[i] != 0) continue;
      shape[i] = 1;
      marks[kUnknownSizesWord] = value;
    }
  }
  /// What is no attribute of the operator: of users, without effect, or, in old files, of a parameter.
  void mark_call(const OpDef& op, const std::string& op_name, const std::vector<SymbolRef>& in,
                 std::map<std::string, std::string>& marks, const std::string& key, const std::string& value,
                 bool of_users) const {
    std::string hidden = hidden_attribute(key);
    if (!hidden.empty()) {
      marks[hidden] = value;
      return;
    }
    for (size_t i = 0; i < in.size(); ++i) {  // "weight_lr_mult"
      std::string prefix = graph_input(op, i) + "_";
      if (!key.starts_with(prefix) || !in[i].node->is_input()) continue;
      std::string own = hidden_attribute(key.substr(prefix.size()));
      if (own.empty()) continue;
      in[i].node->marks.emplace(own, value);
      return;
    }
    if (key.starts_with("__") || of_users) {
      marks[key] = value;
      return;
    }
    if (is_among(kWithoutEffect, key) || is_among(kWithoutEffect, text(key, "=", value))) return;
    std::vector<std::string_view> known;
    for (const Field& f : op.attrs.span()) known.push_back(graph_word(op, f).word);
    throw_error(ErrorKind::value, text(op_name, ": there is no attribute ", std::string_view(key).substr(0, 80),
                                       did_you_mean(key, known)));
  }
  static std::vector<SymbolRef> spread(std::vector<SymbolRef> in, const std::string& mask) {
    std::vector<SymbolRef> all;
    size_t next = 0;
    for (char c : mask) {
      TW_CHECK(c == '0' || (c == '1' && next < in.size()), value, kInputsWord, " does not fit the inputs");
      all.push_back(c == '1' ? in[next++] : SymbolRef());
    }
    TW_CHECK(next == in.size(), value, kInputsWord, " does not fit the inputs");
    return all;
  }
  /// Files of 0.8 have no auxiliary states; they come as variables.
  void complete_inputs(const OpDef& op, const AttrBytes& attrs, const std::string& name, std::vector<SymbolRef>& in,
                       const std::map<std::string, std::string>& marks) const {
    if (op.variadic()) return;
    for (size_t i = in.size(); i < static_cast<size_t>(op.inputs()); ++i) {
      SlotKind kind = op.in[i].kind;
      if (kind == SlotKind::optional) return;
      TW_CHECK(kind == SlotKind::aux, value, op.name, ": takes ", op.inputs(), " inputs; got ", in.size());
      SymbolNodePtr v = make_variable(text(name, "_", graph_input(op, i)));
      for (auto& [key, value] : marks)
        if (key.starts_with("__ctx_group")) v->marks[key] = value;
      in.push_back({std::move(v), 0});
    }
    (void)attrs;
  }

  // ---- gradients ----

  /// The inputs are dy..., x..., y... of the node whose gradients these are; the last one names it.
  SymbolNodePtr backward(const std::string& name, const Texts& texts, std::vector<SymbolRef> in) const {
    std::string mask;
    for (auto& [key, value] : texts.own ? texts.own->members : decltype(texts.own->members)())
      if (key == kInputsWord) mask = value.string;
    if (!mask.empty()) in = spread(std::move(in), mask);
    TW_CHECK(!in.empty() && in.back(), value, "a gradient needs the outputs of its node");
    SymbolNodePtr forward = in.back().node;
    auto outputs = static_cast<size_t>(forward->outputs), inputs = forward->in.size();
    bool fits =
        !forward->is_input() && forward->kind != SymbolNode::Kind::constant && in.size() == 2 * outputs + inputs;
    for (size_t i = 0; fits && i < inputs; ++i) fits = in[outputs + i] == forward->in[i];
    for (size_t k = 0; fits && k < outputs; ++k)
      fits = in[outputs + inputs + k] == SymbolRef{forward, static_cast<int>(k)};
    TW_CHECK(fits, value, "the inputs of a gradient must be those that its node ", forward->name, " has");
    auto n = std::make_shared<SymbolNode>();
    n->kind = SymbolNode::Kind::backward;
    n->forward = forward;
    n->outputs = static_cast<int>(inputs);
    n->in = std::move(in);
    n->name = name;
    return n;
  }

  /// Arrays are given by name, so names of variables must differ.
  void check_arguments() const {
    std::unordered_set<std::string_view> names;
    for (const SymbolNodePtr& n : nodes_)
      TW_CHECK(n->kind != SymbolNode::Kind::variable || names.insert(n->name).second, value, source_,
               ": two variables are called ", n->name.substr(0, 80));
  }

  const std::string& source_;
  Json root_;
  std::vector<SymbolNodePtr> nodes_;
  std::string where_;
  bool numpy_ = false;
  int64_t version_ = 0;
};

}  // namespace

std::string hidden_attribute(std::string_view word) {
  return is_among("ctx_group lr_mult wd_mult force_mirroring mirror_stage", word) ? text("__", word, "__")
                                                                                  : std::string();
}

bool is_without_effect(std::string_view word) { return is_among(kWithoutEffect, word); }

bool set_graph_attribute(const OpDef& op, AttrBytes& attrs, std::string_view word, std::string_view value) {
  const Field* f = find_graph_field(op, word);
  if (f) parse_attr(*f, attrs.data(), value);
  return f != nullptr || is_among(kWithoutEffect, word);
}

std::vector<SymbolRef> parse_symbol(std::string_view text_of, const std::string& source) {
  return Reader(text_of, source).read();
}

std::vector<SymbolRef> read_symbol(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{1} << 31;
  Bytes bytes = read_file(path, kMostBytes);
  return parse_symbol(text_of(bytes), path);
}

}  // namespace twibil::io
