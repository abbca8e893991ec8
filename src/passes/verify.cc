// SPDX-License-Identifier: Apache-2.0
#include "passes/verify.h"

namespace twibil::passes {

void verify(const Graph& g, const char* after) {
  auto need = [&](bool held, auto&&... what) {
    if (!held) throw_error(ErrorKind::runtime, text("this is a bug in twibil: after ", after, ": ", what...));
  };
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const GraphNode& n = g.nodes[i];
    need(n.is_input() || n.kind == GraphNode::Kind::function || n.op, "node ", i, " has no operator");
    need(n.kind != GraphNode::Kind::call || n.attrs.size() == n.op->attrs.size, "node ", i,
         " has attributes of another operator");
    need(!n.is_input() || n.in.empty(), "input ", i, " reads others");
    need(n.kind != GraphNode::Kind::constant || (n.value && !n.value->has(kStrided)), "constant ", i,
         " has no row-major value");
    need(n.kind != GraphNode::Kind::call || static_cast<int>(n.out.size()) == n.op->outputs(), "node ", i, " (",
         n.op_name(), ") has ", n.out.size(), " outputs");
    if (n.loop) {
      need(n.in.size() == n.loop->body.arguments.size() && n.out.size() == n.loop->body.outputs.size(), "loop ", i,
           " has other operands than its body");
      verify(n.loop->body, after);
      verify(n.loop->rest, after);
    }
    for (Edge e : n.in) {
      if (!e.present()) continue;
      need(e.node < static_cast<int32_t>(i), "node ", i, " reads node ", e.node, ", which comes later");
      need(e.output >= 0 && e.output < static_cast<int32_t>(g.at(e.node).out.size()), "node ", i,
           " reads an output that node ", e.node, " does not have");
    }
    for (const Sig& s : n.out) {
      need(s.present(), "node ", i, " has an output without a dtype");
      for (int64_t d : s.shape) need(d >= 0, "node ", i, " has an unknown size");
    }
    if (n.kind == GraphNode::Kind::call && n.op->pointwise())
      for (Edge e : n.in)
        need(!e.present() || broadcasts_to(g.sig(e).shape, n.out[0].shape), "node ", i, " (", n.op->name,
             ") does not broadcast its inputs to its output");
  }
  for (Edge e : g.outputs)
    need(!e.present() || (e.node < static_cast<int32_t>(g.nodes.size()) &&
                          e.output < static_cast<int32_t>(g.at(e.node).out.size())),
         "an output does not exist");
  for (int32_t a : g.arguments) need(a < 0 || g.at(a).kind == GraphNode::Kind::argument, "argument ", a, " is none");
}

}  // namespace twibil::passes
