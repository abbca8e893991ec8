# SPDX-License-Identifier: Apache-2.0
"""mx.profiler: what traces and tables hold, the states, bad settings, threads, forks and engines."""
import json
import os
import subprocess
import sys
import threading
import warnings

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, np, npx, profiler


@pytest.fixture(autouse=True)
def clean(tmp_path):
    profiler.set_state("stop")
    profiler.set_config(filename=str(tmp_path / "trace.json"))
    profiler.clear()
    yield
    profiler.set_state("stop")
    profiler.set_config()
    profiler.clear()


def trace_of(path):
    with open(path) as file:
        return check_trace(json.load(file))


def check_trace(trace):
    """The trace's events, after all checks that a reader of the format would make."""
    events = trace["traceEvents"]
    assert set(trace) == {"displayTimeUnit", "traceEvents", "otherData"}
    rows, opened, arrows = {}, {}, {}
    for e in events:
        assert e["ph"] in "MXbeCisf" and e["pid"] == os.getpid() and e["name"], e
        if e["ph"] == "M":
            continue
        assert e["ts"] >= 0 and "tid" in e and e["cat"], e
        if e["ph"] == "X":
            assert e["dur"] >= 0
            rows.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"], e["name"]))
        elif e["ph"] == "b":
            assert opened.setdefault((e["cat"], e["id"], e["name"]), e["ts"]) == e["ts"]
        elif e["ph"] == "e":
            assert opened.pop((e["cat"], e["id"], e["name"])) <= e["ts"]
        elif e["ph"] in "sf":
            arrows.setdefault(e["id"], []).append(e["ph"])
    assert not opened
    assert all(set(a) <= {"s", "f"} and len(a) <= 2 for a in arrows.values())
    for row in rows.values():  # events of a row lie inside each other or beside each other
        open_ends = []
        for begin, end, name in sorted(row, key=lambda e: (e[0], -e[1])):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 0.0011, name
            open_ends.append(end)
    return events


def names(events, category):
    return [e["name"] for e in events if e.get("cat") == category]


def statistics(**kwargs):
    return json.loads(profiler.dumps(format="json", **kwargs))


def big_work(n=400):
    a = np.ones((n, n))
    return np.matmul(a, np.matmul(a, a))


def test_trace_keeps_calls_queue_kernels_and_waits_apart(tmp_path):
    a, b = np.ones((3, 4)), np.ones((3, 4))
    profiler.set_state("run")
    for _ in range(5):
        y = a + b
    npx.softmax(y)
    for _ in range(10):  # on a busy machine a worker may be ready before anybody waits
        big_work().asnumpy()
    profiler.set_state("stop")
    profiler.dump()
    events = trace_of(tmp_path / "trace.json")
    assert names(events, "call").count("add") == names(events, "operator").count("add") == 5
    assert "softmax" in names(events, "operator") and "asnumpy" in names(events, "call")
    assert {"matmul"} <= set(names(events, "queue")) & set(names(events, "task")) & set(names(events, "operator"))
    assert "wait_to_read" in names(events, "wait")
    assert "bytes of arrays" in names(events, "memory")
    labels = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    where = {c: {labels[e["tid"]] for e in events if e.get("cat") == c and e["ph"] == "X"} for c in
             ("call", "operator", "wait", "task")}
    assert where["call"] == {"main thread: calls"} and where["wait"] == {"main thread: waits"}
    assert where["task"] <= {"engine worker: engine tasks", "main thread: engine tasks"}
    matmul = next(e for e in events if e.get("cat") == "operator" and e["name"] == "matmul")
    assert matmul["args"]["operations"] == 2 * 400**3 and matmul["args"]["bytes"] == 3 * 4 * 400**2
    assert matmul["args"]["arrays"] == "float32[400, 400], float32[400, 400] -> float32[400, 400]"
    assert matmul["args"]["GFLOP/s"] > 0 and matmul["args"]["GB/s"] > 0


def test_kernel_lies_inside_its_call():
    profiler.start()
    np.ones((3,)) + 1
    profiler.stop()
    profiler.dump()
    events = trace_of(profiler._config["filename"])
    call, kernel = (next(e for e in events if e["name"] == "add" and e["cat"] == c) for c in ("call", "operator"))
    assert call["ts"] <= kernel["ts"] and kernel["ts"] + kernel["dur"] <= call["ts"] + call["dur"] + 0.0011


def test_nothing_is_recorded_while_off_or_paused():
    a = np.ones((3,))
    a + 1
    assert statistics()["Time"] == {} and statistics()["Memory"] == {}
    profiler.start()
    a + 1
    profiler.pause()
    assert profiler.state() == "pause"
    a * 2
    profiler.resume()
    a - 1
    profiler.stop()
    a / 2
    assert {n: r["Count"] for n, r in statistics()["Time"]["operator"].items()} == {"add": 1, "subtract": 1}


def test_results_are_the_same_while_on():
    x = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    x.attach_grad()

    def work():
        with autograd.record():
            y = (x[0:1] + x * 2.5 - 1 / x).T.reshape(2, 3)
            z = (npx.relu(y) * y).sum(axis=1)
        z.backward()
        y2 = np.zeros((2, 3))
        y2[:, 1] = 3
        y2 += 2
        return [v.asnumpy().tobytes() for v in (y, z, x.grad, y2)] + [str(np.matmul(x, x.T) > 3)]

    before = work()
    profiler.start()
    while_on = work()
    profiler.stop()
    assert before == while_on == work()
    assert "backward" in statistics()["Time"]["call"]


@pytest.mark.parametrize("name", ["add", "subtract", "maximum", "negative", "relu", "less"])
def test_short_way_comes_back(name):
    """While the profiler runs the tables of the short way are empty; afterwards results come on it again."""
    f = {"negative": lambda: -a, "relu": lambda: npx.relu(a), "less": lambda: a < b}.get(
        name, lambda: getattr(np, name)(a, b))
    a, b = np.array([1.0, -2.0, 3.0]), np.array([2.0, 2.0, 2.0])
    before = f().asnumpy()
    for _ in range(2):
        profiler.start()
        onp.testing.assert_array_equal(f().asnumpy(), before)
        profiler.stop()
        onp.testing.assert_array_equal(f().asnumpy(), before)
    assert statistics()["Time"]["operator"][name]["Count"] == 2


def test_compiled_graphs_show_each_kernel(tmp_path):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu"), gluon.nn.Dense(4))
    net.initialize()
    net.hybridize()
    x = np.ones((5, 6))
    net(x)
    profiler.start()
    for _ in range(3):
        net(x).wait_to_read()
    profiler.stop()
    profiler.dump()
    events = trace_of(tmp_path / "trace.json")
    kernels = [e for e in events if e.get("cat") == "operator"]
    assert len(kernels) >= 6 and any(e["args"].get("operations", 0) >= 2 * 5 * 6 * 8 for e in kernels)
    assert names(events, "call").count("a compiled graph") == 3
    assert sum("Dense" in n or "HybridSequential" in n for n in names(events, "scope")) >= 3


def test_fused_rows_have_operations():
    a = np.ones((512, 64))
    f = mx.jit(lambda a: npx.softmax(np.matmul(a, a.T) * 2, axis=-1))
    f(a)
    profiler.start()
    f(a).wait_to_read()
    profiler.stop()
    rows = statistics()["Time"]["operator"]
    assert sum(r["Count"] for r in rows.values()) < 20  # kernels inside of blocks of rows are not listed one by one
    assert any(r.get("GFLOP/s", 0) > 0 for r in rows.values()), rows


def test_parts_can_be_chosen():
    def recorded():
        profiler.clear()
        f = mx.jit(lambda x: npx.softmax(x) + 1)
        profiler.start()
        f(np.ones((3,)))
        np.ones((3,)) * 2
        with profiler.scope("mine"):
            pass
        profiler.stop()
        time = statistics()["Time"]
        return set(time), set(time.get("operator", {}))

    profiler.set_config(profile_imperative=True)
    sections, operators = recorded()
    assert "call" not in sections and "scope" in sections and "multiply" in operators and "softmax" not in operators
    profiler.set_config(profile_symbolic=True, profile_api=True)
    sections, operators = recorded()
    assert "call" in sections and "multiply" not in operators and operators
    profiler.set_config(profile_memory=True)
    sections, operators = recorded()
    assert sections == {"scope"}
    profiler.set_config(profile_all=True)
    sections, operators = recorded()
    assert {"call", "operator", "scope"} <= sections and "multiply" in operators


def test_table_columns_and_order():
    a = np.ones((64, 64))
    profiler.start()
    for _ in range(3):
        np.matmul(a, a)
    for _ in range(7):
        a + 1
    profiler.stop()
    table = profiler.dumps()
    assert table.startswith("Profile Statistics:") and "GFLOP/s" in table and "memory of arrays" in table
    line = next(s for s in table.splitlines() if s.startswith("matmul "))
    count, total, share, least, most, average, flops, bandwidth = line.replace("%", "").split()[1:]
    assert count == "3" and float(least) <= float(average) <= float(most) <= float(total)
    assert 0 < float(share) <= 100 and float(bandwidth) > 0
    assert float(flops) == pytest.approx(3 * 2 * 64**3 / float(total) / 1e6, rel=0.02)
    by_count = list(statistics(sort_by="count")["Time"]["operator"])
    assert by_count == ["add", "matmul"] == list(reversed(statistics(sort_by="count", ascending=True)["Time"]["operator"]))
    for key, field in (("total", "Total"), ("avg", "Avg"), ("min", "Min"), ("max", "Max")):
        values = [r[field] for r in statistics(sort_by=key)["Time"]["operator"].values()]
        assert values == sorted(values, reverse=True)
    assert statistics()["Unit"] == {"Time": "ms", "Memory": "bytes"}


def test_reset():
    profiler.start()
    np.ones((3,)) + 1
    assert statistics(reset=True)["Time"]["operator"]
    assert statistics()["Time"] == {}
    np.ones((3,)) * 2
    profiler.stop()
    assert "multiply" in statistics()["Time"]["operator"] and "add" not in statistics()["Time"]["operator"]


def test_memory_peak():
    profiler.start()
    a = np.ones((3, 1 << 20))
    b = a + 1
    b.wait_to_read()
    profiler.dumps()
    del a, b
    np.ones((3,)) + 1
    memory = statistics()["Memory"]["cpu/0"]
    profiler.stop()
    assert memory["Max"] >= 2 * 3 * 4 << 20 and memory["Current"] <= memory["Max"]


def test_objects_of_the_user(tmp_path):
    domain = profiler.Domain("mine")
    task, frame, counter = domain.new_task("task"), domain.new_frame("frame"), domain.new_counter("counter", 5)
    event, marker = profiler.Event("event"), domain.new_marker("marker")
    assert [str(o) for o in (domain, task, frame, counter, event, marker)] == [
        "mine", "task", "frame", "counter", "event", "marker"]
    task.stop()  # not started
    profiler.start()
    task.stop()
    task.start()
    frame.start()
    task.stop()  # overlaps the frame
    frame.stop()
    frame.stop()
    with event:
        counter += 3
        counter -= 1
    counter.set_value(40)
    counter.increment()
    counter.decrement(2)
    for scope in ("global", "process", "thread", "task", "marker"):
        marker.mark(scope)
    with profiler.scope("outer:"):
        with profiler.scope("inner"), pytest.raises(ZeroDivisionError):
            with profiler.scope("alone", append_mode=False):
                1 / 0
    profiler.stop()
    profiler.dump()
    events = trace_of(tmp_path / "trace.json")
    assert [e["args"]["mine"] for e in events if e["ph"] == "C" and e["name"] == "counter"] == [8, 7, 40, 41, 39]
    assert [e["s"] for e in events if e["ph"] == "i"] == ["g", "p", "t", "t", "t"]
    assert names(events, "mine").count("task") == 2  # begin and end
    assert names(events, "scope") == ["alone", "outer:inner", "outer"]
    time = statistics()["Time"]
    assert time["mine"]["task"]["Count"] == time["mine"]["frame"]["Count"] == time["event"]["event"]["Count"] == 1
    assert time["mine"]["counter"] == {"Count": 5, "Value": 39, "Min": 7, "Max": 41}


def test_names_of_any_kind(tmp_path):
    profiler.start()
    strange = ['"quoted" \\ \n\t\x01', "naïve 日本語 " * 9, "\ud800 lone", "nul\0nul", ""]
    for name in strange:
        with profiler.scope(name or "x"):
            pass
        profiler.Domain(name or "y").new_counter(name or "z", 1)
    profiler.dump()
    assert len(names(trace_of(tmp_path / "trace.json"), "scope")) == 5
    assert profiler.dumps() and statistics()
    for bad in (3, None, b"x"):
        for make in (profiler.Domain, profiler.Event, profiler.scope):
            with pytest.raises(TypeError, match="name must be a string"):
                make(bad)
    with pytest.raises(TypeError, match="must be a Domain"):
        profiler.Task("mine", "x")
    with pytest.raises(OverflowError):
        profiler.Domain("d").new_counter("c", 1 << 63)


def test_states():
    assert profiler.state() == "stop"
    profiler.stop()
    profiler.pause()
    profiler.resume()
    assert profiler.state() == "stop"
    profiler.start()
    profiler.set_state("run")
    np.ones((2,)) + 1
    profiler.start()
    profiler.stop()
    np.ones((2,)) + 1
    profiler.start()  # goes on
    np.ones((2,)) + 1
    profiler.stop()
    assert statistics()["Time"]["operator"]["add"]["Count"] == 2
    assert not any(hasattr(f, "__wrapped__") for f in (gluon.Block.__call__, gluon.HybridBlock.__call__,
                                                       gluon.Trainer.step, gluon.data.DataLoader._make))


def test_dump_twice_and_anew(tmp_path):
    path = tmp_path / "trace.json"
    profiler.start()
    np.ones((2,)) + 1
    profiler.dump(finished=False)
    assert profiler.state() == "run" and names(trace_of(path), "operator").count("add") == 1
    np.ones((2,)) + 1
    profiler.dump()
    assert profiler.state() == "stop" and names(trace_of(path), "operator").count("add") == 2
    path.unlink()
    profiler.dump()
    assert names(trace_of(path), "operator").count("add") == 2
    profiler.start()  # a new trace
    np.ones((2,)) * 1
    profiler.dump()
    assert set(names(trace_of(path), "operator")) >= {"multiply"} and "add" not in names(trace_of(path), "operator")


def test_dump_of_nothing(tmp_path):
    profiler.dump()
    assert [e["ph"] for e in trace_of(tmp_path / "trace.json")] == ["M"]
    assert profiler.dumps().startswith("Profile Statistics:")


def test_bad_file_leaves_it_usable(tmp_path):
    profiler.start()
    np.ones((2,)) + 1
    profiler.set_config(filename=str(tmp_path / "no such folder" / "x.json"))
    with pytest.raises(OSError):
        profiler.dump()
    profiler.set_config(filename=tmp_path / "good.json")
    profiler.dump()
    assert "add" in names(trace_of(tmp_path / "good.json"), "operator")


@pytest.mark.parametrize("settings, error, text", [
    ({"filenam": "x"}, TypeError, "Did you mean 'filename'"),
    ({"profile_al": True}, TypeError, "profile_all"),
    ({"profile_all": "maybe"}, TypeError, "True or False"),
    ({"filename": 3}, TypeError, "string"),
    ({"filename": ""}, ValueError, "name of a file"),
    ({"filename": "a\0b"}, ValueError, "name of a file"),
    ({"dump_period": 0}, ValueError, "positive"),
    ({"dump_period": "x"}, TypeError, "number"),
    ({"dump_period": float("nan")}, ValueError, "positive"),
    ({"max_events": -1}, ValueError, "whole number"),
    ({"max_events": 1.5}, ValueError, "whole number"),
    ({"profile_process": "serve"}, ValueError, "Did you mean 'server'"),
    ({"profile_process": "server"}, ValueError, "distributed kvstore"),
])
def test_bad_settings_change_nothing(settings, error, text):
    before = dict(profiler._config)
    with pytest.raises(error, match=text):
        profiler.set_config(**settings, continuous_dump=True)
    assert profiler._config == before


def test_bad_arguments():
    with pytest.raises(ValueError, match="'run' or 'stop'.*Did you mean 'run'"):
        profiler.set_state("runn")
    with pytest.raises(ValueError, match="format"):
        profiler.dumps(format="xml")
    with pytest.raises(ValueError, match="sort_by.*Did you mean 'total'"):
        profiler.dumps(sort_by="totl")
    with pytest.raises(TypeError, match="reset"):
        profiler.dumps(reset="yes")
    with pytest.raises(ValueError, match="scope"):
        profiler.Domain("d").new_marker("m").mark("here")
    with pytest.raises(ValueError, match="kvstore"):
        profiler.pause("server")


def test_old_spellings(tmp_path):
    with pytest.warns(DeprecationWarning):
        profiler.profiler_set_config(mode="all", filename=str(tmp_path / "old.json"))
    with pytest.warns(DeprecationWarning):
        profiler.profiler_set_state("run")
    np.ones((2,)) + 1
    with pytest.warns(DeprecationWarning):
        profiler.dump_profile()
    assert "add" in names(trace_of(tmp_path / "old.json"), "operator")


def test_memory_of_events_is_bounded(tmp_path):
    profiler.set_config(filename=tmp_path / "trace.json", max_events=10)
    profiler.start()
    a = np.ones((2,))
    for _ in range(100):
        a + 1
    profiler.stop()
    assert statistics()["Time"]["operator"]["add"]["Count"] == 100  # the table has them all
    assert statistics()["EventsLeftOut"] >= 190 and "events are missing" in profiler.dumps()
    profiler.dump()
    assert sum(e["ph"] == "X" for e in trace_of(tmp_path / "trace.json")) <= 10


def test_many_threads(tmp_path):
    profiler.start()
    errors = []

    def work():
        try:
            for i in range(50):
                (np.ones((8,)) + i).asnumpy()
                with profiler.scope("step"):
                    big_work(64)
                if i % 10 == 0:
                    profiler.dumps()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    profiler.stop()
    assert not errors
    profiler.dump()
    trace_of(tmp_path / "trace.json")
    time = statistics()["Time"]
    assert time["scope"]["step"]["Count"] == 200 and time["operator"]["add"]["Count"] == 200


def test_failing_operator_is_recorded_and_leaves_it_usable(tmp_path):
    profiler.start()
    with pytest.raises(ValueError):
        np.ones((2, 3)) + np.ones((4, 5))
    bad = np.array([7])
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize()
    with pytest.raises(Exception):
        net(np.ones((2, 5)))
    np.ones((2,)) + bad
    profiler.stop()
    time = statistics()["Time"]
    assert time["call"]["add"]["Count"] == 2 and time["operator"]["add"]["Count"] == 1
    assert any(n.startswith("Dense") for n in time["scope"])
    profiler.dump()
    trace_of(tmp_path / "trace.json")


def test_data_loader():
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(np.ones((10, 3))), batch_size=2, num_workers=2)
    profiler.start()
    assert len(list(loader)) == 5
    profiler.stop()
    assert statistics()["Time"]["scope"]["DataLoader batch"]["Count"] == 5


def test_continuous_dump(tmp_path):
    path = tmp_path / "live.json"
    profiler.set_config(filename=path, continuous_dump=True, dump_period=0.02)
    profiler.start()
    np.ones((2,)) + 1
    event = threading.Event()
    for _ in range(500):
        if path.exists():
            break
        event.wait(0.02)
    profiler.stop()
    assert "add" in names(trace_of(path), "operator")
    assert profiler._dumper is None


CHILD = """
import os, json, sys
import twibil as mx
from twibil import np, profiler
profiler.set_config(filename=sys.argv[1])
profiler.start()
a = np.ones((400, 400))
for _ in range(20): b = np.matmul(a, a)
pid = os.fork()
if pid == 0:
    assert profiler.state() == "stop"
    assert json.loads(profiler.dumps(format="json"))["Time"] == {}
    np.ones((2,)) + 1
    profiler.set_config(filename=sys.argv[1] + ".child")
    profiler.start()
    np.ones((2,)) - 1
    np.matmul(a, a).wait_to_read()
    profiler.dump()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert profiler.state() == "run"
profiler.dump()
"""


def run_program(text, *arguments, **environment):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run([sys.executable, "-c", text, *map(str, arguments)], env=environment, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def operators_in(path):
    with open(path) as file:
        return [e["name"] for e in json.load(file)["traceEvents"] if e.get("cat") == "operator"]


def test_fork(tmp_path):
    run_program(CHILD, tmp_path / "t")
    assert operators_in(tmp_path / "t").count("matmul") == 20
    assert sorted(operators_in(tmp_path / "t.child")) == ["matmul", "ones", "subtract"]


ENGINES = """
import sys
from twibil import np, profiler
profiler.set_config(filename=sys.argv[1])
profiler.start()
a = np.ones((600, 600))
for _ in range(5): b = np.matmul(a, a) + 1
profiler.dump()
"""


@pytest.mark.parametrize("engine", ["naive", "simulated:3", "threaded"])
def test_every_engine(tmp_path, engine):
    run_program(ENGINES, tmp_path / "t", TWIBIL_ENGINE=engine)
    names_of = operators_in(tmp_path / "t")
    assert names_of.count("matmul") == names_of.count("add") == 5


def test_end_of_the_program_while_running(tmp_path):
    done = run_program(ENGINES.replace("profiler.dump()", "profiler.set_config(filename=sys.argv[1], continuous_dump=True)"), tmp_path / "t")
    assert not done.stderr


def test_settings_of_mxnet_are_taken():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profiler.set_config(profile_all=True, aggregate_stats=True, gpu_memory_profile_filename_prefix="x")
        profiler.set_config(profile_all=1)
