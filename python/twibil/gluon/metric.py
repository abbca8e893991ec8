# SPDX-License-Identifier: Apache-2.0
"""MXNet 2's place of the metrics."""
from ..metric import *  # noqa: F401,F403
