# SPDX-License-Identifier: Apache-2.0
"""`Loss`: weights and the mean over all axes but the batch's."""
from __future__ import annotations

from ...base import describe, numeric_types
from ..block import HybridBlock


class Loss(HybridBlock):
    """Base of losses. weight: a number that multiplies the loss, or None. batch_axis: the axis that is kept."""

    def __init__(self, weight=None, batch_axis=0, **kwargs):
        super().__init__(**kwargs)
        if weight is not None and not isinstance(weight, numeric_types):
            raise TypeError(f"{type(self).__name__}: weight must be a number or None; got {describe(weight)}")
        self._weight, self._batch_axis = weight, batch_axis

    def __repr__(self):
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def __call__(self, *args, **kwargs):
        if len(args) > 1 and args[1] is None:
            raise TypeError(f"{type(self).__name__}: the second argument must be an array; got None")
        return super().__call__(*args, **kwargs)

    def _weigh(self, loss, sample_weight=None, weight="own"):
        """`loss` times `sample_weight` (broadcast) times the constant weight."""
        if sample_weight is not None:
            loss = loss * sample_weight
        weight = self._weight if weight == "own" else weight
        return loss if weight is None or weight == 1 else loss * weight

    def _others(self, loss) -> tuple:
        """All axes but the batch's."""
        batch = self._batch_axis % loss.ndim if loss.ndim else 0
        return tuple(i for i in range(loss.ndim) if i != batch)

    def _mean(self, loss):
        """The mean over all axes but the batch's, one value an example."""
        axes = self._others(loss)
        return loss.mean(axis=axes) if axes else loss


def like(label, pred, name: str):
    """`label` in the shape of `pred`; ValueError where the sizes differ."""
    if label.shape == pred.shape:
        return label
    if label.size != pred.size:
        raise ValueError(f"{name}: labels must have as many elements as predictions; got shapes "
                         f"{list(label.shape)} and {list(pred.shape)}")
    return label.reshape(pred.shape)
