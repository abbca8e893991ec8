// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as ONNX says them, step by step: the products with the data of all steps come first, at once.
#include <algorithm>
#include <string>

#include "ops/math/elementwise.h"
#include "ops/onnx/onnx.h"

namespace twibil::ops {

TW_DECLARE(fully_connected)
TW_DECLARE(stack)
TW_DECLARE(leaky)
TW_DECLARE(elu)
TW_DECLARE(hard_sigmoid)
TW_DECLARE(softsign)
TW_DECLARE(softplus)
TW_DECLARE(relu)

namespace {

struct RecurrentAttrs {
  DoubleList activation_alpha, activation_beta;
  ShortText activations;
  double clip = 0;
  Choice direction;
  int64_t hidden_size = 0, outputs = 1;
  bool input_forget = false, linear_before_reset = false;
  bool layout = false;
};
enum Direction { kForward, kReverse, kBidirectional };

/// One activation function with its parameters.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
  Val operator()(const Val& x) const {
    Val a(alpha), b(beta);
    if (name == "sigmoid") return sigmoid(x);
    if (name == "tanh") return tanh(x);
    if (name == "relu") return apply(op_relu, {x});
    if (name == "affine") return a * x + b;
    if (name == "leakyrelu") return With(op_leaky).set("slope", alpha)({x});
    if (name == "thresholdedrelu") return where(greater(x, a), x, zeros_like(x));
    if (name == "scaledtanh") return a * tanh(b * x);
    if (name == "hardsigmoid") return With(op_hard_sigmoid).set("alpha", alpha).set("beta", beta)({x});
    if (name == "elu") return With(op_elu).set("slope", alpha)({x});
    if (name == "softsign") return apply(op_softsign, {x});
    if (name == "softplus") return apply(op_softplus, {x});
    throw_error(ErrorKind::not_implemented,
                text("recurrent layer: activation '", name.substr(0, 40), "' is not supported"));
  }
};

/// Those of all directions, `each` for one. Parameters are used up by the functions that have any.
std::vector<Activation> activations_of(const RecurrentAttrs& a, std::string_view usual, int directions, int each) {
  std::string_view words = a.activations.view();
  std::string list(words.empty() ? usual : words);
  std::vector<Activation> all;
  auto n = static_cast<size_t>(each) * static_cast<size_t>(directions);
  std::transform(list.begin(), list.end(), list.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (size_t from = 0; from <= list.size();) {
    size_t to = std::min(list.find(',', from), list.size());
    all.push_back({list.substr(from, to - from)});
    from = to + 1;
  }
  for (size_t i = 0; words.empty() && all.size() < n; ++i)
    all.push_back(Activation(all[i]));  // again for each direction
  TW_CHECK(all.size() == n, value, "recurrent layer: ", n, " activations are needed; got ", all.size());
  struct Usual {
    const char* name;
    double alpha, beta;
    bool has_beta;
  };
  static constexpr Usual kUsual[] = {{"affine", 1, 0, true},           {"leakyrelu", 0.01, 0, false},
                                     {"thresholdedrelu", 1, 0, false}, {"scaledtanh", 1, 1, true},
                                     {"hardsigmoid", 0.2, 0.5, true},  {"elu", 1, 0, false}};
  int next_alpha = 0, next_beta = 0;
  for (Activation& f : all)
    for (const Usual& u : kUsual) {
      if (f.name != u.name) continue;
      f.alpha = next_alpha < a.activation_alpha.size() ? a.activation_alpha[next_alpha++] : u.alpha;
      if (u.has_beta) f.beta = next_beta < a.activation_beta.size() ? a.activation_beta[next_beta++] : u.beta;
    }
  return all;
}

/// What one direction of a layer needs at every step.
struct Cell {
  const RecurrentAttrs& a;
  std::span<const Activation> f;
  Val recurrent;       // (gates * hidden, hidden)
  Val recurrent_bias;  // of the gates that are reset, for a GRU
  Val peephole;
  int64_t hidden;

  Val gate(const Val& g, int k) const { return part(g, 1, k * hidden, hidden); }
  Val clipped(const Val& x) const { return a.clip > 0 ? minimum(maximum(x, Val(-a.clip)), Val(a.clip)) : x; }
  Val activate(int k, const Val& x) const { return f[static_cast<size_t>(k)](clipped(x)); }
  static Val dense(const Val& x, const Val& w, const Val& b = {}) {
    return With(op_fully_connected).set("no_bias", !b).set("flatten", false)({x, w, b});
  }
};

struct State {
  Val h, c;
};
using Step = State (*)(const Cell&, const Val& x, const State&);

State simple_step(const Cell& cell, const Val& x, const State& s) {
  return {cell.activate(0, x + Cell::dense(s.h, cell.recurrent)), {}};
}
State gru_step(const Cell& cell, const Val& x, const State& s) {
  int64_t n = cell.hidden;
  Val both = part(x, 1, 0, 2 * n) + Cell::dense(s.h, part(cell.recurrent, 0, 0, 2 * n));
  Val z = cell.activate(0, part(both, 1, 0, n)), r = cell.activate(0, part(both, 1, n, n));
  Val w = part(cell.recurrent, 0, 2 * n, n), b = cell.recurrent_bias;
  Val inner = cell.a.linear_before_reset ? r * Cell::dense(s.h, w, b) : Cell::dense(r * s.h, w, b);
  Val fresh = cell.activate(1, cell.gate(x, 2) + inner);
  return {(Val(1.0) - z) * fresh + z * s.h, {}};
}
State lstm_step(const Cell& cell, const Val& x, const State& s) {
  Val g = x + Cell::dense(s.h, cell.recurrent);
  int64_t n = cell.hidden;
  auto seen = [&](int k, const Val& c) { return cell.peephole ? part(cell.peephole, 0, k * n, n) * c : Val(); };
  auto with = [&](const Val& v, const Val& more) { return more ? v + more : v; };
  Val i = cell.activate(0, with(cell.gate(g, 0), seen(0, s.c)));
  Val f = cell.a.input_forget ? Val(1.0) - i : cell.activate(0, with(cell.gate(g, 2), seen(2, s.c)));
  Val c = f * s.c + i * cell.activate(1, cell.gate(g, 3));
  Val o = cell.activate(0, with(cell.gate(g, 1), seen(1, c)));
  return {o * cell.f[2](c), c};
}

struct Layer {
  const char* who;
  int gates, each;  // activations of a direction
  const char* usual;
  Step step;
  bool has_cell;
};

Vals run_layer(const RecurrentAttrs& a, std::span<const Val> in, const Layer& l) {
  Val x = in[0], w = in[1], r = in[2], b = in[3], lengths = in[4], h0 = in[5];
  Val c0 = l.has_cell ? in[6] : Val(), p = l.has_cell ? in[7] : Val();
  TW_CHECK(x->rank() == 3 && w->rank() == 3 && r->rank() == 3, value, l.who,
           ": X, W and R must have three axes; got shapes ", x->shape(), ", ", w->shape(), " and ", r->shape());
  if (a.layout) {
    x = transpose(x, {1, 0, 2});
    if (h0) h0 = transpose(h0, {1, 0, 2});
    if (c0) c0 = transpose(c0, {1, 0, 2});
  }
  int directions = a.direction == kBidirectional ? 2 : 1;
  int64_t steps = x->dims[0], batch = x->dims[1], n = r->dims[2], rows = l.gates * n;
  TW_CHECK(w->dims[0] == directions && r->dims[0] == directions && w->dims[1] == rows && r->dims[1] == rows &&
               w->dims[2] == x->dims[2] && (a.hidden_size == 0 || a.hidden_size == n),
           value, l.who, ": W of shape ", w->shape(), " and R of shape ", r->shape(), " do not fit X of shape ",
           x->shape(), ", ", directions, " directions and hidden_size ", a.hidden_size);
  TW_CHECK(!b || (b->rank() == 2 && b->dims[0] == directions && b->dims[1] == 2 * rows), value, l.who,
           ": B must have shape [", directions, ", ", 2 * rows, "]; got ", b->shape());
  TW_CHECK(steps > 0 && steps <= 1 << 16, value, l.who, ": 1 to 65536 steps are supported; got ", steps);
  std::vector<Activation> f = activations_of(a, l.usual, directions, l.each);
  Val running = lengths ? reshape(cast(lengths, DType::int64), Shape{1, batch, 1}) : Val();
  std::vector<Val> by_direction, last_h, last_c;
  for (int d = 0; d < directions; ++d) {
    bool reversed = a.direction == kReverse || d == 1;
    Cell cell{a,
              std::span(f).subspan(static_cast<size_t>(d * l.each), static_cast<size_t>(l.each)),
              at_index(r, 0, d),
              {},
              p ? at_index(p, 0, d) : Val(),
              n};
    Val bias;
    if (b) {
      Val row = at_index(b, 0, d), recurrent = part(row, 0, rows, rows);
      bias = part(row, 0, 0, rows);
      if (l.step == gru_step) {  // the bias of what is reset stays with it
        cell.recurrent_bias = part(recurrent, 0, 2 * n, n);
        recurrent = join({part(recurrent, 0, 0, 2 * n), zeros_like(cell.recurrent_bias)}, 0);
      }
      bias = bias + recurrent;
    }
    Val all = Cell::dense(x, at_index(w, 0, d), bias);
    State s;
    s.h = h0 ? at_index(h0, 0, d) : full(Shape{batch, n}, Scalar(0), x->dtype());
    if (l.has_cell) s.c = c0 ? at_index(c0, 0, d) : full(Shape{batch, n}, Scalar(0), x->dtype());
    std::vector<Val> outs(static_cast<size_t>(steps));
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = reversed ? steps - 1 - k : k;
      State next = l.step(cell, at_index(all, 0, t), s);
      Val y = next.h;
      if (running) {
        Val on = less(Val(t), at_index(running, 0, 0));
        y = where(on, next.h, zeros_like(next.h));
        next.h = where(on, next.h, s.h);
        if (l.has_cell) next.c = where(on, next.c, s.c);
      }
      s = next;
      outs[static_cast<size_t>(t)] = y;
    }
    by_direction.push_back(apply_all(op_stack, op_stack.attrs.defaults, outs)[0]);
    last_h.push_back(s.h);
    if (l.has_cell) last_c.push_back(s.c);
  }
  auto together = [&](const std::vector<Val>& v, int64_t axis) { return With(op_stack).set("axis", axis).all(v)[0]; };
  int64_t axis = a.layout ? 1 : 0;
  Val y = together(by_direction, 1);  // (steps, directions, batch, hidden)
  if (a.layout) y = transpose(y, {2, 0, 1, 3});
  Vals out{y};
  if (a.outputs > 1) out.push_back(together(last_h, axis));
  if (a.outputs > 2) out.push_back(together(last_c, axis));
  return out;
}

}  // namespace

inline constexpr Field kOnnxRecurrentFields[] = {
    TW_ATTR(RecurrentAttrs, activation_alpha, "First parameters of activations."),
    TW_ATTR(RecurrentAttrs, activation_beta, "Second parameters of activations."),
    TW_ATTR(RecurrentAttrs, activations, "Names of activations, separated by commas; empty: the usual ones."),
    TW_ATTR(RecurrentAttrs, clip, "Bound of what goes into activations; 0: none."),
    TW_ATTR(RecurrentAttrs, direction, "Which way time runs.", .choices = "forward|reverse|bidirectional"),
    TW_ATTR(RecurrentAttrs, hidden_size, "Size of the state; 0: that of R."),
    TW_ATTR(RecurrentAttrs, outputs, "How many of the outputs are wanted."),
    TW_ATTR(RecurrentAttrs, layout, "The batch comes first, then time."),
};
inline constexpr Field kOnnxGruFields[] = {
    kOnnxRecurrentFields[0],
    kOnnxRecurrentFields[1],
    kOnnxRecurrentFields[2],
    kOnnxRecurrentFields[3],
    kOnnxRecurrentFields[4],
    kOnnxRecurrentFields[5],
    kOnnxRecurrentFields[6],
    kOnnxRecurrentFields[7],
    TW_ATTR(RecurrentAttrs, linear_before_reset, "The state is multiplied before it is reset."),
};
inline constexpr Field kOnnxLstmFields[] = {
    kOnnxRecurrentFields[0],
    kOnnxRecurrentFields[1],
    kOnnxRecurrentFields[2],
    kOnnxRecurrentFields[3],
    kOnnxRecurrentFields[4],
    kOnnxRecurrentFields[5],
    kOnnxRecurrentFields[6],
    kOnnxRecurrentFields[7],
    TW_ATTR(RecurrentAttrs, input_forget, "What is taken in is forgotten elsewhere."),
};
inline constexpr std::array<Slot, 14> kOnnxRecurrentInputs = {{{.name = "X"},
                                                               {.name = "W"},
                                                               {.name = "R"},
                                                               {.name = "B", .kind = SlotKind::optional},
                                                               {.name = "sequence_lens", .kind = SlotKind::optional},
                                                               {.name = "initial_h", .kind = SlotKind::optional}}};
inline constexpr std::array<Slot, 14> kOnnxLstmInputs = {{{.name = "X"},
                                                          {.name = "W"},
                                                          {.name = "R"},
                                                          {.name = "B", .kind = SlotKind::optional},
                                                          {.name = "sequence_lens", .kind = SlotKind::optional},
                                                          {.name = "initial_h", .kind = SlotKind::optional},
                                                          {.name = "initial_c", .kind = SlotKind::optional},
                                                          {.name = "P", .kind = SlotKind::optional}}};

TW_OP(onnx_rnn) = whole({
    .name = "onnx_rnn",
    .doc = "A recurrent layer without gates.",
    .onnx = {.names = "RNN:7", .attrs = "outputs:@outputs"},
    .attrs = schema<RecurrentAttrs>(kOnnxRecurrentFields),
    .in = kOnnxRecurrentInputs,
    .count = count_rule<RecurrentAttrs>([](auto& a) { return static_cast<int>(std::clamp<int64_t>(a.outputs, 1, 2)); }),
    .types = kFloats,
    .expand = expand_rule<RecurrentAttrs>([](auto& a, std::span<const Val> in) {
      return run_layer(a, in, {"RNN", 1, 1, "Tanh", simple_step, false});
    }),
    .samples = {{{.in = {{{3, 2, 4}, {1, 5, 4}, {1, 5, 5}, {1, 10}}}}}},
});

TW_OP(onnx_gru) = whole({
    .name = "onnx_gru",
    .doc = "A layer of gated recurrent units.",
    .onnx = {.names = "GRU:7", .attrs = "outputs:@outputs"},
    .attrs = schema<RecurrentAttrs>(kOnnxGruFields),
    .in = kOnnxRecurrentInputs,
    .count = count_rule<RecurrentAttrs>([](auto& a) { return static_cast<int>(std::clamp<int64_t>(a.outputs, 1, 2)); }),
    .types = kFloats,
    .expand = expand_rule<RecurrentAttrs>([](auto& a, std::span<const Val> in) {
      return run_layer(a, in, {"GRU", 3, 2, "Sigmoid,Tanh", gru_step, false});
    }),
    .samples = {{{.in = {{{3, 2, 4}, {1, 6, 4}, {1, 6, 2}, {1, 12}}}}}},
});

TW_OP(onnx_lstm) = whole({
    .name = "onnx_lstm",
    .doc = "A layer of long short-term memory.",
    .onnx = {.names = "LSTM:7", .attrs = "outputs:@outputs"},
    .attrs = schema<RecurrentAttrs>(kOnnxLstmFields),
    .in = kOnnxLstmInputs,
    .count = count_rule<RecurrentAttrs>([](auto& a) { return static_cast<int>(std::clamp<int64_t>(a.outputs, 1, 3)); }),
    .types = kFloats,
    .expand = expand_rule<RecurrentAttrs>([](auto& a, std::span<const Val> in) {
      return run_layer(a, in, {"LSTM", 4, 3, "Sigmoid,Tanh,Tanh", lstm_step, true});
    }),
    .samples = {{{.in = {{{3, 2, 4}, {1, 8, 4}, {1, 8, 2}, {1, 16}}}}}},
});

}  // namespace twibil::ops
