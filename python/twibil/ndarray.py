# SPDX-License-Identifier: Apache-2.0
"""MXNet's long name of `nd`."""
from .nd import *  # noqa: F401,F403
from .nd import NDArray, array, load, save, waitall  # noqa: F401
from .nd import __getattr__  # noqa: F401
