# SPDX-License-Identifier: Apache-2.0
"""MXNet's place for young interfaces."""
from . import onnx

__all__ = ["onnx"]
