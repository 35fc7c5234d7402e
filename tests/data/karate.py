#!/usr/bin/env python3
"""Trains a graph convolutional network on Zachary's karate club in PyTorch.

It writes the network, its input and its output beside this script.

    pip install torch torch_geometric safetensors numpy
    python3 tests/data/karate.py        (the same files every time, with the same versions on the same machine)

The graph is the one of W. W. Zachary, "An Information Flow Model for Conflict and Fission in Small Groups" (1977): 34
members, 78 friendships, and the two clubs that they formed. The network is two layers of PyTorch Geometric's GCNConv,
20 features to 16 to 2 classes, ReLU between and LogSoftmax last; it is trained in f32 on the CPU by Adam, on the
labels of the two leaders and two more of either side. The output is what the trained network gives in f64: its
weights are the same numbers, and what another implementation in f32 differs by is its own error.

    karate.mtx            the graph, symmetric, in Matrix Market format
    karate.safetensors    conv1.lin.weight (16 x 20), conv1.bias, conv2.lin.weight (2 x 16), conv2.bias, f32
    karate-x.npy          the features, 34 x 20, f32
    karate-y.npy          the logarithms of probabilities, 34 x 2, f64

The files here were made with torch 2.15.0, torch_geometric 2.8.1, numpy 2.4.6, safetensors 0.8.0. Training is short,
so that no probability comes near 1, whose logarithm has no digits left in f32.
"""

import copy
from pathlib import Path

import numpy as np
import torch
import torch_geometric
from safetensors.torch import save_file
from torch_geometric.nn import GCNConv

HERE = Path(__file__).resolve().parent

# The friends of each member with a smaller number, counted from 1.
FRIENDS = {
    2: [1], 3: [1, 2], 4: [1, 2, 3], 5: [1], 6: [1], 7: [1, 5, 6], 8: [1, 2, 3, 4], 9: [1, 3], 10: [3], 11: [1, 5, 6],
    12: [1], 13: [1, 4], 14: [1, 2, 3, 4], 17: [6, 7], 18: [1, 2], 20: [1, 2], 22: [1, 2], 26: [24, 25],
    28: [3, 24, 25], 29: [3], 30: [24, 27], 31: [2, 9], 32: [1, 25, 26, 29],
    33: [3, 9, 15, 16, 19, 21, 23, 24, 30, 31, 32],
    34: [9, 10, 14, 15, 16, 19, 20, 21, 23, 24, 27, 28, 29, 30, 31, 32, 33],
}
# The members who stayed with the instructor, 1; the others went with the officer, 34.
INSTRUCTORS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22]
LABELLED = [1, 2, 5, 34, 33, 24]


class Network(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.conv1 = GCNConv(features, hidden)
        self.conv2 = GCNConv(hidden, classes)

    def forward(self, x, edges):
        x = torch.relu(self.conv1(x, edges))
        return torch.log_softmax(self.conv2(x, edges), dim=1)


def train(network, x, edges, labels, labelled):
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(12):
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(network(x, edges)[labelled], labels[labelled])
        loss.backward()
        optimizer.step()


def main():
    friendships = [(i, j) for i, friends in FRIENDS.items() for j in friends]
    assert len(friendships) == 78
    both_ways = [(i - 1, j - 1) for i, j in friendships] + [(j - 1, i - 1) for i, j in friendships]
    edges = torch.tensor(both_ways).t().contiguous()
    torch.manual_seed(1977)
    torch.use_deterministic_algorithms(True)
    x = torch.randn(34, 20)
    labels = torch.tensor([0 if i + 1 in INSTRUCTORS else 1 for i in range(34)])
    network = Network(20, 16, 2)
    train(network, x, edges, labels, torch.tensor(LABELLED) - 1)
    with torch.no_grad():
        y = copy.deepcopy(network).double()(x.double(), edges)
    right = int((y.argmax(dim=1) == labels).sum())
    print(f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}, numpy {np.__version__}")
    print(f"{right} of 34 members are put into their club; {float(y.max().exp()):.3f} is the greatest probability")
    header = "%%MatrixMarket matrix coordinate pattern symmetric"
    lines = [header, "% Zachary's karate club, made by karate.py", "34 34 78"]
    (HERE / "karate.mtx").write_text("\n".join(lines + [f"{i} {j}" for i, j in friendships]) + "\n")
    save_file(network.state_dict(), HERE / "karate.safetensors")
    np.save(HERE / "karate-x.npy", x.numpy())
    np.save(HERE / "karate-y.npy", y.numpy())


if __name__ == "__main__":
    main()
