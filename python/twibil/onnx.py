# SPDX-License-Identifier: Apache-2.0
"""ONNX models: `load` gives a network that runs, `import_model` its graph and arrays as MXNet's function does.

Opsets 7 to 28 are read. A model that needs operators which are not there is refused with a list of them all."""
from __future__ import annotations

import os

from . import _core
from .context import cpu
from .gluon.parameter import Parameter
from .gluon.symbol_block import SymbolBlock
from .sym import Symbol  # noqa: F401  (the class of the symbols that come back)

__all__ = ["import_model", "import_to_gluon", "get_model_metadata", "load", "operators", "Model"]


def _source(file):
    if isinstance(file, (bytes, bytearray, memoryview)):
        return bytes(file)
    return os.fspath(file)


def import_model(model_file):
    """(symbol, arg_params, aux_params) of a model: a path, or the bytes of one.

    Floating tensors become parameters; whole numbers, and tensors that decide shapes, become constants of the graph.
    OSError where the file cannot be read, ValueError where it is damaged, NotImplementedError where it needs operators
    that are not there; the message names them all."""
    symbol, parameters, _ = _core.import_onnx(_source(model_file))
    used, auxiliary = set(symbol.list_inputs()), set(symbol.list_auxiliary_states())
    parameters = {name: array for name, array in parameters.items() if name in used}
    return (symbol, {n: a for n, a in parameters.items() if n not in auxiliary},
            {n: a for n, a in parameters.items() if n in auxiliary})


def _shaped(values):
    return [(name, tuple(0 if size is None or isinstance(size, str) else size for size in shape or ()))
            for name, _, shape in values]


def get_model_metadata(model_file) -> dict:
    """Names and shapes of a model's inputs and outputs, as MXNet gives them (sizes that are not known are 0), and under
    further keys what else the model says of itself: opsets, producer, dtypes, names of sizes."""
    about = _core.describe_onnx(_source(model_file))
    return {"input_tensor_data": _shaped(about["inputs"]), "output_tensor_data": _shaped(about["outputs"]), **about}


class Model(SymbolBlock):
    """A network from an ONNX model. It is called with the model's inputs in their order, or by their names; its weights
    are fixed parameters, so what depends on them alone is computed once."""

    def __init__(self, symbol, parameters: dict, about: dict):
        self.metadata = about
        self.input_names = [name for name, _, _ in about["inputs"]]
        self.output_names = [name for name, _, _ in about["outputs"]]
        variables = symbol.list_inputs()
        super().__init__(symbol, [n for n in self.input_names if n in variables],
                         {name: _held(name, parameters[name]) for name in variables if name in parameters})

    def __call__(self, *args, **kwargs):
        if kwargs:
            given = dict(zip(self.input_names, args))
            for name in kwargs:
                if name not in self.input_names or name in given:
                    raise TypeError(f"the model takes {', '.join(self.input_names)}; got {name!r}"
                                    f"{' twice' if name in given else ''}")
            given.update(kwargs)
            missing = [n for n in self.input_names if n not in given]
            if missing:
                raise TypeError(f"the model takes {', '.join(self.input_names)}; {', '.join(missing)} is missing")
            args = [given[n] for n in self.input_names]
        if len(args) != len(self.input_names):
            raise TypeError(f"the model takes {len(self.input_names)} inputs ({', '.join(self.input_names)}); got {len(args)}")
        return super().__call__(*(a for n, a in zip(self.input_names, args) if n in self._input_names))


def _held(name: str, array) -> Parameter:
    """A parameter that has the array itself, not a copy, and no gradient until somebody asks for one."""
    made = Parameter(name, grad_req="null", shape=array.shape, dtype=array.dtype, differentiable=True)
    made._keep({cpu(): array})
    return made


def load(model_file) -> Model:
    """The network in a model, ready to be called: `net = mx.onnx.load("resnet50.onnx"); scores = net(pictures)`.

    Errors are those of `import_model`."""
    return Model(*_core.import_onnx(_source(model_file)))


def import_to_gluon(model_file, ctx=None) -> SymbolBlock:
    """MXNet's name for `load`."""
    net = load(model_file)
    if ctx is not None:
        net.reset_ctx(ctx)
    return net


def operators() -> list:
    """The names of ONNX's operators that some opset has here."""
    return _core.onnx_operators()
