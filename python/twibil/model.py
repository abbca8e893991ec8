# SPDX-License-Identifier: Apache-2.0
"""`mx.model`: checkpoints, which are a graph file `prefix-symbol.json` and parameters `prefix-0001.params`."""
from __future__ import annotations

from .serialization import load_params as _load, save_params as _save
from .sym import load as _load_symbol


def save_checkpoint(prefix: str, epoch: int, symbol, arg_params: dict, aux_params: dict, remove_amp_cast: bool = True) -> None:
    """Writes the symbol (unless it is None) and the parameters of an epoch, so that MXNet reads them too."""
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json")
    arrays = {f"arg:{name}": value for name, value in arg_params.items()}
    arrays.update({f"aux:{name}": value for name, value in aux_params.items()})
    _save(f"{prefix}-{epoch:04d}.params", arrays)


def load_params(prefix: str, epoch: int):
    """The parameters of an epoch: (arguments, auxiliary states), two dictionaries. Errors name the file."""
    arguments, states = {}, {}
    loaded = _load(f"{prefix}-{epoch:04d}.params")
    for name, value in (loaded.items() if isinstance(loaded, dict) else ()):
        kind, colon, short = name.partition(":")
        if kind == "aux" and colon:
            states[short] = value
        else:
            arguments[short if kind == "arg" and colon else name] = value
    return arguments, states


def load_checkpoint(prefix: str, epoch: int):
    """(symbol, arguments, auxiliary states) of an epoch."""
    return (_load_symbol(f"{prefix}-symbol.json"), *load_params(prefix, epoch))
