# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: `gluon.rnn`. They come with a later version; their names raise NotImplementedError."""
from __future__ import annotations

_LATER = ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "SequentialRNNCell", "BidirectionalCell",
          "DropoutCell", "ZoneoutCell", "ResidualCell", "RecurrentCell", "HybridRecurrentCell", "ModifierCell")


def __getattr__(name):
    if name in _LATER:
        raise NotImplementedError(f"gluon.rnn.{name}: recurrent layers do not exist in this version")
    raise AttributeError(f"gluon.rnn has no attribute {name!r}")
