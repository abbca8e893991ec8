# SPDX-License-Identifier: Apache-2.0
"""`Workers`: runs functions in threads ahead of their use and hands out the results in order."""
from __future__ import annotations

import collections
import queue
import threading


class _Job:
    """A call to make, and its result or error once `done` is set."""

    __slots__ = ("function", "arguments", "done", "result", "error")

    def __init__(self, function, arguments):
        self.function, self.arguments = function, arguments
        self.done = threading.Event()
        self.result = self.error = None

    def run(self) -> None:
        try:
            self.result = self.function(*self.arguments)
        except BaseException as error:
            self.error = error
        self.done.set()


class Workers:
    """`count` daemon threads that live for one pass: started by `run`, gone when its generator ends, fails or is
    dropped.

    Nothing waits for a thread that is stuck: a result that takes over `timeout` seconds raises TimeoutError."""

    def __init__(self, count: int, ahead: int, timeout: float):
        self._count, self._ahead, self._timeout = count, ahead, timeout

    def run(self, jobs, describe):
        """Yields results of (function, arguments) pairs in order, `ahead` of them prepared; describe(arguments) names
        one in messages."""
        waiting: collections.deque = collections.deque()
        todo: queue.SimpleQueue = queue.SimpleQueue()
        stop = threading.Event()
        for _ in range(self._count):
            threading.Thread(target=_work, args=(todo, stop), name="data-worker", daemon=True).start()
        source = iter(jobs)
        try:
            while True:
                while len(waiting) < self._ahead:
                    pair = next(source, None)
                    if pair is None:
                        break
                    waiting.append(_Job(*pair))
                    todo.put(waiting[-1])
                if not waiting:
                    return
                job = waiting.popleft()
                if not job.done.wait(self._timeout):
                    raise TimeoutError(f"DataLoader: {describe(job.arguments)} was not ready after {self._timeout} s; "
                                       "a sample may be stuck, or `timeout` too short")
                if job.error is not None:
                    raise job.error
                yield job.result
        finally:
            stop.set()
            for _ in range(self._count):
                todo.put(None)


def _work(todo: queue.SimpleQueue, stop: threading.Event) -> None:
    """A thread's life: jobs from the queue until None or `stop`."""
    while True:
        job = todo.get()
        if job is None or stop.is_set():
            return
        job.run()
