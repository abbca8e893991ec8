# SPDX-License-Identifier: Apache-2.0
"""`mx.attribute`: attributes for all symbols made in a `with` statement."""
from .sym.names import AttrScope, current_attributes  # noqa: F401
