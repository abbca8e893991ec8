# SPDX-License-Identifier: Apache-2.0
"""A number that changes whenever a block gets another child, parameter or hook, or a parameter another array. Compiled
graphs compare it at each call, and look closer only where it has changed."""
from __future__ import annotations

current = 0


def changed() -> None:
    """Something changed, somewhere."""
    global current
    current += 1
