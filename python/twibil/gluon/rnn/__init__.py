# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: `gluon.rnn`. The cells come with a later version; their names raise NotImplementedError."""
from __future__ import annotations

from .layers import GRU, LSTM, RNN

__all__ = ["RNN", "LSTM", "GRU"]

_LATER = ("RNNCell", "LSTMCell", "GRUCell", "SequentialRNNCell", "BidirectionalCell", "DropoutCell", "ZoneoutCell",
          "ResidualCell", "RecurrentCell", "HybridRecurrentCell", "ModifierCell")


def __getattr__(name):
    if name in _LATER:
        raise NotImplementedError(f"gluon.rnn.{name}: recurrent cells do not exist in this version; RNN, LSTM and GRU do")
    raise AttributeError(f"gluon.rnn has no attribute {name!r}")
