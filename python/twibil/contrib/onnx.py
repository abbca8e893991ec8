# SPDX-License-Identifier: Apache-2.0
"""`mx.contrib.onnx`, MXNet's older name for `mx.onnx`."""
from ..onnx import get_model_metadata, import_model, import_to_gluon

__all__ = ["import_model", "import_to_gluon", "get_model_metadata"]
