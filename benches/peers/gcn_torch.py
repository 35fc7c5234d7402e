#!/usr/bin/env python3
"""Runs the networks of `cargo bench -p warprow-benches --bench gcn` in PyTorch and prints the same JSON lines.

It uses torch.sparse and CUDA graphs.

    python3 benches/peers/gcn_torch.py [--network stanford,arxiv,products] [--no-graph] >> gcn.jsonl

Two layers `A_hat (X W) + b`, ReLU between, LogSoftmax last, f32 without tf32. The graph is R-MAT with the bench's
probabilities and size; its edges are drawn here, so that they are not the same ones. The whole network is captured in
a CUDA graph and replayed, unless --no-graph is given; the operators are timed one by one without.
"""

import argparse
import datetime
import json
import statistics

import torch

NETWORKS = {
    "stanford": (281903, 2312497, [128, 16, 16]),
    "arxiv": (169343, 1166243, [128, 16, 40]),
    "products": (2449029, 123718280, [100, 16, 47]),
}


def rmat(nodes, edges, seed, probabilities=(0.57, 0.19, 0.19, 0.05)):
    """Distinct edges, as keys row * nodes + column, sorted."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    levels = (nodes - 1).bit_length()
    limits = torch.tensor(probabilities, device="cuda").cumsum(0)[:3]
    keys = torch.empty(0, dtype=torch.int64, device="cuda")
    while len(keys) < edges:
        count = min(max(2 * (edges - len(keys)), 1 << 16), 1 << 26)
        row = torch.zeros(count, dtype=torch.int64, device="cuda")
        column = torch.zeros(count, dtype=torch.int64, device="cuda")
        for _ in range(levels):
            quadrant = torch.bucketize(torch.rand(count, device="cuda", generator=generator), limits)
            row, column = 2 * row + quadrant // 2, 2 * column + quadrant % 2
        inside = (row < nodes) & (column < nodes)
        keys = torch.unique(torch.cat([keys, row[inside] * nodes + column[inside]]))
    chosen = torch.randperm(len(keys), device="cuda", generator=generator)[:edges]
    return keys[chosen].sort().values


def a_hat(nodes, edges, seed):
    """D^-1/2 (A + I) D^-1/2 in CSR."""
    keys = rmat(nodes, edges, seed)
    loops = torch.arange(nodes, device="cuda") * (nodes + 1)
    keys = torch.unique(torch.cat([keys, loops]))
    rows, columns = keys // nodes, keys % nodes
    degrees = torch.bincount(rows, minlength=nodes).to(torch.float32)
    scale = degrees.rsqrt()
    row_ptr = torch.zeros(nodes + 1, dtype=torch.int64, device="cuda")
    row_ptr[1:] = torch.bincount(rows, minlength=nodes).cumsum(0)
    values = scale[rows] * scale[columns]
    return torch.sparse_csr_tensor(row_ptr.to(torch.int32), columns.to(torch.int32), values, (nodes, nodes))


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
    """The function as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def run(name, with_graph, seed):
    nodes, edges, widths = NETWORKS[name]
    a = a_hat(nodes, edges, seed)
    generator = torch.Generator(device="cuda").manual_seed(seed + 1)
    random = lambda *shape: 2 * torch.rand(*shape, device="cuda", generator=generator) - 1
    x, w1, b1 = random(nodes, widths[0]), random(widths[0], widths[1]), random(widths[1])
    w2, b2 = random(widths[1], widths[2]), random(widths[2])
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
        ("network", 0, captured(network) if with_graph else network),
    ]
    ok = bool(((network().double().exp().sum(dim=1) - 1).abs() < 1e-4).all())
    for operator, layer, launch in operators:
        median, least, most, launches = milliseconds(launch)
        print(json.dumps({
            "bench": "gcn", "graph": name, "rows": nodes, "nnz": edges, "widths": widths, "type": "f32",
            "impl": "torch_graph" if with_graph and operator == "network" else "torch",
            "operator": operator, "layer": layer,
            "ms": median, "ms_min": least, "ms_max": most, "launches": launches, "ok": ok,
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name(), "driver": f"CUDA {torch.version.cuda}",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        }), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default=",".join(NETWORKS), help="names, separated by commas")
    parser.add_argument("--no-graph", action="store_true", help="launch each operator of the network from the host")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    for name in arguments.network.split(","):
        if name not in NETWORKS:
            parser.error(f"wanted are networks among {', '.join(NETWORKS)}, found is {name}")
        with torch.no_grad():
            run(name, not arguments.no_graph, arguments.seed)


if __name__ == "__main__":
    main()
