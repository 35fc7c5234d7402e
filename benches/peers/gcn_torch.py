#!/usr/bin/env python3
"""Runs the networks of `cargo bench -p warprow-benches --bench gcn` in PyTorch and prints the same JSON lines.

It uses torch.sparse, CUDA graphs, and PyTorch Geometric's GCNConv if it is installed (`pip install torch_geometric`).

    cargo bench -p warprow-benches --bench gcn -- --save FOLDER --output gcn.jsonl
    python3 benches/peers/gcn_torch.py FOLDER [--network stanford,arxiv,products] >> gcn.jsonl

Two layers `A_hat (X W) + b`, ReLU between, LogSoftmax last, f32 without tf32. Graph, features and weights are those
that the bench has saved. The result is compared with the bench's, entry by entry: "ok" says whether all are within
1e-4 of it, relative to the greater of 1 and its magnitude, and "max_rel_err" is the greatest such error. The exit
status is 1 if a result is wrong. The whole network is timed twice: launched from the host, and captured in a CUDA
graph and replayed ("impl" ends in "_graph"). The operators are timed one by one. "impl" is "torch" for torch.sparse;
gcn_pyg.py has the ways of PyTorch Geometric, "pyg..". A way that does not run is named on the standard error.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import sys

import gcn_pyg
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


def milliseconds(launch):
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def sample(launches):
        events[0].record()
        for _ in range(launches):
            launch()
        events[1].record()
        torch.cuda.synchronize()
        return events[0].elapsed_time(events[1]) / launches

    sample(3)
    # Few samples of what takes long.
    samples = 20 if sample(1) < 50 else 5
    sample(samples)
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


class Lines:
    """Prints the lines of one network."""

    def __init__(self, name, edges, x, layers, wanted):
        widths = [x.shape[1], *(weights.shape[1] for weights, _ in layers)]
        self.case = {"bench": "gcn", "graph": name, "rows": len(x), "nnz": edges, "widths": widths, "type": "f32"}
        self.wanted = wanted
        self.all_right = True

    def write(self, implementation, operator, layer, launch, error):
        median, least, most, launches = milliseconds(launch)
        ok = error <= TOLERANCE
        self.all_right &= ok
        versions = {"torch": torch.__version__}
        if implementation.startswith("pyg"):
            versions["pyg"] = gcn_pyg.torch_geometric.__version__
        print(json.dumps({
            **self.case, "impl": implementation, "operator": operator, "layer": layer,
            "ms": median, "ms_min": least, "ms_max": most, "launches": launches, "ok": ok, "max_rel_err": error,
            **versions, "device": torch.cuda.get_device_name(), "driver": f"CUDA {torch.version.cuda}",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        }), flush=True)

    def network(self, implementation, network):
        """The whole network, launched and as a CUDA graph; its error, or None if it does not run."""
        found = None
        for name, prepare in [(implementation, lambda network: (network, network)),
                              (f"{implementation}_graph", captured)]:
            try:
                launch, result = prepare(network)
                launch()
                error = greatest_error(result(), self.wanted)
                self.write(name, "network", 0, launch, error)
                found = error
            except Exception as error:  # such as too little memory, or an operator that cannot be compiled
                gcn_pyg.skip(f"{self.case['graph']} {name}", error)
            launch = result = None
            torch.cuda.empty_cache()
        return found


def run(folder, name):
    """Prints the lines of a network; whether its results are the bench's."""
    row_ptr, columns = saved(folder, name, "row_ptr"), saved(folder, name, "col_idx")
    a = a_hat(row_ptr, columns)
    x, w1, b1, w2, b2, wanted = (saved(folder, name, part) for part in ["x", "w1", "b1", "w2", "b2", "y"])
    layers = [(w1, b1), (w2, b2)]
    lines = Lines(name, int(row_ptr[-1]), x, layers, wanted)

    def network():
        return torch.log_softmax(a @ (torch.relu(a @ (x @ w1) + b1) @ w2) + b2, dim=1)

    error = lines.network("torch", network)
    if error is not None:
        xw1 = x @ w1
        h1 = a @ xw1
        activated = torch.relu(h1 + b1)
        xw2 = activated @ w2
        h2 = a @ xw2
        for operator, layer, launch in [
            ("gemm", 1, lambda: x @ w1),
            ("spmm", 1, lambda: a @ xw1),
            ("activate", 1, lambda: torch.relu(h1 + b1)),
            ("gemm", 2, lambda: activated @ w2),
            ("spmm", 2, lambda: a @ xw2),
            ("log_softmax", 2, lambda: torch.log_softmax(h2 + b2, dim=1)),
        ]:
            lines.write("torch", operator, layer, launch, error)
    # A row has the in-neighbours of its node: sources of edges, of which the node is the target.
    targets = torch.repeat_interleave(torch.arange(len(x), device="cuda"), row_ptr.diff().long())
    for implementation, way in gcn_pyg.ways(torch.stack([columns.long(), targets]), a, x, layers):
        lines.network(implementation, way)
    return lines.all_right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="the folder of the bench's --save")
    parser.add_argument("--network", default=",".join(NETWORKS), help="names, separated by commas")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    all_right = True
    for name in arguments.network.split(","):
        if not (arguments.folder / f"{name}-y.npy").exists():
            parser.error(f"wanted are networks that the bench has saved, {arguments.folder} has no {name}-y.npy")
        with torch.no_grad():
            all_right &= run(arguments.folder, name)
    sys.exit(0 if all_right else 1)


if __name__ == "__main__":
    main()
