# SPDX-License-Identifier: Apache-2.0
"""Initial values of parameters: `mx.init` and `mx.initializer`."""
from __future__ import annotations

from .base import InitDesc, Initializer, alias, create, register
from .matrices import Bilinear, MSRAPrelu, Orthogonal, Xavier
from .mixed import Load, Mixed
from .simple import Constant, LSTMBias, Normal, One, Uniform, Zero

__all__ = ["InitDesc", "Initializer", "register", "alias", "create", "Zero", "One", "Constant", "Uniform", "Normal",
           "LSTMBias", "Orthogonal", "Xavier", "MSRAPrelu", "Bilinear", "Load", "Mixed"]
