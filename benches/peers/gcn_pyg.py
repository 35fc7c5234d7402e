"""The networks of gcn_torch.py in PyTorch Geometric: its layer GCNConv, in each way in which it runs.

    pip install torch_geometric                 # the layer, over lists of edges and over CSR matrices
    pip install torch_sparse                    # its SparseTensor; compiles for minutes if there is no wheel

The normalised matrix is computed before the time begins: GCNConv does so itself if it is `cached`. A matrix in CSR is
normalised before, since GCNConv would add a second loop to a node that has one.
"""

import sys

import torch

try:
    import torch_geometric
    from torch_geometric.nn import GCNConv
    from torch_geometric.typing import WITH_TORCH_SPARSE
except ImportError as error:
    torch_geometric = None
    MISSING = error


def skip(what, reason):
    lines = str(reason).strip().splitlines()
    print(f"skipped: {what}: {lines[0] if lines else type(reason).__name__}", file=sys.stderr, flush=True)


class Network(torch.nn.Module):
    """Two layers, ReLU between, LogSoftmax last."""

    def __init__(self, layers, **options):
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for weights, bias in layers:
            layer = GCNConv(*weights.shape, **options)
            layer.lin.weight.data.copy_(weights.t())
            layer.bias.data.copy_(bias)
            self.layers.append(layer)
        self.cuda().eval()

    def forward(self, x, adjacency):
        hidden = torch.relu(self.layers[0](x, adjacency))
        return torch.log_softmax(self.layers[1](hidden, adjacency), dim=1)


def ways(edges, a_hat, x, layers):
    """Yields for each way its name, and a function that runs the network. `edges` has sources and targets, `a_hat` is
    the normalised matrix in CSR, `layers` has weights and bias of each."""
    if torch_geometric is None:
        skip("all of PyTorch Geometric (pip install torch_geometric)", MISSING)
        return
    of_edges = Network(layers, cached=True)
    yield "pyg", lambda: of_edges(x, edges)
    of_csr = Network(layers, normalize=False)
    yield "pyg_csr", lambda: of_csr(x, a_hat)
    if WITH_TORCH_SPARSE:
        from torch_sparse import SparseTensor

        adjacency = SparseTensor(
            rowptr=a_hat.crow_indices().long(), col=a_hat.col_indices().long(), value=a_hat.values(),
            sparse_sizes=tuple(a_hat.shape), is_sorted=True, trust_data=True)
        yield "pyg_sparse_tensor", lambda: of_csr(x, adjacency)
    else:
        skip("PyTorch Geometric with SparseTensor (pip install torch_sparse)", "no module torch_sparse")
    # Compiled, with the normalised edges that the runs before have left in its cache.
    torch._dynamo.reset()
    compiled = torch.compile(of_edges, dynamic=False)
    yield "pyg_compiled", lambda: compiled(x, edges)
    compiled_csr = torch.compile(of_csr, dynamic=False)
    yield "pyg_csr_compiled", lambda: compiled_csr(x, a_hat)
