# SPDX-License-Identifier: Apache-2.0
"""Short name of `initializer`."""
from .initializer import *  # noqa: F401,F403
from .initializer import create, register  # noqa: F401
