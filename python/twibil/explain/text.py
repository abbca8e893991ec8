# SPDX-License-Identifier: Apache-2.0
"""An explanation as text."""
from __future__ import annotations


def bytes_text(n: float) -> str:
    """'240 bytes', '4.00 KiB', '1.50 MiB'."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.2f} {unit}"
    return f"{int(n)} bytes"


def time_text(seconds: float) -> str:
    """'12.3 us'."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def count_text(n: float) -> str:
    """'1.25 G' for 1.25e9."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f}"


def value_text(output) -> str:
    """'float32 (2, 3)'."""
    return f"{output[1]} {output[0]}"


def table(rows, head, right=()) -> list[str]:
    """Lines of a table; columns in `right` are aligned to the right."""
    rows = [head] + [[str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = []
    for row in rows:
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def _clean(text: str) -> str:
    """Names come from files: no control characters reach a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def shorten(text: str, most: int) -> str:
    """Ends with three dots where it was cut."""
    return text if len(text) <= most else text[:most - 3] + "..."


def signature_lines(e) -> list[str]:
    """Inputs, outputs and mode."""
    after = e.after
    inputs = [f"{_clean(after.label(a))}: {value_text(after.nodes[a]['outputs'][0])}" for a in after.arguments if a >= 0]
    outputs = [value_text(after.nodes[o[0]]["outputs"][o[1]]) for o in after.outputs[:after.forward_outputs]
               if o is not None]
    gradients = sum(o is not None for o in after.outputs[after.forward_outputs:])
    shown, more = inputs[:12], len(inputs) - 12
    mode = ("training" if e.data["training"] else "prediction") + (f", {gradients} gradients" if gradients else "")
    return ["inputs    " + ", ".join(shown) + (f" and {more} more" if more > 0 else ""),
            "outputs   " + ", ".join(outputs[:12]) + (f" and {len(outputs) - 12} more" if len(outputs) > 12 else ""),
            "mode      " + mode]


def passes_rows(e, summaries):
    """[name, milliseconds, nodes, what it does] of lowering and of each pass."""
    rows = [["lower", f"{e.data['lower_seconds'] * 1e3:.3f}", str(len(e.before.nodes)),
             "gives shapes, writes out composed operators and gradients"]]
    for name, seconds, before, after in e.data["passes"]:
        nodes = str(after) if before == after else f"{before} -> {after}"
        rows.append([name, f"{seconds * 1e3:.3f}", nodes, summaries.get(name, "")])
    return rows


def pass_summaries() -> dict:
    """What each pass does, by name."""
    from .. import _core
    return {**{name: summary for name, summary, _ in _core.passes()},
            "split_prologue": "computes what depends on parameters alone once, not at each run",
            "plan_memory": "gives every value its place"}


def group_text(e, group) -> str:
    """'multiply + add: %0 * %1 + 1'."""
    parts = [e.before.nodes[p]["op"] for p in group.parts]
    if not group.fused:
        return f"{parts[0]}, computed once for {len(parts)}"
    shown = " + ".join(parts[:12]) + (f" + {len(parts) - 12} more" if len(parts) > 12 else "")
    formula = e.after.formula(group.node)
    return shown + (f": {shorten(formula, 200)}" if formula else "")


def memory_lines(e) -> list[str]:
    """Planned against the lower bound and against eager."""
    saved = e.eager_bytes - e.planned_bytes
    d = e.data
    ratio = e.planned_bytes / e.lower_bound_bytes if e.lower_bound_bytes else 1
    return [f"planned      {bytes_text(e.planned_bytes)}: inputs {bytes_text(d['argument_bytes'])}, results "
            f"{bytes_text(d['output_bytes'])}, arena {bytes_text(d['arena_bytes'])} of {len(d['buffers'])} buffers",
            f"lower bound  {bytes_text(e.lower_bound_bytes)} (planned / lower bound = {ratio:.3f})",
            f"eager        {bytes_text(e.eager_bytes)} with every value kept, {bytes_text(e.eager_peak_bytes)} at the "
            "worst moment with each dropped after its last reader",
            f"saved        {bytes_text(saved) if saved >= 0 else '-' + bytes_text(-saved)}, "
            f"{100 * saved / max(e.eager_bytes, 1):.0f} % of eager"]


def _source(step) -> str:
    """Whose line made the kernel: the user's, and the node's name where it says more than the operator."""
    n = step.info
    named = n["name"] and not n["name"].startswith(n["op"])
    return ", ".join(([n["site"]] if n["site"] else []) + ([n["name"]] if named else [])) or (
        "gradient" if step.backward else "")


def kernel_rows(e):
    """One row per kernel, in order."""
    total = max(e.seconds, 1e-12)
    rows = []
    for s in e.steps:
        n = s.info
        share = 100 * s.written / max(e.planned_bytes, 1)
        row = [str(s.number), f"%{s.node} {_clean(shorten(n['op'], 32))}", value_text(n["outputs"][0]) if n["outputs"] else "",
               s.algorithm, count_text(s.operations) if s.operations else "", bytes_text(s.moved), f"{share:.1f} %",
               time_text(s.predicted)]
        if e.is_measured:
            row.append(time_text(s.measured))
        rows.append(row + [s.rate, f"{100 * s.seconds / total:.1f} %", e.place(s.node),
                           _clean(_source(s))])
    return rows


def kernel_head(e):
    """Titles of `kernel_rows`."""
    return (["#", "kernel", "output", "algorithm", "operations", "moves", "memory", "predicted"]
            + (["measured"] if e.is_measured else []) + ["rate", "time", "place", "from"])


def choice_lines(e) -> list[str]:
    """For each kernel that had a choice: what was said of the algorithms that it did not take."""
    lines = []
    for s in e.steps:
        others = [f"{name}: {refusal}" if refusal else f"{name}: {time_text(seconds)} {'measured' if measured else 'predicted'}"
                  for name, refusal, seconds, measured in s.verdicts if name != s.algorithm]
        if others:
            lines.append(f"#{s.number} {s.algorithm}, not " + "; ".join(others))
    return lines


def print_text(e) -> str:
    """The whole text."""
    summed = "measured" if e.is_measured else "predicted"
    lines = [f"{_clean(e.title)}: {e.num_kernels} kernels, {bytes_text(e.planned_bytes)} planned, {summed} "
             f"{time_text(e.seconds)} a run, compiled in {e.compile_seconds * 1e3:.2f} ms", ""]
    lines += signature_lines(e) + ["", "passes"]
    lines += table(passes_rows(e, pass_summaries()), ["", "ms", "nodes", ""], right=(1,))
    head = kernel_head(e)
    right = [i for i, h in enumerate(head) if h in ("#", "operations", "moves", "memory", "predicted", "measured", "rate",
                                                    "time")]
    lines += ["", "kernels (memory: its output's share of the planned bytes; rate and time: " + summed + ")"]
    lines += table(kernel_rows(e), head, right)
    if any(s.verdicts for s in e.steps):
        lines += ["", "choice of algorithms"] + ["  " + line for line in choice_lines(e)]
    if e.groups:
        lines += ["", "fused and merged"] + [f"  %{g.node} = {_clean(group_text(e, g))}" for g in e.groups]
    return "\n".join(lines + ["", "memory"] + ["  " + m for m in memory_lines(e)]) + "\n"
