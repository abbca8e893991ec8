// SPDX-License-Identifier: Apache-2.0
// Reads Python pickles as data: a machine that makes numbers, texts, lists, tuples and dictionaries, and runs nothing.
// Whoever derives from it says which names of Python a file may mention, and what a call of one stands for.
//
// Objects are numbered nodes of one vector, so that a hostile pickle (a list that holds itself, a million brackets)
// costs no more than its bytes; whoever walks the nodes must expect cycles.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "api/io/byte_cursor.h"

namespace twibil::io {

struct PickleNode {
  enum class Kind : uint8_t { none, boolean, integer, real, text, list, tuple, dict, name, storage, tensor };
  Kind kind = Kind::none;
  int64_t integer = 0;          // boolean, integer; which storage or tensor
  double real = 0;              // real
  std::string text;             // text; name: "module.name"
  std::vector<uint32_t> items;  // list, tuple; dict: key, value, key, value, ...
};

class PickleMachine {
 public:
  using Kind = PickleNode::Kind;
  virtual ~PickleMachine() = default;
  const PickleNode& node(uint32_t i) const { return nodes_[i]; }
  size_t size() const { return nodes_.size(); }

 protected:
  /// Reads one pickle up to its end and returns the node of its object.
  uint32_t run(ByteCursor& in);
  uint32_t add(PickleNode node);
  uint32_t add_tuple(std::vector<uint32_t> items);
  PickleNode& change(uint32_t i) { return nodes_[i]; }
  [[noreturn]] void fail(const std::string& why) const { in_->fail(why); }

  /// Whether the file may mention "module.name". Others are an error.
  virtual bool knows(const std::string& name) const = 0;
  /// The node that a call of a known name stands for.
  virtual uint32_t call(const std::string& name, uint32_t arguments) = 0;
  /// The node for a persistent id.
  virtual uint32_t persistent(uint32_t id) = 0;

 private:
  bool step();  // one instruction; false at the end of the pickle
  bool step_value(uint8_t code);
  bool step_container(uint8_t code);
  bool step_memo(uint8_t code);
  void step_name(bool from_stack);
  void step_call();
  void push(uint32_t i) { stack_.push_back(i); }
  void push_text(int64_t length);
  void push_long(int64_t length);
  void push_tuple(size_t count);
  uint32_t pop();
  std::vector<uint32_t> pop_many(size_t count);
  std::vector<uint32_t> pop_to_mark();
  void extend(Kind kind, std::vector<uint32_t> items);
  void count_items(size_t more);

  ByteCursor* in_ = nullptr;
  std::vector<PickleNode> nodes_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  size_t items_ = 0;  // of all nodes
};

}  // namespace twibil::io
