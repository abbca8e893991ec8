# SPDX-License-Identifier: Apache-2.0
"""Where the files of the usual data sets are downloaded from: MXNet's address, or `$MXNET_GLUON_REPO`."""
from __future__ import annotations

import os
from pathlib import Path

from ...utils import download

_ADDRESS = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"


def fetch(data_set: str, root: Path, name: str, sha1: str, places) -> str:
    """Downloads a data set's file into `root`, checks it, and returns its path.

    OSError that says where else the file was looked for (`places`) where that fails."""
    address = os.environ.get("MXNET_GLUON_REPO", _ADDRESS).rstrip("/")
    try:
        root.mkdir(parents=True, exist_ok=True)
        return download(f"{address}/gluon/dataset/{data_set}/{name}", str(root / name), sha1_hash=sha1, retries=1)
    except OSError as error:
        raise OSError(f"{data_set}: {name} is not in {' or '.join(map(str, places))}, and the download failed: "
                      f"{error}") from error
