# SPDX-License-Identifier: Apache-2.0
"""`mx.executor`: symbols bound to arrays."""
from .sym.executor import Executor  # noqa: F401
