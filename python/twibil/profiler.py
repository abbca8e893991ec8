# SPDX-License-Identifier: Apache-2.0
"""Shows where time goes: `set_config`, `set_state('run')`, the program, `dump()` for a trace that chrome://tracing and
Perfetto read, `print(dumps())` for a table of operators. `docs/profiling.md` tells how to read both."""
from __future__ import annotations

import functools
import threading
import warnings
from typing import Any, Callable

from . import _core
from .base import describe, did_you_mean, integer_types
from .gluon.block import Block
from .gluon.data import DataLoader
from .gluon.hybrid_block import HybridBlock
from .gluon.trainer import Trainer

__all__ = ["set_config", "set_state", "start", "stop", "state", "pause", "resume", "dump", "dumps", "clear", "scope",
           "Domain", "Task", "Frame", "Event", "Counter", "Marker", "profiler_set_config", "profiler_set_state",
           "dump_profile"]

_PARTS = {"profile_imperative": False, "profile_symbolic": False, "profile_memory": False, "profile_api": False}
_DEFAULTS = {"filename": "profile.json", "profile_all": False, **_PARTS, "continuous_dump": False, "dump_period": 1.0,
             "aggregate_stats": True, "profile_process": "worker", "gpu_memory_profile_filename_prefix": "",
             "max_events": 1_000_000}
_config = dict(_DEFAULTS)
_dumper: _Dumper | None = None


def set_config(**kwargs: Any) -> None:
    """Says what is recorded and where it goes. What a call does not name gets its default.

    filename: the trace's file. profile_imperative, profile_symbolic: kernels of operators called one by one, and of
    compiled graphs. profile_memory: bytes of arrays. profile_api: calls of the library, blocks, waits. profile_all, or
    none of the four: everything. continuous_dump: the file is written every dump_period seconds. max_events: how many
    events a trace holds (80 bytes each); later ones count in the table only. aggregate_stats, profile_process and
    gpu_memory_profile_filename_prefix are MXNet's; the table is always there.
    """
    for name in kwargs:
        if name not in _DEFAULTS:
            raise TypeError(f"profiler.set_config: there is no setting {name!r}.{did_you_mean(name, _DEFAULTS)}")
    new = {**_DEFAULTS, **{name: _checked(name, value) for name, value in kwargs.items()}}
    everything = new["profile_all"] or not any(new[part] for part in _PARTS)
    _core.profiler_configure(new["filename"], *(everything or new[part] for part in _PARTS), new["max_events"])
    _config.update(new)
    _follow_state()


def _checked(name: str, value: Any) -> Any:
    default = _DEFAULTS[name]
    where = f"profiler.set_config: {name}"
    if isinstance(default, bool):
        if not (isinstance(value, (bool, *integer_types)) and value in (0, 1)):
            raise TypeError(f"{where} must be True or False; got {describe(value)}")
        return bool(value)
    if isinstance(default, str):
        if hasattr(value, "__fspath__"):
            value = value.__fspath__()
        if not isinstance(value, str):
            raise TypeError(f"{where} must be a string; got {describe(value)}")
        if name == "filename" and (not value or "\0" in value):
            raise ValueError(f"{where} must be the name of a file; got {value!r}")
        if name == "profile_process":
            _check_process(value, "set_config")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, *integer_types)):
        raise TypeError(f"{where} must be a number; got {describe(value)}")
    if name == "max_events":
        if not 0 <= value <= 1 << 40 or value != int(value):
            raise ValueError(f"{where} must be a whole number from 0 to 2**40; got {value}")
        return int(value)
    if not 0 < value < 1e9:
        raise ValueError(f"{where} must be a positive number of seconds; got {value}")
    return float(value)


def _one_of(value: Any, known: tuple[str, ...], what: str) -> str:
    if value not in known:
        choices = " or ".join(repr(k) for k in known)
        raise ValueError(f"profiler.{what} must be {choices}; got {describe(value)}.{did_you_mean(str(value), known)}")
    return value


def _check_process(value: str, who: str) -> None:
    if _one_of(value, ("worker", "server"), f"{who}: profile_process") == "server":
        raise ValueError(f"profiler.{who}: profile_process 'server' needs a distributed kvstore, and there is none")


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """'run' starts recording or goes on, 'stop' waits for queued work and ends it. The state it has already: no-op."""
    _one_of(state, ("run", "stop"), "set_state: state")
    _check_process(profile_process, "set_state")
    try:
        if state == "run":
            _core.profiler_run()
        else:
            _core.profiler_stop()
    finally:
        _follow_state()


def start(profile_process: str = "worker") -> None:
    """set_state('run')."""
    set_state("run", profile_process)


def stop(profile_process: str = "worker") -> None:
    """set_state('stop')."""
    set_state("stop", profile_process)


def state() -> str:
    """'run', 'pause' or 'stop'."""
    return _core.profiler_state()


def pause(profile_process: str = "worker") -> None:
    """Records nothing until `resume`. No effect while the profiler is stopped."""
    _check_process(profile_process, "pause")
    _core.profiler_pause()
    _follow_state()


def resume(profile_process: str = "worker") -> None:
    """Goes on after `pause`."""
    _check_process(profile_process, "resume")
    _core.profiler_resume()
    _follow_state()


def clear() -> None:
    """Forgets all that was recorded."""
    _core.profiler_clear()


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Writes the trace. `finished` stops the profiler, and its next start begins a new trace; else it goes on, and the
    next dump writes the whole again. The file is replaced completely or stays as it was."""
    _check_process(profile_process, "dump")
    try:
        _core.profiler_dump(finished)
    finally:
        _follow_state()


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Statistics by name, as a table for people or as JSON; sorted by 'total', 'avg', 'min', 'max' or 'count'. `reset`
    forgets them afterwards. Waits for queued work."""
    keys = ("total", "avg", "min", "max", "count")
    _one_of(format, ("table", "json"), "dumps: format")
    _one_of(sort_by, keys, "dumps: sort_by")
    for name, value in (("reset", reset), ("ascending", ascending)):
        if value not in (True, False):
            raise TypeError(f"profiler.dumps: {name} must be True or False; got {describe(value)}")
    return _core.profiler_dumps(reset, format == "json", keys.index(sort_by), ascending)


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Old spelling of `set_config`; mode is 'symbolic', 'imperative', 'api', 'memory' or 'all'."""
    warnings.warn("profiler.profiler_set_config() is deprecated. Use profiler.set_config()", DeprecationWarning, 2)
    _one_of(mode, ("symbolic", "imperative", "api", "memory", "all"), "profiler_set_config: mode")
    set_config(**{"profile_" + mode: True}, filename=filename)


def profiler_set_state(state: str = "stop") -> None:
    """Old spelling of `set_state`."""
    warnings.warn("profiler.profiler_set_state() is deprecated. Use profiler.set_state()", DeprecationWarning, 2)
    set_state(state)


def dump_profile() -> None:
    """Old spelling of `dump`."""
    warnings.warn("profiler.dump_profile() is deprecated. Use profiler.dump()", DeprecationWarning, 2)
    dump(True)


# ---- what follows the state ----

class _Dumper(threading.Thread):
    """Writes the trace every period seconds until it is told to end."""

    def __init__(self, period: float):
        super().__init__(daemon=True, name="twibil profiler")
        self.period, self.ended = period, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(self.period):
            try:
                _core.profiler_dump(False)
            except Exception as error:  # a full disk must not end the program
                warnings.warn(f"profiler: continuous_dump ended: {error}")
                return


def _follow_state() -> None:
    """Blocks and data loaders report their calls while the profiler runs, and cost nothing else; the thread of
    continuous_dump lives as long."""
    global _dumper
    is_on = _core.profiler_state() == "run"
    wanted = is_on and (_config["profile_all"] or _config["profile_api"] or not any(_config[p] for p in _PARTS))
    if wanted and not _plain_methods:
        for kind in (Block, HybridBlock):
            _watch(kind, "__call__", lambda block: f"{type(block).__name__} {block.name}")
        _watch(DataLoader, "_make", lambda loader: "DataLoader batch")
        _watch(Trainer, "step", lambda trainer: "Trainer.step")
    elif not wanted:
        while _plain_methods:
            setattr(*_plain_methods.pop())
    period = _config["dump_period"] if is_on and _config["continuous_dump"] else None
    if _dumper and (_dumper.period != period or not _dumper.is_alive()):
        _dumper.ended.set()
        _dumper = None
    if period and not _dumper:
        _dumper = _Dumper(period)
        _dumper.start()


_plain_methods: list[tuple[type, str, Any]] = []  # what _watch has replaced


def _watch(owner: type, method: str, name_of: Callable[[Any], str]) -> None:
    """Replaces a method by one that records each call as a scope."""
    plain = getattr(owner, method)

    @functools.wraps(plain)
    def timed(self, *args, **kwargs):
        begin = _core.profiler_begin()
        try:
            return plain(self, *args, **kwargs)
        finally:
            if begin:
                _core.profiler_end("scope", name_of(self), None, begin)

    _plain_methods.append((owner, method, plain))
    setattr(owner, method, timed)


# ---- the program's own parts ----

def _name(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"profiler.{what}: name must be a string; got {describe(value)}")
    return value.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


class Domain:
    """A group of tasks, frames, counters and markers: a category of traces, a section of the table."""

    def __init__(self, name: str):
        self.name = _name(name, "Domain")

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        return Frame(self, name)

    def new_counter(self, name: str, value: int | None = None) -> Counter:
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        return Marker(self, name)


class _Span:
    """Time from start() to stop(), which may be called on different threads. Also a context manager."""

    def __init__(self, domain: Domain | None, name: str):
        kind = type(self).__name__
        if domain is not None and not isinstance(domain, Domain):
            raise TypeError(f"profiler.{kind}: domain must be a Domain; got {describe(domain)}")
        self.name, self.domain = _name(name, kind), domain
        self._begin = 0

    def start(self) -> None:
        """Starts the time, also when it was started before."""
        self._begin = _core.profiler_begin()

    def stop(self) -> None:
        """Ends and records it; nothing happens without a start, or when the profiler was off then."""
        begin, self._begin = self._begin, 0
        if begin:
            _core.profiler_end("span", self.name, self.domain.name if self.domain else None, begin)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error) -> None:
        self.stop()

    def __str__(self) -> str:
        return self.name


class Task(_Span):
    """A piece of work of the program."""

    def __init__(self, domain: Domain, name: str):
        super().__init__(domain, name)


class Frame(_Span):
    """A step that comes again and again, such as a batch."""

    def __init__(self, domain: Domain, name: str):
        super().__init__(domain, name)


class Event(_Span):
    """Something that takes time and belongs to no domain."""

    def __init__(self, name: str):
        super().__init__(None, name)


class Counter:
    """A whole number over time. It keeps its value while the profiler is off."""

    def __init__(self, domain: Domain, name: str, value: int | None = None):
        if not isinstance(domain, Domain):
            raise TypeError(f"profiler.Counter: domain must be a Domain; got {describe(domain)}")
        self.name, self.domain = _name(name, "Counter"), domain
        self._value, self._lock = 0, threading.Lock()
        if value is not None:
            self.set_value(value)

    def set_value(self, value: int) -> None:
        with self._lock:
            self._set(int(value))

    def increment(self, delta: int = 1) -> None:
        with self._lock:
            self._set(self._value + int(delta))

    def decrement(self, delta: int = 1) -> None:
        self.increment(-int(delta))

    def _set(self, value: int) -> None:
        if not -(1 << 63) <= value < 1 << 63:
            raise OverflowError(f"profiler.Counter: {self.name} must fit 64 bits; got {value}")
        self._value = value
        _core.profiler_value("counter", self.name, self.domain.name, value)

    def __iadd__(self, delta: int) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: int) -> Counter:
        self.decrement(delta)
        return self

    def __str__(self) -> str:
        return self.name


class Marker:
    """An instant."""

    def __init__(self, domain: Domain, name: str):
        if not isinstance(domain, Domain):
            raise TypeError(f"profiler.Marker: domain must be a Domain; got {describe(domain)}")
        self.name, self.domain = _name(name, "Marker"), domain

    def mark(self, scope: str = "process") -> None:
        """Records it; scope says how far the line in the trace goes: 'global', 'process', 'thread', 'task', 'marker'."""
        _one_of(scope, ("global", "process", "thread", "task", "marker"), "Marker.mark: scope")
        letter = scope[0] if scope in ("global", "process") else "t"
        _core.profiler_value("marker", self.name, self.domain.name, ord(letter))

    def __str__(self) -> str:
        return self.name


_scopes = threading.local()


class scope:
    """`with profiler.scope("epoch"):` a part of the program in traces and in the table. Inside another scope its name
    begins with that one's, unless append_mode is False. MXNet's trailing colon may be there or not."""

    def __init__(self, name: str = "<unk>:", append_mode: bool = True):
        self.name, self.append_mode = _name(name, "scope").removesuffix(":") or "<unk>", append_mode
        self._entered: list[tuple[int, str]] = []

    def __enter__(self) -> scope:
        stack = _scopes.__dict__.setdefault("names", [])
        name = f"{stack[-1]}:{self.name}" if stack and self.append_mode else self.name
        stack.append(name)
        self._entered.append((_core.profiler_begin(), name))
        return self

    def __exit__(self, *error) -> None:
        begin, name = self._entered.pop()
        stack = _scopes.__dict__.get("names", [])
        if name in stack:
            del stack[len(stack) - 1 - stack[::-1].index(name)]
        if begin:
            _core.profiler_end("scope", name, None, begin)
