// SPDX-License-Identifier: Apache-2.0
// Traces a function into a symbol: operators stay as the user called them, arrays of the outside become inputs.
#pragma once
#include <unordered_map>

#include "ir/symbol.h"
#include "ir/trace.h"

namespace twibil {

class SymbolTracer final : public Tracer {
 public:
  bool keeps_calls() const override { return true; }
  int32_t add_call(const OpDef& op, const void* attrs, std::span<const Edge> in, std::span<const Sig> out, DType work,
                   bool training) override;
  int32_t add_function(std::shared_ptr<const GraphFunction> f, std::span<const Edge> in, std::span<const Sig> out,
                       bool training) override;
  Edge add_outside(Value& v) override;
  Edge add_constant(Value& v) override;
  std::shared_ptr<bool> storage_of(Value& v) override {
    return storages_.try_emplace(v.root, std::make_shared<bool>(true)).first->second;
  }
  void written(Value& v, Edge e) override;

  /// The modes in which the traced function begins.
  void begin(Modes m) { base_ = m; }
  /// A traced argument.
  Val input(std::string name, const Sig& sig);
  SymbolRef ref(Edge e) const { return {nodes_[static_cast<size_t>(e.node)], e.output}; }
  /// Arguments, then captured arrays, in the order in which they came.
  const std::vector<SymbolNodePtr>& inputs() const { return inputs_; }
  std::vector<SymbolNodePtr> captured() const { return captured_; }
  /// The last states of arguments and captured arrays that were written.
  std::vector<SymbolRef> effects() const { return effects_; }

 private:
  int32_t add(SymbolNodePtr n);
  std::vector<SymbolRef> refs(std::span<const Edge> in) const;
  std::vector<SymbolNodePtr> nodes_, inputs_, captured_;
  std::unordered_map<const Value*, Edge> outside_;
  std::vector<SymbolRef> effects_;
  std::unordered_map<const Value*, std::shared_ptr<bool>> storages_;  // by root
  std::vector<const Value*> written_;                                 // roots
  Modes base_;
};

}  // namespace twibil
