# SPDX-License-Identifier: Apache-2.0
"""Whether MXNet 1.9.1 reads the graphs that this package writes, and computes the same from them.

First, with this package's Python: check_symbols_in_mxnet.py write FOLDER (saves every fixture's graph again, and some
made here). Then, with MXNet's: check_symbols_in_mxnet.py read FOLDER FIXTURES."""
import glob
import os
import sys

import numpy as np


def write(folder):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    import symbol_fixtures
    from twibil import sym
    for name in symbol_fixtures.NAMES:
        sym.load_json(symbol_fixtures.Fixture(name).json).save(os.path.join(folder, name + "-symbol.json"))
    x = sym.Variable("data")
    made = sym.FullyConnected(sym.Activation((x + 1) * 2 - x / 3, act_type="tanh"), num_hidden=3, name="fc")
    made = sym.Group([made, sym.np.exp(x), sym.np.concatenate([x, x], axis=1), sym.npx.relu(x), x > 0, 2 - x])
    made.save(os.path.join(folder, "made_here-symbol.json"))


def read(folder, fixtures):
    import mxnet as mx
    failed = 0
    for path in sorted(glob.glob(os.path.join(folder, "*-symbol.json"))):
        name = os.path.basename(path)[:-len("-symbol.json")]
        numpy = name.startswith("np")
        (mx.npx.set_np if numpy else mx.npx.reset_np)()
        try:
            symbol = mx.sym.load(path)
            fixture = os.path.join(fixtures, name + ".npz")
            if not os.path.exists(fixture):
                symbol.simple_bind(mx.cpu(), data=(2, 3)).forward()[0].asnumpy()
                print("ok", name)
                continue
            arrays = dict(np.load(fixture))
            group = lambda role: {k[len(role) + 1:]: mx.nd.array(v) for k, v in arrays.items() if k.startswith(role + ".")}  # noqa: E731
            outputs = symbol.bind(mx.cpu(), group("arg"), aux_states=group("aux")).forward(is_train=False)
            for k, y in enumerate(outputs):
                want = arrays[f"out.{k}"]
                np.testing.assert_allclose(y.asnumpy(), want, rtol=1e-5, atol=1e-5 * max(1, np.abs(want).max(initial=0)))
            print("ok", name)
        except Exception as error:  # noqa: BLE001  every failure is listed
            failed += 1
            print("FAILED", name, str(error).strip().splitlines()[-1][:200])
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(write(sys.argv[2]) if sys.argv[1] == "write" else read(sys.argv[2], sys.argv[3]))
