# SPDX-License-Identifier: Apache-2.0
"""Operators of MXNet 1 under their older names and with their older arguments, written with today's."""
from __future__ import annotations

from .. import np, npx
from ..base import integer_types
from ..np._arguments import as_array

Flatten = flatten = npx.batch_flatten
BlockGrad = stop_gradient = npx.stop_gradient
SequenceMask, SequenceLast, SequenceReverse = npx.sequence_mask, npx.sequence_last, npx.sequence_reverse


def _comparison(function, name: str):
    def compare(lhs, rhs):
        return function(lhs, rhs).astype("float32")
    compare.__name__, compare.__doc__ = name, f"`{function.__name__}` elementwise, as float32 0 and 1."
    return compare


equal = broadcast_equal = _comparison(np.equal, "equal")
not_equal = broadcast_not_equal = _comparison(np.not_equal, "not_equal")
greater = broadcast_greater = _comparison(np.greater, "greater")
greater_equal = broadcast_greater_equal = _comparison(np.greater_equal, "greater_equal")
lesser = broadcast_lesser = _comparison(np.less, "lesser")
lesser_equal = broadcast_lesser_equal = _comparison(np.less_equal, "lesser_equal")
logical_and = broadcast_logical_and = _comparison(np.logical_and, "logical_and")
logical_or = broadcast_logical_or = _comparison(np.logical_or, "logical_or")
logical_xor = broadcast_logical_xor = _comparison(np.logical_xor, "logical_xor")


def add_n(*args):
    """The sum of arrays of one shape."""
    total = args[0]
    for x in args[1:]:
        total = total + x
    return total


ElementWiseSum = add_n


def _excluding(name: str):
    function = getattr(np, name)

    def reduce(data, axis=None, keepdims=False, exclude=False):
        if exclude:
            kept = (axis,) if isinstance(axis, integer_types) else tuple(axis or ())
            kept = {a % data.ndim for a in kept}
            axis = tuple(i for i in range(data.ndim) if i not in kept)
        return function(data, axis=axis, keepdims=keepdims)
    reduce.__name__ = name
    reduce.__doc__ = f"`mx.np.{name}` over `axis`, or over all axes but these with `exclude`."
    return reduce


sum, mean, prod, max, min = (_excluding(n) for n in ("sum", "mean", "prod", "max", "min"))
sum_axis, max_axis, min_axis = sum, max, min


def argmax(data, axis=None, keepdims=False):
    """The position of the largest element along `axis`, float32."""
    return np.argmax(data, axis=axis, keepdims=keepdims).astype("float32")


def argmin(data, axis=None, keepdims=False):
    """The position of the smallest element along `axis`, float32."""
    return np.argmin(data, axis=axis, keepdims=keepdims).astype("float32")


def argmax_channel(data):
    """`argmax` along axis 1."""
    return argmax(data, axis=1)


def split(data, num_outputs, axis=1, squeeze_axis=False):
    """Equal parts along `axis`, as a list (an array for one part); with `squeeze_axis` without that axis of size 1."""
    parts = np.split(data, num_outputs, axis=axis)
    parts = [p.squeeze(axis=axis) for p in parts] if squeeze_axis else parts
    return parts[0] if len(parts) == 1 else parts


SliceChannel = split


def split_v2(ary, indices_or_sections, axis=0, squeeze_axis=False):
    """Parts of equal size, or cut at indices, along `axis`."""
    parts = np.split(ary, indices_or_sections, axis=axis)
    return [p.squeeze(axis=axis) for p in parts] if squeeze_axis else parts


def reshape(data, shape, reverse=False, name=None):
    """Another shape, where 0 keeps the input's size at that place, -1 is inferred, -2 copies the remaining sizes, -3
    joins the next two, and -4 splits the next one into the two sizes that follow. ValueError where sizes do not fit."""
    if reverse:
        turned = [int(s) for s in shape][::-1]
        sizes = _sizes(data.shape[::-1], turned)[::-1]
    else:
        sizes = _sizes(data.shape, [int(s) for s in shape])
    return np.reshape(data, tuple(sizes))


Reshape = reshape


def _sizes(old: tuple, codes: list) -> list:
    """The sizes that the codes of a legacy reshape stand for."""
    sizes, place, i = [], 0, 0
    while i < len(codes):
        code = codes[i]
        if code == 0:
            sizes.append(_at(old, place))
        elif code == -2:
            sizes.extend(old[place:])
            place = len(old)
        elif code == -3:
            sizes.append(_at(old, place) * _at(old, place + 1))
            place += 1
        elif code == -4:
            if len(codes) < i + 3 or {codes[i + 1], codes[i + 2]} & {0} or codes[i + 1] == codes[i + 2] == -1:
                raise ValueError(f"reshape: two sizes, of which one may be -1, must follow -4; got {codes}")
            first, second = codes[i + 1], codes[i + 2]
            whole = _at(old, place)
            first = whole // second if first == -1 else first
            sizes += [first, whole // first if second == -1 else second]
            i += 2
        else:
            sizes.append(code)
        place += 1 if code not in (-2,) else 0
        i += 1
    return sizes


def _at(old: tuple, place: int) -> int:
    if place >= len(old):
        raise ValueError(f"reshape: the codes need more axes than shape {list(old)} has")
    return old[place]


def where(condition, x, y):
    """`x` where the condition is not zero, else `y`; a condition of one dimension chooses whole rows.

    ValueError where there are not as many conditions as rows."""
    condition, x, y = as_array(condition), as_array(x), as_array(y)
    if condition.ndim == 1 and x.ndim > 1:
        if condition.shape[0] != x.shape[0]:
            raise ValueError(f"where: a condition of one dimension needs as many elements as x has rows; got "
                             f"{condition.shape[0]} for shape {list(x.shape)}")
        condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))
    return np.where(condition, x, y)


def take(a, indices, axis=0, mode="clip"):
    """The elements of `a` at indices along `axis`.

    mode: what happens to an index outside: 'clip' takes the nearest end, negative ones the first; 'wrap' counts around;
    'raise' is an IndexError, and negative ones count from the end."""
    return np.take(a, indices, axis=axis, mode=mode)


def broadcast_axis(data, axis=(), size=()):
    """Axes of size 1 repeated to the given sizes."""
    axes = (axis,) if isinstance(axis, integer_types) else tuple(axis)
    sizes = (size,) if isinstance(size, integer_types) else tuple(size)
    shape = list(data.shape)
    for a, n in zip(axes, sizes):
        shape[a] = n
    return np.broadcast_to(data, tuple(shape))


def pad(data, mode="constant", pad_width=None, constant_value=0, **numpy_arguments):
    """`data` with elements added at the ends of its axes, as MXNet counts them: pad_width is (before, after) of the first
    axis, of the second, ... in one tuple. Pairs, and a number, mean what they mean to `np.pad`."""
    flat = isinstance(pad_width, (tuple, list)) and len(pad_width) == 2 * data.ndim > 2 and not numpy_arguments
    if flat and all(isinstance(w, int) for w in pad_width):
        pad_width = tuple(zip(pad_width[::2], pad_width[1::2]))
    if mode != "constant":
        return np.pad(data, pad_width, mode=mode, **numpy_arguments)
    return np.pad(data, pad_width, mode=mode, **{"constant_values": constant_value, **numpy_arguments})


Pad = pad


def softmin(data, axis=-1):
    """`softmax` of the negative."""
    return npx.softmax(-data, axis=axis)


def SoftmaxActivation(data, mode="instance"):
    """`softmax` over all but the first axis ('instance'), or over axis 1 ('channel')."""
    if mode == "channel":
        return npx.softmax(data, axis=1)
    return npx.softmax(npx.batch_flatten(data), axis=-1).reshape(data.shape)


def L2Normalization(data, eps=1e-10, mode="instance"):
    """Divided by the Euclidean norm of each example ('instance'), of each pixel over channels ('channel'), or of each
    channel ('spatial')."""
    axes = {"instance": tuple(range(1, data.ndim)), "channel": (1,), "spatial": tuple(range(2, data.ndim))}.get(mode)
    if axes is None:
        raise ValueError(f"L2Normalization: mode must be 'instance', 'channel' or 'spatial'; got {mode!r}")
    return data / np.sqrt(np.sum(data * data, axis=axes, keepdims=True) + eps)


def moments(data, axes=None, keepdims=False):
    """Mean and (biased) variance over axes."""
    return [np.mean(data, axis=axes, keepdims=keepdims), np.var(data, axis=axes, keepdims=keepdims)]


def boolean_mask(data, index, axis=0):
    """The slices of `data` along axis 0 where `index` is not zero."""
    if axis != 0:
        raise NotImplementedError(f"boolean_mask: only axis 0 exists here; got {axis}")
    return data[index != 0]


def linalg_gemm2(A, B, transpose_a=False, transpose_b=False, alpha=1.0, axis=-2):
    """alpha * A B over the last two axes, each turned first on request."""
    a = A.swapaxes(-1, -2) if transpose_a else A
    b = B.swapaxes(-1, -2) if transpose_b else B
    return np.matmul(a, b) if alpha == 1 else alpha * np.matmul(a, b)


def softmax_cross_entropy(data, label):
    """The sum of -log(softmax(data)) at the labels, one number in an array of shape (1,)."""
    return -npx.pick(npx.log_softmax(data, axis=-1), label).sum().reshape(1)


def nansum(data, axis=None, keepdims=False):
    """The sum of the elements that are not NaN."""
    return np.where(np.isnan(data), np.zeros_like(data), data).sum(axis=axis, keepdims=keepdims)


def size_array(data):
    """The number of elements, int64, shape (1,)."""
    return np.array([data.size], dtype="int64")
