# SPDX-License-Identifier: Apache-2.0
"""Names of dtypes and constants in `mx.np`."""
from __future__ import annotations

import math as _math

import numpy as _onp

bool_ = _onp.bool_
bool = _onp.bool_
int8, int16, int32, int64 = _onp.int8, _onp.int16, _onp.int32, _onp.int64
uint8, uint16, uint32, uint64 = _onp.uint8, _onp.uint16, _onp.uint32, _onp.uint64
float16, float32, float64 = _onp.float16, _onp.float32, _onp.float64
bfloat16 = "bfloat16"
dtype = _onp.dtype
finfo, iinfo = _onp.finfo, _onp.iinfo

pi, e = _math.pi, _math.e
inf = PINF = _math.inf
NINF = -_math.inf
nan = NaN = NAN = _math.nan
PZERO, NZERO = 0.0, -0.0
newaxis = None

integer_dtypes = [int8, int16, int32, int64, uint8, uint16, uint32, uint64]
floating_dtypes = [float16, float32, float64]
numeric_dtypes = [*integer_dtypes, *floating_dtypes]
boolean_dtypes = [bool_]

__all__ = [name for name in dir() if not name.startswith("_") and name != "annotations"]
