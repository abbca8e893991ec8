# SPDX-License-Identifier: Apache-2.0
"""Helpers of `gluon.utils`: splitting batches over devices, clipping gradients, downloads with checksums."""
from __future__ import annotations

import hashlib
import math
import os
import tempfile
import warnings

from .. import _core
from .parameter import device_list


def split_data(data, num_slice, batch_axis=0, even_split=True) -> list:
    """`num_slice` pieces of an array along `batch_axis`.

    ValueError where the size does not divide (with `even_split`) or is smaller than the number of pieces."""
    size = data.shape[batch_axis]
    if num_slice < 1:
        raise ValueError(f"split_data: at least one piece is needed; got {num_slice}. Is the list of devices empty?")
    if size < num_slice:
        raise ValueError(f"split_data: an axis of size {size} does not give {num_slice} pieces")
    if even_split and size % num_slice:
        raise ValueError(f"split_data: size {size} does not divide into {num_slice} equal pieces; change the batch "
                         "size, or pass even_split=False")
    step = size // num_slice
    front = (slice(None),) * (batch_axis % data.ndim)
    ends = [step * (i + 1) for i in range(num_slice - 1)] + [size]
    return [data[(*front, slice(step * i, end))] for i, end in enumerate(ends)]


def split_and_load(data, ctx_list=None, batch_axis=0, even_split=True, ctx=None) -> list:
    """Pieces of an array, one on each device of `ctx_list`."""
    devices = device_list(ctx_list if ctx is None else ctx)
    data = data if isinstance(data, _core.ndarray) else _core.array(data)
    if len(devices) == 1:
        return [data.as_in_ctx(devices[0])]
    pieces = split_data(data, len(devices), batch_axis, even_split)
    return [piece.as_in_ctx(device) for piece, device in zip(pieces, devices)]


def clip_global_norm(arrays, max_norm, check_isfinite=True):
    """Scales arrays in place so that their joint Euclidean norm is at most `max_norm`; returns the norm before.

    check_isfinite: warn, and change nothing, where it is not finite. ValueError for no arrays."""
    if not arrays:
        raise ValueError("clip_global_norm: at least one array is needed")
    total = math.sqrt(sum(float((a.astype("float32") ** 2).sum()) for a in arrays))
    if check_isfinite and not math.isfinite(total):
        warnings.warn(f"clip_global_norm: the norm is {total}; the arrays are left as they are", stacklevel=2)
        return total
    scale = max_norm / (total + 1e-8)
    if scale < 1.0:
        for a in arrays:
            a *= scale
    return total


def check_sha1(filename, sha1_hash) -> bool:
    """Whether the file's SHA-1 is `sha1_hash`, or starts with it."""
    digest = hashlib.sha1()
    with open(filename, "rb") as f:
        for chunk in iter(lambda: f.read(1 << 20), b""):
            digest.update(chunk)
    known, found = sha1_hash.lower(), digest.hexdigest()
    return found[:len(known)] == known


def download(url, path=None, overwrite=False, sha1_hash=None, retries=5, verify_ssl=True) -> str:
    """Downloads a file unless it is there with the right checksum; returns its name.

    path: a file or a folder (default: the URL's last part here). The file appears only when complete and checked.
    Raises OSError after `retries` more attempts or for a wrong checksum."""
    name = url.split("/")[-1]
    fname = name if path is None else os.path.join(os.path.expanduser(path), name) if os.path.isdir(
        os.path.expanduser(path)) else os.path.expanduser(path)
    if retries < 0:
        raise ValueError(f"download: retries must not be negative; got {retries}")
    if not overwrite and os.path.exists(fname) and (not sha1_hash or check_sha1(fname, sha1_hash)):
        return fname
    if not verify_ssl:
        raise ValueError("download: certificates are always verified; got verify_ssl=False")
    folder = os.path.dirname(os.path.abspath(fname))
    os.makedirs(folder, exist_ok=True)
    for attempt in range(retries + 1):
        try:
            _fetch(url, fname, folder, sha1_hash)
            return fname
        except OSError as error:
            if attempt == retries:
                raise OSError(f"download: {url} failed after {retries + 1} attempts: {error}") from error
    return fname


def _fetch(url, fname, folder, sha1_hash) -> None:
    """One attempt: into a temporary file beside the target, checked, then renamed over it."""
    import urllib.request
    handle, temporary = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as out, urllib.request.urlopen(url, timeout=60) as source:
            for chunk in iter(lambda: source.read(1 << 20), b""):
                out.write(chunk)
        if sha1_hash and not check_sha1(temporary, sha1_hash):
            raise OSError(f"the file's SHA-1 is not {sha1_hash}; it is damaged, or the address now serves another file")
        os.replace(temporary, fname)
    except BaseException:
        os.unlink(temporary)
        raise


def shape_is_known(shape) -> bool:
    """Whether no size is unknown (-1)."""
    return shape is not None and all(n != -1 for n in shape)
