# SPDX-License-Identifier: Apache-2.0
"""Where weights of the zoo's networks are looked for: files that MXNet downloaded once, or that somebody put there."""
from __future__ import annotations

import hashlib
import re
from pathlib import Path

from ...base import data_dir


def _folder(root) -> Path:
    return data_dir() / "models" if root is None else Path(root).expanduser()


def get_model_file(name: str, root=None) -> str:
    """The path of `name`'s weights in `root` (default: `$MXNET_HOME/models`, else `~/.mxnet/models`).

    A file is called NAME-xxxxxxxx.params, as MXNet called it, where x are the first digits of its SHA-1; or NAME.params,
    which is taken as it is. OSError where there is none, since MXNet's server is gone; ValueError for a damaged one."""
    folder = _folder(root)
    numbered = [p for p in sorted(folder.glob(f"{name}-*.params"))
                if re.fullmatch(r"[0-9a-f]{8}", p.name[len(name) + 1:-len(".params")])]
    damaged = [p for p in numbered if not _sha1(p).startswith(p.name[len(name) + 1:-len(".params")])]
    for path in numbered:
        if path not in damaged:
            return str(path)
    if (folder / f"{name}.params").exists():
        return str(folder / f"{name}.params")
    if damaged:
        raise ValueError(f"get_model_file: {damaged[0]} is damaged: its SHA-1 is not the one in its name. Replace it, or "
                         f"call it {name}.params if it is to be used as it is")
    raise OSError(f"pretrained: there are no weights of {name} in {folder}, and MXNet's server, from which they were "
                  f"downloaded, is gone. Put a file {name}.params there, or make the network without pretrained and call "
                  "net.load_parameters(file)")


def _sha1(path: Path) -> str:
    digest = hashlib.sha1()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def purge(root=None) -> None:
    """Deletes the weights in `root`: all files NAME.params."""
    for path in _folder(root).glob("*.params"):
        path.unlink()
