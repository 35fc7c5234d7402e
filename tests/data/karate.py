#!/usr/bin/env python3
"""Trains a graph convolutional network on Zachary's karate club and writes it, its input and its output beside this script.

    python3 tests/data/karate.py        (numpy and safetensors; the same files every time)

The graph is the one of W. W. Zachary, "An Information Flow Model for Conflict and Fission in Small Groups" (1977): 34 members, 78
friendships, and the two clubs that they formed. The network is two layers of PyTorch Geometric's GCNConv, 20 features to 16 to 2
classes, with its names and shapes of weights, ReLU between and LogSoftmax last; it is trained here in f64 by gradient descent with
gradients written out, on the labels of the two leaders and two more of either side. The weights are then rounded to f32, and the output is
that of the rounded network in f64.

    karate.mtx            the graph, symmetric, in Matrix Market format
    karate.safetensors    conv1.lin.weight (16 x 20), conv1.bias, conv2.lin.weight (2 x 16), conv2.bias, f32
    karate-x.npy          the features, 34 x 20, f32
    karate-y.npy          the logarithms of probabilities, 34 x 2, f64
"""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

HERE = Path(__file__).resolve().parent

# The friends of each member with a smaller number, counted from 1.
FRIENDS = {
    2: [1], 3: [1, 2], 4: [1, 2, 3], 5: [1], 6: [1], 7: [1, 5, 6], 8: [1, 2, 3, 4], 9: [1, 3], 10: [3], 11: [1, 5, 6],
    12: [1], 13: [1, 4], 14: [1, 2, 3, 4], 17: [6, 7], 18: [1, 2], 20: [1, 2], 22: [1, 2], 26: [24, 25], 28: [3, 24, 25],
    29: [3], 30: [24, 27], 31: [2, 9], 32: [1, 25, 26, 29], 33: [3, 9, 15, 16, 19, 21, 23, 24, 30, 31, 32],
    34: [9, 10, 14, 15, 16, 19, 20, 21, 23, 24, 27, 28, 29, 30, 31, 32, 33],
}
# The members who stayed with the instructor, 1; the others went with the officer, 34.
INSTRUCTORS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22]
LABELLED = [1, 2, 5, 34, 33, 24]


def log_softmax(z):
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def normalized(adjacency):
    """D^-1/2 (A + I) D^-1/2."""
    looped = adjacency + np.eye(len(adjacency))
    scale = 1 / np.sqrt(looped.sum(axis=1))
    return scale[:, None] * looped * scale[None, :]


def forward(a, x, weights):
    hidden = np.maximum(a @ (x @ weights["conv1.lin.weight"].T) + weights["conv1.bias"], 0)
    return hidden, log_softmax(a @ (hidden @ weights["conv2.lin.weight"].T) + weights["conv2.bias"])


def train(a, x, labels, labelled, random):
    def glorot(outputs, inputs):
        bound = np.sqrt(6 / (inputs + outputs))
        return random.uniform(-bound, bound, (outputs, inputs))

    weights = {
        "conv1.lin.weight": glorot(16, x.shape[1]), "conv1.bias": np.zeros(16),
        "conv2.lin.weight": glorot(2, 16), "conv2.bias": np.zeros(2),
    }
    for _ in range(30):
        hidden, y = forward(a, x, weights)
        slope = np.zeros_like(y)
        slope[labelled] = (np.exp(y[labelled]) - np.eye(2)[labels[labelled]]) / len(labelled)
        back = a.T @ slope
        hidden_slope = (back @ weights["conv2.lin.weight"]) * (hidden > 0)
        gradients = {
            "conv2.lin.weight": back.T @ hidden, "conv2.bias": slope.sum(axis=0),
            "conv1.lin.weight": (a.T @ hidden_slope).T @ x, "conv1.bias": hidden_slope.sum(axis=0),
        }
        for name, gradient in gradients.items():
            weights[name] = weights[name] - 0.2 * gradient
    return weights


def main():
    edges = [(i, j) for i, friends in FRIENDS.items() for j in friends]
    assert len(edges) == 78
    adjacency = np.zeros((34, 34))
    for i, j in edges:
        adjacency[i - 1, j - 1] = adjacency[j - 1, i - 1] = 1
    a = normalized(adjacency)
    random = np.random.Generator(np.random.PCG64(1977))
    x = random.standard_normal((34, 20)).astype(np.float32).astype(np.float64)
    labels = np.array([0 if i + 1 in INSTRUCTORS else 1 for i in range(34)])
    labelled = np.array(LABELLED) - 1
    weights = train(a, x, labels, labelled, random)
    rounded = {name: array.astype(np.float32) for name, array in weights.items()}
    _, y = forward(a, x, {name: array.astype(np.float64) for name, array in rounded.items()})
    right = int((y.argmax(axis=1) == labels).sum())
    print(f"{right} of 34 members are put into their club")
    lines = ["%%MatrixMarket matrix coordinate pattern symmetric", "% Zachary's karate club, made by karate.py", "34 34 78"]
    (HERE / "karate.mtx").write_text("\n".join(lines + [f"{i} {j}" for i, j in edges]) + "\n")
    save_file(rounded, HERE / "karate.safetensors")
    np.save(HERE / "karate-x.npy", x.astype(np.float32))
    np.save(HERE / "karate-y.npy", y)


if __name__ == "__main__":
    main()
