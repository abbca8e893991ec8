# SPDX-License-Identifier: Apache-2.0
"""The whole job in one program: trains a single-shot detector on garments pasted on photographs, saves it, loads it back
and draws what it finds. `python -m twibil.demo --help`; read settings, scenes, network, training, evaluate, __main__."""
