# SPDX-License-Identifier: Apache-2.0
"""`mx.name`: the names that symbols get where the user gives none."""
from .sym.names import NameManager, Prefix, current  # noqa: F401
