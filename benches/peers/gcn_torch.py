#!/usr/bin/env python3
"""Runs the networks of `cargo bench -p warprow-benches --bench gcn` in PyTorch and prints the same JSON lines.

It uses torch.sparse and CUDA graphs.

    cargo bench -p warprow-benches --bench gcn -- --save FOLDER --output gcn.jsonl
    python3 benches/peers/gcn_torch.py FOLDER [--network stanford,arxiv,products] [--no-graph] >> gcn.jsonl

Two layers `A_hat (X W) + b`, ReLU between, LogSoftmax last, f32 without tf32. Graph, features and weights are those
that the bench has saved. The result is compared with the bench's, entry by entry: "ok" says whether all are within
1e-4 of it, relative to the greater of 1 and its magnitude, and "max_rel_err" is the greatest such error. The exit
status is 1 if a result is wrong. The whole network is captured in a CUDA graph and replayed, unless --no-graph is
given; the operators are timed one by one without.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import sys

import numpy
import torch

NETWORKS = ["stanford", "arxiv", "products"]

# The greatest error that is taken for rounding, on both sides.
TOLERANCE = 1e-4


def saved(folder, network, name):
    """An array that the bench has saved, on the GPU."""
    return torch.from_numpy(numpy.load(folder / f"{network}-{name}.npy")).cuda()


def a_hat(row_ptr, columns):
    """D^-1/2 (A + I) D^-1/2 in CSR, of a graph whose edges have weight 1."""
    nodes = len(row_ptr) - 1
    rows = torch.repeat_interleave(torch.arange(nodes, device="cuda"), row_ptr.diff().long())
    loops = torch.arange(nodes, device="cuda") * (nodes + 1)
    keys = torch.unique(torch.cat([rows * nodes + columns, loops]))
    rows, columns = keys // nodes, keys % nodes
    degrees = torch.bincount(rows, minlength=nodes).to(torch.float32)
    scale = degrees.rsqrt()
    row_ptr = torch.zeros(nodes + 1, dtype=torch.int64, device="cuda")
    row_ptr[1:] = torch.bincount(rows, minlength=nodes).cumsum(0)
    values = scale[rows] * scale[columns]
    return torch.sparse_csr_tensor(row_ptr.to(torch.int32), columns.to(torch.int32), values, (nodes, nodes))


def greatest_error(found, wanted):
    """Relative to the greater of 1 and what is wanted; infinite where a NaN or an infinity is not the one wanted."""
    if found.shape != wanted.shape:
        sys.exit(f"wanted is a result of shape {tuple(wanted.shape)}, found one of {tuple(found.shape)}")
    found, wanted = found.double(), wanted.double()
    errors = (found - wanted).abs() / wanted.abs().clamp(min=1)
    same = (found == wanted) | (found.isnan() & wanted.isnan())
    errors = torch.where(same, torch.zeros_like(errors), errors.nan_to_num(nan=float("inf")))
    return float(errors.max())


def milliseconds(launch, samples=20):
    for _ in range(20):
        launch()
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def sample(launches):
        events[0].record()
        for _ in range(launches):
            launch()
        events[1].record()
        torch.cuda.synchronize()
        return events[0].elapsed_time(events[1]) / launches

    launches = max(1, min(1000, round(1 / sample(5))))
    times = sorted(sample(launches) for _ in range(samples))
    return statistics.median(times), times[0], times[-1], launches


def captured(function):
    """The function as a CUDA graph: what replays it, and what has the result of the last replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph.replay, lambda: result


def run(folder, name, with_graph):
    """Prints the lines of a network; whether its result is the bench's."""
    row_ptr = saved(folder, name, "row_ptr")
    a = a_hat(row_ptr, saved(folder, name, "col_idx"))
    x, w1, b1, w2, b2, wanted = (saved(folder, name, part) for part in ["x", "w1", "b1", "w2", "b2", "y"])
    nodes, edges, widths = len(x), int(row_ptr[-1]), [w1.shape[0], w1.shape[1], w2.shape[1]]
    xw1 = x @ w1
    h1 = a @ xw1
    activated = torch.relu(h1 + b1)
    xw2 = activated @ w2
    h2 = a @ xw2

    def network():
        return torch.log_softmax(a @ (torch.relu(a @ (x @ w1) + b1) @ w2) + b2, dim=1)

    operators = [
        ("gemm", 1, lambda: x @ w1),
        ("spmm", 1, lambda: a @ xw1),
        ("activate", 1, lambda: torch.relu(h1 + b1)),
        ("gemm", 2, lambda: activated @ w2),
        ("spmm", 2, lambda: a @ xw2),
        ("log_softmax", 2, lambda: torch.log_softmax(h2 + b2, dim=1)),
    ]
    launch, result = captured(network) if with_graph else (network, network)
    operators.append(("network", 0, launch))
    launch()
    error = greatest_error(result(), wanted)
    ok = error <= TOLERANCE
    for operator, layer, launch in operators:
        median, least, most, launches = milliseconds(launch)
        print(json.dumps({
            "bench": "gcn", "graph": name, "rows": nodes, "nnz": edges, "widths": widths, "type": "f32",
            "impl": "torch_graph" if with_graph and operator == "network" else "torch",
            "operator": operator, "layer": layer,
            "ms": median, "ms_min": least, "ms_max": most, "launches": launches, "ok": ok, "max_rel_err": error,
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name(), "driver": f"CUDA {torch.version.cuda}",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        }), flush=True)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="the folder of the bench's --save")
    parser.add_argument("--network", default=",".join(NETWORKS), help="names, separated by commas")
    parser.add_argument("--no-graph", action="store_true", help="launch each operator of the network from the host")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    all_right = True
    for name in arguments.network.split(","):
        if not (arguments.folder / f"{name}-y.npy").exists():
            parser.error(f"wanted are networks that the bench has saved, {arguments.folder} has no {name}-y.npy")
        with torch.no_grad():
            all_right &= run(arguments.folder, name, not arguments.no_graph)
    sys.exit(not all_right)


if __name__ == "__main__":
    main()
