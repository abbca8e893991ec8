# SPDX-License-Identifier: Apache-2.0
"""Networks that classify pictures, with MXNet's names and structures: `resnet18_v1()`, or `get_model("resnet18_v1")`.

Pictures are arrays (batch, 3, height, width) of red, green and blue in [0, 1], less the means (0.485, 0.456, 0.406), over
the deviations (0.229, 0.224, 0.225). Results are scores; `softmax` makes probabilities of them. Files of parameters that
MXNet 1.9.1 wrote for these networks load, and it loads those written here."""
from __future__ import annotations

import re

from ....base import did_you_mean
from . import alexnet as _alexnet, densenet, inception, mobilenet, resnet, squeezenet, torch_networks, vgg
from .alexnet import *  # noqa: F401,F403
from .densenet import *  # noqa: F401,F403
from .inception import *  # noqa: F401,F403
from .mobilenet import *  # noqa: F401,F403
from .resnet import *  # noqa: F401,F403
from .squeezenet import *  # noqa: F401,F403
from .torch_networks import *  # noqa: F401,F403
from .vgg import *  # noqa: F401,F403

_NAMES = [name for module in (_alexnet, densenet, inception, mobilenet, resnet, squeezenet, torch_networks, vgg)
          for name in module.__all__]


def _public_name(function: str) -> str:
    """MXNet's name for `get_model`: 'mobilenetv2_0.75' for mobilenet_v2_0_75, 'inceptionv3' for inception_v3."""
    return re.sub(r"(\d)_(\d+)$", r"\1.\2", function).replace("net_v2", "netv2").replace("inception_v3", "inceptionv3")


_MODELS = {_public_name(f): globals()[f] for f in _NAMES if f[0].islower() and not f.startswith("get_")}


def get_model(name, **kwargs):
    """A network by name: 'resnet18_v1', 'mobilenetv2_1.0', 'inceptionv3', or as its function is called. `kwargs` go to
    that function.

    ValueError for a name that is not there."""
    key = _public_name(str(name).lower())
    if key not in _MODELS:
        raise ValueError(f"get_model: there is no network {name!r}.{did_you_mean(key, _MODELS)} Known are "
                         f"{', '.join(sorted(_MODELS))}")
    return _MODELS[key](**kwargs)


__all__ = ["get_model", *_NAMES]
