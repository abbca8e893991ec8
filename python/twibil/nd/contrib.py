# SPDX-License-Identifier: Apache-2.0
"""`mx.nd.contrib`: loops and branches, and what else MXNet keeps under this name."""
from __future__ import annotations

from ..control_flow import cond, foreach, while_loop  # noqa: F401


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    from .. import nd
    return getattr(nd, name)
