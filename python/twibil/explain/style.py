# SPDX-License-Identifier: Apache-2.0
"""The style of the page: every colour is a variable, given for light and for dark."""
from __future__ import annotations

_LIGHT = """--back:#fcfcfa;--panel:#fff;--ink:#1d2329;--soft:#5c6670;--line:#d9dde1;--edge:#8a949e;--accent:#0b63a5;
--heavy:#f6d9b8;--pointwise:#d3e8cf;--call:#d5e3f3;--view:#f1f1ee;--function:#ecd6ee;--argument:#fff;--result:#2f3a44;
--result-ink:#fff;--plain:#b9c2cb;--good:#63a860;--bound:#8fbbe0;--fixed:#46525d;
--m0:#c2410c;--m1:#0e7490;--m2:#7e22ce;--m3:#15803d;--m4:#be185d;--m5:#a16207;--m6:#1d4ed8;--m7:#b91c1c"""
_DARK = """--back:#14181c;--panel:#1b2025;--ink:#e4e8eb;--soft:#abb5be;--line:#343c44;--edge:#75818c;--accent:#6cb6ff;
--heavy:#6b4a22;--pointwise:#2f5a32;--call:#28486b;--view:#2a2f34;--function:#5a3560;--argument:#1b2025;--result:#d5dbe0;
--result-ink:#14181c;--plain:#59646e;--good:#4f9a4c;--bound:#3b6d99;--fixed:#a3aeb8;
--m0:#fb923c;--m1:#22d3ee;--m2:#c084fc;--m3:#4ade80;--m4:#f472b6;--m5:#facc15;--m6:#60a5fa;--m7:#f87171"""
_KINDS = ("heavy", "pointwise", "call", "view", "function", "argument")

STYLE = (f".twibil-explain{{{_LIGHT}}}@media (prefers-color-scheme:dark){{.twibil-explain{{{_DARK}}}}}" + """
.twibil-explain{background:var(--back);color:var(--ink);font:14px/1.45 system-ui,sans-serif;padding:20px 28px;color-scheme:light dark}
.twibil-explain h1{font-size:22px;margin:0 0 6px}.twibil-explain h2{font-size:16px;margin:28px 0 8px}
.twibil-explain a{color:var(--accent);text-decoration:none}
.twibil-explain .hint{color:var(--soft);margin:4px 0 8px;max-width:90ch}
.twibil-explain .signature{font:12px/1.6 ui-monospace,monospace;color:var(--soft);white-space:pre-wrap;overflow-wrap:anywhere}
.twibil-explain .tiles{display:flex;flex-wrap:wrap;gap:10px;margin-top:14px}
.twibil-explain .tile{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:10px 14px;min-width:120px;max-width:220px}
.twibil-explain .tile b{display:block;font-size:19px}.twibil-explain .tile span{color:var(--soft);font-size:12px}
.twibil-explain .scroll{overflow:auto;background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:10px;width:fit-content;max-width:100%;box-sizing:border-box}
.twibil-explain .tall{max-height:70vh}
.twibil-explain .pair{display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start}
.twibil-explain .panel{max-width:100%;min-width:0}.twibil-explain .pair.large .panel{width:100%}
.twibil-explain .times{display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start}
.twibil-explain summary{cursor:pointer;color:var(--soft);margin:6px 0}
.twibil-explain table{border-collapse:collapse;font-size:12.5px;background:none;color:var(--ink);margin:0}
.twibil-explain th,.twibil-explain td{padding:3px 10px 3px 4px;text-align:left;white-space:nowrap;border:0;border-bottom:1px solid var(--line);background:none}
.twibil-explain th{color:var(--soft);font-weight:600;position:sticky;top:-10px;background:var(--panel)}
.twibil-explain .right{text-align:right;font-variant-numeric:tabular-nums}
.twibil-explain svg{display:block}
.twibil-explain .legend{display:flex;flex-wrap:wrap;gap:6px 10px;margin:6px 0}
.twibil-explain .key{font-size:12px;padding:1px 9px;border-radius:10px;border:1px solid var(--line)}
.twibil-explain .key.absent{border-style:dashed;color:var(--soft);text-decoration:line-through}
.twibil-explain .groups{margin:4px 0;padding:0;list-style:none;font:12px/1.7 ui-monospace,monospace;overflow-wrap:anywhere}
.twibil-explain .groups li{border-left:4px solid;padding-left:8px;margin:3px 0}
.twibil-explain text{font:11px ui-monospace,"DejaVu Sans Mono",monospace;fill:var(--ink)}
.twibil-explain .end{text-anchor:end}.twibil-explain .mid{text-anchor:middle}
.twibil-explain .node text{text-anchor:middle}.twibil-explain .node .first{font-weight:600}
.twibil-explain .node .more{fill:var(--soft)}.twibil-explain .node .note{fill:var(--accent)}
.twibil-explain .node rect{stroke:var(--edge);stroke-width:1}
.twibil-explain .node.view rect,.twibil-explain .node.shape rect{stroke-dasharray:3 2}
.twibil-explain .node.constant rect,.twibil-explain .node.shape rect{fill:var(--argument)}
.twibil-explain .node.result rect{fill:var(--result)}.twibil-explain .node.result text{fill:var(--result-ink)}
.twibil-explain .node.absent rect{fill:none;stroke-dasharray:4 3}
.twibil-explain .node.absent text{fill:var(--soft);text-decoration:line-through}
.twibil-explain .node:target rect{stroke:var(--accent);stroke-width:4}
.twibil-explain .edge path{fill:none;stroke:var(--edge);stroke-width:1.2}.twibil-explain .edge .tip{fill:var(--edge);stroke:none}
.twibil-explain .bar.plain{fill:var(--plain)}.twibil-explain .bar.good{fill:var(--good)}.twibil-explain .bar.bound{fill:var(--bound)}
.twibil-explain .bar.fixed{fill:var(--fixed)}.twibil-explain .bar{stroke:none}
.twibil-explain .tick{stroke:var(--ink);stroke-width:1.5}.twibil-explain .grid{stroke:var(--line)}
.twibil-explain .buffer rect{stroke:var(--panel);stroke-width:1}.twibil-explain .buffer:hover rect{stroke:var(--ink)}
.twibil-explain .live{fill:none;stroke:var(--m7);stroke-width:1.5}
""" + "".join(f".twibil-explain .node.{k} rect,.twibil-explain .bar.{k},.twibil-explain .buffer.{k} rect{{fill:var(--{k})}}"
              f".twibil-explain .key.{k}{{background:var(--{k})}}" for k in _KINDS)
         + "".join(f".twibil-explain .bar.{k}{{stroke:var(--edge);stroke-width:.6}}" for k in _KINDS)
         + "".join(f".twibil-explain .node.mark{k} rect{{stroke:var(--m{k});stroke-width:2.5}}"
                   f".twibil-explain li.mark{k}{{border-color:var(--m{k})}}" for k in range(8)))
