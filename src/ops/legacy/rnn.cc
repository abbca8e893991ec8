// SPDX-License-Identifier: Apache-2.0
// Recurrent layers over whole sequences with all parameters in one vector, as cuDNN and MXNet lay them out: first the
// weights of every layer and direction (input, then state), then their biases in the same order.
#include "base/checked.h"
#include "ir/modes.h"
#include "ops/legacy/slices.h"
#include "ops/math/elementwise.h"
#include "ops/nn/dropout.h"
#include "ops/shape/join.h"

namespace twibil::ops {

TW_DECLARE(relu)
TW_DECLARE(clip)

namespace {

enum Mode { kRelu, kTanh, kLstm, kGru };
struct RnnAttrs {
  int64_t state_size = 0, num_layers = 1;
  Choice mode;
  double p = 0;
  bool bidirectional = false, state_outputs = false, lstm_state_clip_nan = false, use_sequence_length = false;
  Maybe<int64_t> projection_size;
  Maybe<double> lstm_state_clip_min, lstm_state_clip_max;
};
constexpr Field kRnnFields[] = {
    TW_ATTR(RnnAttrs, state_size, "Number of units.", .required = true),
    TW_ATTR(RnnAttrs, num_layers, "How many layers stand on each other.", .required = true),
    TW_ATTR(RnnAttrs, mode, "What a step computes.", .choices = "rnn_relu|rnn_tanh|lstm|gru", .required = true),
    TW_ATTR(RnnAttrs, bidirectional, "Whether each layer reads the sequence backwards too."),
    TW_ATTR(RnnAttrs, p, "Fraction of elements dropped between layers in training."),
    TW_ATTR(RnnAttrs, state_outputs, "Whether the last states are results too."),
    TW_ATTR(RnnAttrs, projection_size, "Not supported: must be None."),
    TW_ATTR(RnnAttrs, lstm_state_clip_min, "Lower bound of an lstm's cells."),
    TW_ATTR(RnnAttrs, lstm_state_clip_max, "Upper bound of an lstm's cells."),
    TW_ATTR(RnnAttrs, lstm_state_clip_nan, "Accepted for compatibility."),
    TW_ATTR(RnnAttrs, use_sequence_length, "Not supported: must be False."),
};

int gates_of(const RnnAttrs& a) { return a.mode == kLstm ? 4 : a.mode == kGru ? 3 : 1; }
int directions_of(const RnnAttrs& a) { return a.bidirectional ? 2 : 1; }
constexpr int64_t kMostUnits = int64_t{1} << 24;

void check(const RnnAttrs& a) {
  TW_CHECK(a.state_size >= 1 && a.state_size <= kMostUnits, value, "RNN: state_size must be positive; got ",
           a.state_size);
  TW_CHECK(a.num_layers >= 1 && a.num_layers <= 1024, value, "RNN: num_layers must be 1 to 1024; got ", a.num_layers);
  TW_CHECK(!a.projection_size, value, "RNN: projection_size is not supported");
  TW_CHECK(!a.use_sequence_length, value, "RNN: use_sequence_length is not supported; use SequenceMask");
}
int64_t parameter_count(const RnnAttrs& a, int64_t input) {
  int64_t rows = gates_of(a) * a.state_size, total = 0;
  for (int64_t layer = 0; layer < a.num_layers; ++layer) {
    int64_t columns = checked_add(layer ? directions_of(a) * a.state_size : input, a.state_size + 2);
    total = checked_add(total, checked_mul(directions_of(a), checked_mul(rows, columns)));
  }
  return total;
}

struct Cell {  // of one layer and direction
  Val input_weight, state_weight, input_bias, state_bias;
};
/// The cells' parameters, cut out of the vector.
std::vector<Cell> cells_of(const RnnAttrs& a, const Val& parameters, int64_t input) {
  std::vector<Cell> cells;
  int64_t rows = gates_of(a) * a.state_size, at = 0;
  auto take = [&](int64_t n) {
    Val v = part(parameters, 0, at, n);
    at += n;
    return v;
  };
  int count = static_cast<int>(a.num_layers) * directions_of(a);
  for (int k = 0; k < count; ++k) {
    int64_t columns = k < directions_of(a) ? input : directions_of(a) * a.state_size;
    Cell c;
    c.input_weight = reshape(take(rows * columns), Shape{rows, columns});
    c.state_weight = reshape(take(rows * a.state_size), Shape{rows, a.state_size});
    cells.push_back(c);
  }
  for (Cell& c : cells) {
    c.input_bias = take(rows);
    c.state_bias = take(rows);
  }
  return cells;
}

struct State {
  Val hidden, cell;
};
State step(const RnnAttrs& a, const Val& from_input, const Val& from_state, const State& before) {
  int64_t n = a.state_size;
  auto gate = [&](const Val& x, int k) { return part(x, 1, k * n, n); };
  if (a.mode == kGru) {
    Val reset = sigmoid(gate(from_input, 0) + gate(from_state, 0));
    Val update = sigmoid(gate(from_input, 1) + gate(from_state, 1));
    Val fresh = tanh(gate(from_input, 2) + reset * gate(from_state, 2));
    return {(Val(1.0) - update) * fresh + update * before.hidden, {}};
  }
  Val all = from_input + from_state;
  if (a.mode == kRelu) return {apply(op_relu, {all}), {}};
  if (a.mode == kTanh) return {tanh(all), {}};
  Val cell = sigmoid(gate(all, 1)) * before.cell + sigmoid(gate(all, 0)) * tanh(gate(all, 2));
  if (a.lstm_state_clip_min || a.lstm_state_clip_max)
    cell = apply(op_clip, {cell, a.lstm_state_clip_min ? Val(*a.lstm_state_clip_min) : Val(),
                           a.lstm_state_clip_max ? Val(*a.lstm_state_clip_max) : Val()});
  return {sigmoid(gate(all, 3)) * tanh(cell), cell};
}

/// One direction of one layer: x (time, batch, input) to (time, batch, units); `state` becomes the last one.
Val run_cell(const RnnAttrs& a, const Cell& c, const Val& x, State& state, bool backwards) {
  int64_t time = x->dims[0], batch = x->dims[1], rows = c.input_weight->dims[0];
  Val flat = reshape(x, Shape{time * batch, x->dims[2]});
  Val projected = reshape(matmul(flat, transpose(c.input_weight, {1, 0})) + c.input_bias, Shape{time, batch, rows});
  Val recurrent = transpose(c.state_weight, {1, 0});
  std::vector<Val> out(static_cast<size_t>(time));
  for (int64_t k = 0; k < time; ++k) {
    int64_t t = backwards ? time - 1 - k : k;
    state = step(a, at_index(projected, 0, t), matmul(state.hidden, recurrent) + c.state_bias, state);
    out[static_cast<size_t>(t)] = expand_dims(state.hidden, 0);
  }
  return join(out, 0);
}

Vals run(const RnnAttrs& a, std::span<const Val> in) {
  check(a);
  const Val &data = in[0], &parameters = in[1];
  TW_CHECK(data->rank() == 3 && data->dims[0] >= 1, value,
           "RNN: data must have shape (time, batch, inputs) and at least one step; got ", data->shape());
  int64_t count = parameter_count(a, data->dims[2]);
  TW_CHECK(parameters->rank() == 1 && parameters->dims[0] == count, value, "RNN: parameters must have shape [", count,
           "]; got ", parameters->shape());
  int64_t layers = a.num_layers * directions_of(a);
  Shape states{layers, data->dims[1], a.state_size};
  bool lstm = a.mode == kLstm;
  auto fits = [&](const Val& v) {  // a batch of one serves all examples
    return v && (v.sig().shape == states || v.sig().shape == Shape{layers, 1, a.state_size});
  };
  TW_CHECK(fits(in[2]), value, "RNN: state must have shape ", states, "; got ", in[2].sig().shape);
  TW_CHECK(!lstm || (in.size() > 3 && fits(in[3])), value, "RNN: state_cell must have shape ", states);
  std::vector<Cell> cells = cells_of(a, parameters, data->dims[2]);
  std::vector<Val> hidden, cell;
  Val x = data;
  for (int64_t layer = 0; layer < a.num_layers; ++layer) {
    if (layer && a.p > 0 && modes.training) {
      DropoutAttrs drop;
      drop.p = a.p;
      x = apply(op_dropout, drop, {x});
    }
    std::vector<Val> sides;
    for (int d = 0; d < directions_of(a); ++d) {
      int64_t k = layer * directions_of(a) + d;
      auto first = [&](const Val& all) {
        ShapeAttrs to{IntList{data->dims[1], a.state_size}};
        return apply(op_broadcast_to, to, {at_index(all, 0, k)});
      };
      State s{first(in[2]), lstm ? first(in[3]) : Val()};
      sides.push_back(run_cell(a, cells[static_cast<size_t>(k)], x, s, d == 1));
      hidden.push_back(expand_dims(s.hidden, 0));
      if (lstm) cell.push_back(expand_dims(s.cell, 0));
    }
    x = sides.size() == 1 ? sides[0] : join(sides, 2);
  }
  Vals out{x};
  if (a.state_outputs) out.push_back(join(hidden, 0));
  if (a.state_outputs && lstm) out.push_back(join(cell, 0));
  return out;
}

}  // namespace

TW_OP(rnn) = whole({
    .name = "rnn",
    .doc = "Recurrent layers over a sequence: plain, LSTM or GRU, several on each other, in one direction or both.",
    .names = {"nd.RNN", "npx.rnn"},
    .graph = {.wanted = "state_cell:mode=lstm"},
    .attrs = schema<RnnAttrs>(kRnnFields),
    .in = {{{.name = "data", .doc = "(time, batch, inputs)."},
            {.name = "parameters", .doc = "All weights, then all biases, in one vector."},
            {.name = "state", .doc = "(layers * directions, batch, units)."},
            {.name = "state_cell", .kind = SlotKind::optional, .doc = "The same, of an lstm."}}},
    .out = {{"output", "state_output", "statecell_output"}},
    .count = count_rule<RnnAttrs>([](auto& a) { return !a.state_outputs  ? 1
                                                       : a.mode == kLstm ? 3
                                                                         : 2; }),
    .types = kFloats,
    .complete = complete_rule<RnnAttrs>([](auto& a, std::span<Sig> in) {
      if (!in[0].present() || in[0].rank() != 3) return;
      check(a);
      DType t = in[0].dtype;
      if (in.size() > 1 && !in[1].present()) in[1] = {Shape{parameter_count(a, in[0].shape[2])}, t};
      Shape state{a.num_layers * directions_of(a), in[0].shape[1], a.state_size};
      for (size_t i = 2; i < in.size() && i < (a.mode == kLstm ? 4u : 3u); ++i)
        if (!in[i].present()) in[i] = {state, t};
    }),
    .expand = expand_rule<RnnAttrs>([](auto& a, std::span<const Val> in) -> Vals { return run(a, in); }),
    .samples = {{{.in = {{{3, 2, 3}, SampleInput({96}), {1, 2, 3}, {1, 2, 3}}},
                  .attrs = "state_size=3, num_layers=1, mode=lstm, state_outputs=True",
                  .smooth = false},
                 {.in = {{{2, 2, 3}, SampleInput({84}), {2, 2, 2}}},
                  .attrs = "state_size=2, num_layers=1, mode=gru, bidirectional=True",
                  .smooth = false},
                 {.in = {{{2, 1, 3}, SampleInput({26}), {2, 1, 2}}},
                  .attrs = "state_size=2, num_layers=2, mode=rnn_tanh",
                  .smooth = false}}},
});

}  // namespace twibil::ops
