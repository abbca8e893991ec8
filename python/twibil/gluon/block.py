# SPDX-License-Identifier: Apache-2.0
"""`Block`: a part of a network, with parameters and child blocks. `hybrid_block.py` has those that become graphs."""
from __future__ import annotations

import contextlib
import inspect
import re
from collections import OrderedDict

from .. import initializer
from ..base import describe, did_you_mean
from ..serialization import load_params, save_params
from . import generation
from .hooks import HookHandle
from .parameter import Parameter, ParameterDict
from .parameter_dict import load_into
from .summary import print_summary


class Block:
    """Base of layers and networks. Derive, make children and parameters in `__init__`, write `forward`.

    Blocks and Parameters assigned as attributes are registered under the attribute's name.
    params: another block's `params`, to share its parameters. prefix is accepted and names nothing."""

    def __init__(self, prefix=None, params=None, **unknown):
        if unknown:
            raise _unknown_argument(type(self), next(iter(unknown)))
        if prefix is not None and not isinstance(prefix, str):
            raise TypeError(f"{type(self).__name__}: prefix must be a string; got {type(prefix).__name__}"
                            + (". Use add() for layers" if isinstance(prefix, Block) else ""))
        set_plain = super().__setattr__
        set_plain("_children", OrderedDict())
        set_plain("_reg_params", {})
        set_plain("_params", ParameterDict(shared=params))
        set_plain("_prefix", prefix or "")
        set_plain("_path", None)
        set_plain("_forward_hooks", OrderedDict())
        set_plain("_forward_pre_hooks", OrderedDict())
        set_plain("_pending", True)

    def __setattr__(self, name, value):
        registered = isinstance(value, (Block, Parameter))
        if "_children" not in self.__dict__:
            if registered:
                raise TypeError(f"{type(self).__name__}: call super().__init__() before assigning {name!r}")
            return super().__setattr__(name, value)
        if registered or name in self._children or name in self._reg_params:
            self._register_attribute(name, value)
        super().__setattr__(name, value)

    def _register_attribute(self, name, value):
        old = self.__dict__.get(name)
        if isinstance(old, (Block, Parameter)) and not isinstance(value, (Block, Parameter)) and value is not None:
            raise TypeError(f"{type(self).__name__}.{name}: a {type(old).__name__} cannot become a "
                            f"{type(value).__name__}")
        self._children.pop(name, None) if isinstance(old, Block) and not isinstance(value, Block) else None
        self._reg_params.pop(name, None)
        generation.changed()
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            self._reg_params[name] = value
            self._pending = True

    def __delattr__(self, name):
        self._children.pop(name, None)
        self._reg_params.pop(name, None)
        generation.changed()
        super().__delattr__(name)

    def __repr__(self):
        lines = "\n".join(f"  ({key}): {_indent(repr(block))}" for key, block in self._children.items())
        return f"{type(self).__name__}(\n{lines}\n)"

    prefix = property(lambda self: self._prefix)
    params = property(lambda self: self._params, doc="The parameters made by this block itself.")

    @property
    def name(self) -> str:
        """The path of the block in the outermost network known so far, else its class in lower case."""
        return self._path or self._prefix.rstrip("_") or type(self).__name__.lower()

    def name_scope(self):
        """MXNet 1's scope for names; names follow from the structure here, so it changes nothing."""
        return contextlib.nullcontext(self)

    def register_child(self, block, name=None) -> None:
        """Adds a child block under `name` (default: its number)."""
        if not isinstance(block, Block):
            raise TypeError(f"{type(self).__name__}: a child must be a Block; got {describe(block)}")
        self._children[str(len(self._children)) if name is None else name] = block
        generation.changed()

    def register_forward_pre_hook(self, hook) -> HookHandle:
        """Calls `hook(block, inputs)` before each forward pass; the handle's `detach()` ends that."""
        return HookHandle(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook) -> HookHandle:
        """Calls `hook(block, inputs, output)` after each forward pass; the handle's `detach()` ends that."""
        return HookHandle(self._forward_hooks, hook)

    def apply(self, fn):
        """Calls `fn` on every descendant and on this block; returns the block."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def _own_params(self) -> dict:
        """Parameters by local name: attributes first, then those made with `params.get` and not assigned."""
        own = dict(self._reg_params)
        seen = {id(p) for p in own.values()}
        own.update((n, p) for n, p in self._params.items() if id(p) not in seen and n not in own)
        return own

    def _file_name(self, name: str) -> str:
        """The name of an own parameter in files; MXNet 1 has other ones for some layers."""
        return name

    def _collect_params_with_prefix(self, prefix="", in_files=False) -> dict:
        """Parameters by structural name (or by name in files); also tells blocks and parameters their paths."""
        dot = prefix + "." if prefix else ""
        self._path = prefix or self._path
        found = {}
        for name, p in self._own_params().items():
            found[dot + (self._file_name(name) if in_files else name)] = p
            if p._path is None or len(dot + name) > len(p._path):
                p._path = dot + name
        for name, child in self._children.items():
            found.update(child._collect_params_with_prefix(dot + name, in_files))
        return found

    def collect_params(self, select=None) -> ParameterDict:
        """All parameters of this block and its descendants by structural name ('0.weight'), each once.

        select: a regular expression that names must match from the start."""
        pattern = re.compile(select) if select is not None else None
        found, seen = ParameterDict(), set()
        for name, p in self._collect_params_with_prefix().items():
            if id(p) not in seen and (pattern is None or pattern.match(name)):
                found[name] = p
                seen.add(id(p))
        return found

    def initialize(self, init=None, ctx=None, verbose=False, force_reinit=False, device=None) -> None:
        """Gives all parameters values: from their own initializers, else from `init` (default Uniform(0.07))."""
        self.collect_params().initialize(initializer.Uniform() if init is None else init, ctx, verbose, force_reinit,
                                         device)

    def save_parameters(self, filename, deduplicate=False) -> None:
        """Writes all parameters by structural name in MXNet's `.params` format, atomically.

        deduplicate: write a shared parameter once; by default it is written under each of its names."""
        params = self._collect_params_with_prefix(in_files=True)
        if deduplicate:
            first = {p: n for n, p in reversed(params.items())}
            params = {n: p for n, p in params.items() if first[p] == n}
        save_params(filename, {name: p.data() for name, p in params.items()})

    def load_parameters(self, filename, ctx=None, allow_missing=False, ignore_extra=False, cast_dtype=False,
                        dtype_source="current", device=None) -> None:
        """Reads parameters written by `save_parameters`, of this package or MXNet; initializes where needed.

        Raises ValueError for wrong shapes and for missing or additional names unless allowed, OSError for files."""
        loaded = load_params(filename)
        if not isinstance(loaded, dict):
            raise ValueError(f"{filename}: arrays without names cannot be given to parameters")
        self.load_dict(loaded, ctx if device is None else device, allow_missing, ignore_extra, cast_dtype, dtype_source,
                       source=str(filename))

    def load_dict(self, param_dict, ctx=None, allow_missing=False, ignore_extra=False, cast_dtype=False,
                  dtype_source="current", source="load_dict") -> None:
        """As `load_parameters`, from a dict of arrays by structural name."""
        loaded = {k[4:] if k.startswith(("arg:", "aux:")) else k: v for k, v in param_dict.items()}
        params = self._collect_params_with_prefix(in_files=True)
        renamed = dict(zip(self._collect_params_with_prefix(), params))  # MXNet 2 writes the structural names
        loaded = {k if k in params else renamed.get(k, k): v for k, v in loaded.items()}
        load_into(params, loaded, source, ctx, allow_missing, ignore_extra, cast_dtype,
                  dtype_source)

    save_params = save_parameters
    load_params = load_parameters

    def share_parameters(self, shared: dict):
        """Uses the parameters of `shared` (as from `collect_params()`) wherever names are equal; returns the block."""
        for name, p in shared.items():
            owner, local = self, name
            while "." in local:
                head, local = local.split(".", 1)
                owner = owner._children.get(head)
                if owner is None:
                    break
            if owner is not None and local in owner._own_params():
                if local in owner._params:
                    owner._params[local] = p
                    generation.changed()
                if local in owner._reg_params:
                    setattr(owner, local, p)
        return self

    def setattr(self, name, value) -> None:
        """Sets an attribute of all parameters: `net.setattr('grad_req', 'null')`."""
        self.collect_params().setattr(name, value)

    def zero_grad(self) -> None:
        """Sets all gradients to zero."""
        self.collect_params().zero_grad()

    def reset_ctx(self, ctx) -> None:
        """Moves all parameters to other devices."""
        self.collect_params().reset_ctx(ctx)

    reset_device = reset_ctx

    def cast(self, dtype) -> None:
        """Changes the dtype of all parameters of this block and its descendants."""
        for child in self._children.values():
            child.cast(dtype)
        for p in self._own_params().values():
            p.cast(dtype)

    def hybridize(self, active=True, **kwargs) -> None:
        """Asks descendants that can to run as graphs; see `HybridBlock.hybridize`."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def infer_shape(self, *args) -> None:
        """Sets the incomplete shapes of this block's own parameters from the inputs; layers write it."""
        pending = [p.name for p in self._own_params().values() if p._deferred is not None]
        raise ValueError(f"{type(self).__name__}: parameters {', '.join(pending)} have incomplete shapes; give them, "
                         "or write infer_shape(self, *inputs), which sets them from the inputs")

    def _settle(self, args) -> None:
        """Finishes deferred initialization of this block's own parameters before a forward pass."""
        own = self._own_params().values()
        deferred = [p for p in own if p._deferred is not None]
        if deferred:
            if any(p.shape is None or any(n <= 0 for n in p.shape) for p in deferred):
                self.infer_shape(*args)
            for p in deferred:
                p._finish_deferred_init()
        self._pending = any(p._data is None for p in own)

    def __call__(self, *args, **kwargs):
        """Runs hooks and `forward`. An error gets a note that names the block."""
        try:
            if self._pending or self._forward_pre_hooks or self._forward_hooks:
                return self._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            _note_block(error, self)
            raise

    def _call_with_hooks(self, args, kwargs):
        if self._pending:
            self._settle(args)
        for hook in list(self._forward_pre_hooks.values()):
            hook(self, args)
        out = self.forward(*args, **kwargs)
        for hook in list(self._forward_hooks.values()):
            hook(self, args, out)
        return out

    def forward(self, *args):
        """Computes the output; derived classes write it."""
        raise NotImplementedError(f"{type(self).__name__}.forward must be written")

    def summary(self, *inputs) -> None:
        """Runs `inputs` through the network and prints, for each layer, its output's shape and bytes, its parameters and
        multiply-adds (with those of layers inside it); then the sums, and what one graph would need. A hybridized block
        runs eagerly meanwhile. Raises TypeError without inputs."""
        print_summary(self, inputs)

    def register_op_hook(self, callback, monitor_all=False) -> None:
        """Calls `callback(output_name, operator, array)` for each operator of the descendants that are hybrid; with
        `monitor_all` for their inputs too."""
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)


def _indent(text: str, spaces: int = 2) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _unknown_argument(cls: type, name: str) -> TypeError:
    """Layers hand keywords that they do not know on to their base, so the error must name the layer."""
    known = [p for base in cls.__mro__ if "__init__" in vars(base)
             for p, kind in inspect.signature(base.__init__).parameters.items()
             if p != "self" and kind.kind not in (kind.VAR_KEYWORD, kind.VAR_POSITIONAL)]
    return TypeError(f"{cls.__name__}: there is no argument {name!r}.{did_you_mean(name, known)}")


def _note_block(error: Exception, block: Block) -> None:
    """Adds 'in block ...' to an error once, for the innermost block (Python 3.11 shows it under the message)."""
    if hasattr(error, "add_note") and not getattr(error, "_block_noted", False):
        with contextlib.suppress(AttributeError):
            error._block_noted = True
            where = f"{block._path!r}, " if block._path else ""
            error.add_note(f"in block {where}{repr(block).splitlines()[0]}")


from .hybrid_block import HybridBlock, SymbolBlock  # noqa: E402,F401  (MXNet's place of the names)
