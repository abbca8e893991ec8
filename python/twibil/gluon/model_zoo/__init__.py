# SPDX-License-Identifier: Apache-2.0
"""Well-known networks, ready to be trained or to be given weights."""
from __future__ import annotations

from . import model_store, vision
from .torch_weights import load_torch_parameters
from .vision import get_model

__all__ = ["model_store", "vision", "get_model", "load_torch_parameters"]
