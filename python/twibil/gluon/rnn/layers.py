# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers over whole sequences, step by step with ordinary operators: RNN, LSTM, GRU."""
from __future__ import annotations

from ... import _core, np, npx
from ..block import HybridBlock


class _Recurrent(HybridBlock):
    """What the three share: stacked layers, two directions, dropout between layers, states.

    Input (time, batch, features) for layout 'TNC', (batch, time, features) for 'NTC'. A state is
    (layers * directions, batch, hidden_size). Called with states (an array or a list) it returns (output, states); without,
    the output alone, starting from zeros. Parameters are named as MXNet's: l0_i2h_weight, r0_h2h_bias, ..."""

    gates = 1
    states = 1

    def __init__(self, hidden_size, num_layers=1, layout="TNC", dropout=0, bidirectional=False, input_size=0,
                 i2h_weight_initializer=None, h2h_weight_initializer=None, i2h_bias_initializer="zeros",
                 h2h_bias_initializer="zeros", dtype="float32", **kwargs):
        super().__init__(**kwargs)
        if layout not in ("TNC", "NTC"):
            raise ValueError(f"{type(self).__name__}: layout must be 'TNC' or 'NTC'; got {layout!r}")
        self._hidden_size, self._num_layers, self._layout = hidden_size, num_layers, layout
        self._dropout, self._dtype = dropout, dtype
        self._directions = "lr" if bidirectional else "l"
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            size = input_size if layer == 0 else hidden_size * len(self._directions)
            for side in self._directions:
                for name, shape, init in (("i2h_weight", (rows, size), i2h_weight_initializer),
                                          ("h2h_weight", (rows, hidden_size), h2h_weight_initializer),
                                          ("i2h_bias", (rows,), i2h_bias_initializer),
                                          ("h2h_bias", (rows,), h2h_bias_initializer)):
                    full = f"{side}{layer}_{name}"
                    setattr(self, full, self.params.get(full, shape=shape, init=init, dtype=dtype,
                                                        allow_deferred_init=True))

    def _file_name(self, name):
        """l0_i2h_weight is _unfused.0.i2h_weight in MXNet 1's files, _unfused.0.l_cell.i2h_weight in two directions."""
        cell = f"{name[0]}_cell." if len(self._directions) == 2 else ""
        layer, _, rest = name[1:].partition("_")
        return f"_unfused.{layer}.{cell}{rest}"

    def infer_shape(self, x, *_):
        for side in self._directions:
            self._reg_params[f"{side}0_i2h_weight"].shape = (self.gates * self._hidden_size, x.shape[2])

    def state_info(self, batch_size=0) -> list:
        """Shape and layout of each state."""
        shape = (self._num_layers * len(self._directions), batch_size, self._hidden_size)
        return [{"shape": shape, "__layout__": "LNC", "dtype": self._dtype}] * self.states

    def begin_state(self, batch_size=0, func=None, ctx=None, **kwargs) -> list:
        """States to start from: zeros, or what `func(shape, ...)` gives."""
        more = {} if ctx is None else {"ctx": ctx}
        func = func or np.zeros
        return [func(info["shape"], dtype=self._dtype, **more, **kwargs) for info in self.state_info(batch_size)]

    def forward(self, x, states=None):
        if x.ndim != 3:
            raise ValueError(f"{type(self).__name__}: {self._layout} input has 3 axes; got shape {list(x.shape)}")
        sequence = x.swapaxes(0, 1) if self._layout == "NTC" else x
        given = [states] if isinstance(states, _core.ndarray) else states
        begin = self.begin_state(sequence.shape[1], ctx=x.ctx) if given is None else list(given)
        self._check_states(begin, sequence.shape[1])
        ends: list = []
        for layer in range(self._num_layers):
            if layer and self._dropout:
                sequence = npx.dropout(sequence, p=self._dropout)
            outputs = []
            for number, side in enumerate(self._directions):
                place = layer * len(self._directions) + number
                output, end = self._run(sequence, side, layer, [s[place] for s in begin])
                outputs.append(output)
                ends.append(end)
            sequence = outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=2)
        output = sequence.swapaxes(0, 1) if self._layout == "NTC" else sequence
        if states is None:
            return output
        return output, [np.stack([end[i] for end in ends]) for i in range(self.states)]

    def _check_states(self, states, batch: int) -> None:
        expected = self.state_info(batch)[0]["shape"]
        if len(states) != self.states or any(s.shape != expected for s in states):
            raise ValueError(f"{type(self).__name__}: {self.states} states of shape {list(expected)} are needed; got "
                             f"{[list(s.shape) for s in states]}")

    def _run(self, sequence, side: str, layer: int, state: list):
        """One layer in one direction: outputs (time, batch, hidden) and the last state."""
        i2h_w, h2h_w, i2h_b, h2h_b = (self._reg_params[f"{side}{layer}_{name}"].on(sequence)
                                      for name in ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias"))
        projected = np.matmul(sequence, i2h_w.T) + i2h_b
        steps = range(sequence.shape[0])
        outputs = [None] * len(steps)
        recurrent = h2h_w.T
        for t in (steps if side == "l" else reversed(steps)):
            state = self._step(projected[t], np.matmul(state[0], recurrent) + h2h_b, state)
            outputs[t] = state[0]
        return np.stack(outputs), state

    def _step(self, inputs, hidden, state: list) -> list:
        """The next state from the input's and the hidden state's projections, (batch, gates * hidden)."""
        raise NotImplementedError

    def _split(self, x) -> list:
        n = self._hidden_size
        return [x[:, i * n:(i + 1) * n] for i in range(self.gates)]

    def __repr__(self):
        size = self._reg_params["l0_i2h_weight"].shape[1]
        text = f"{type(self).__name__}({size if size > 0 else None} -> {self._hidden_size}, {self._layout}"
        text += f", num_layers={self._num_layers}" if self._num_layers != 1 else ""
        text += f", dropout={self._dropout}" if self._dropout else ""
        return text + (", bidirectional)" if len(self._directions) == 2 else ")")


class RNN(_Recurrent):
    """h = act(W x + b + R h + c), act 'relu' or 'tanh'."""

    def __init__(self, hidden_size, num_layers=1, activation="relu", layout="TNC", dropout=0, bidirectional=False,
                 input_size=0, **kwargs):
        super().__init__(hidden_size, num_layers, layout, dropout, bidirectional, input_size, **kwargs)
        self._activation = npx.activation_function(activation)

    def _step(self, inputs, hidden, state):
        return [self._activation(inputs + hidden)]


class LSTM(_Recurrent):
    """Gates i, f, g, o of W x + b + R h + c: cell = sigmoid(f) cell + sigmoid(i) tanh(g); h = sigmoid(o) tanh(cell).

    States: h and cell."""

    gates = 4
    states = 2

    def _step(self, inputs, hidden, state):
        i, f, g, o = self._split(inputs + hidden)
        cell = npx.sigmoid(f) * state[1] + npx.sigmoid(i) * np.tanh(g)
        return [npx.sigmoid(o) * np.tanh(cell), cell]


class GRU(_Recurrent):
    """r, z = sigmoid of the first two gates; n = tanh(W x + b + r (R h + c)); h = (1 - z) n + z h."""

    gates = 3

    def _step(self, inputs, hidden, state):
        (ir, iz, new), (hr, hz, hn) = self._split(inputs), self._split(hidden)
        r, z = npx.sigmoid(ir + hr), npx.sigmoid(iz + hz)
        n = np.tanh(new + r * hn)
        return [(1 - z) * n + z * state[0]]
