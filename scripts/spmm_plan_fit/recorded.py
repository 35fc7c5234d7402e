"""The recorded sweeps: an array for each number that the cost model needs, an element for each measured candidate."""

import json
from pathlib import Path

import numpy as np

# Rows of a window whose distinct columns the plan counts.
WINDOWS = [8, 64, 1024]

# Peak rates of the GPUs: bytes of memory per second, clock, as the files of host/device/profile/ have them.
RATES = {
    "NVIDIA H200": (4.8e12, 1.98e9),
    "NVIDIA H100 80GB HBM3": (3.35e12, 1.98e9),
}

L1_BYTES = 256 << 10

# The times since the last load of a row of X for which miss rates are computed: the least, the factor from one to the
# next, and how many. A column with the mean number of nonzeros is loaded once in a time of 1.
LEAST_TIME = 1e-6
TIME_STEP = 2.0
TIMES = 27

# The least locality, as the logarithm of none is infinite.
LEAST_LOCALITY = 1e-3


# Bytes of an element of X, and of a value of A, which has the type of sums: f32 for 16 bits.
BYTES = {"f32": (4, 4), "f64": (8, 8), "f16": (2, 4), "bf16": (2, 4)}

# Maximum bytes of a load of a lane.
LOAD_BYTES = 16


def width(features, element):
    """Elements of a lane's vector in `vector`."""
    if element != "f32":
        if element != "f64" and features % 8 == 0 and features > 32:
            return 8
        return 4 if features % 4 == 0 else 1
    multiple = min(features & -features, 4)
    return multiple if multiple != 2 or features > 32 else 1


def loads(lanes, width_, features, is_plain, element):
    """Vectors of a lane of `vector`: of those that there are instances of, the one with the least cost. A plain product
    has one block of columns, and the rows in the caller's order.

    As kernels-gpu/spmm/src/product/vector/variant.rs has it. The H100's sweep is older than some instances for more
    than 100 features, which it does not have."""
    if element != "f32":
        return 3 if width_ == 1 else 1
    instances = {(8, 1): (2,), (16, 1): (2, 3) if is_plain else (3,), (32, 1): (2, 4), (32, 2): (1, 2)}
    instances = instances.get((lanes, width_), (1,))
    return min(instances, key=lambda passes: (-(-features // (width_ * lanes * passes)) * (passes + 1), -passes))


def in_step_loads(features, element):
    """Lanes of `in_step`, elements of a lane's vector, and vectors of a lane."""
    if element != "f32":
        elements = width(features, element)
        return (16, 1, 3) if elements == 1 else (8, elements, 1)
    if features > 48 and features % 4 == 2:
        return 32, 2, 1
    if features % 4:
        return 16, 1, 3
    if features > 64 and features % 32:
        return 32, 4, 1
    return (16 if features > 32 else 4 if features <= 16 else 8), 4, 1


def shape(result, features, element):
    """Lanes of a nonzero, and elements of a tile, of a lane's vector, and of the vectors of all lanes."""
    if result["kernel"] == "vector":
        lanes, elements = result["lanes"], width(features, element)
        if elements == 2 and result["column_blocks"] > 1:
            elements = 1
        is_plain = result["column_blocks"] == 1 and result["order"] == "given"
        tile = lanes * elements * loads(lanes, elements, features, is_plain, element)
        return lanes, tile, elements, lanes * elements
    if result["kernel"] == "in_step":
        usual, elements, passes = in_step_loads(features, element)
        # Sweeps before 28 November 2026 record no lanes of `in_step`: they had the usual ones.
        lanes = result.get("lanes") or usual
        return lanes, lanes * elements * passes, elements, lanes * elements
    widths = {"f32": (4, 2, 1), "f64": (2, 1)}.get(element, (4, 1))
    elements = next(width for width in widths if features % width == 0)
    lanes = min(1 << (-(-features // elements) - 1).bit_length(), 32)
    tile = min(features, lanes * elements)
    return lanes, tile, elements, tile


def longest_uncut(s):
    """The longest row that `row_bins` did not cut in the sweeps, as host/spmm/product/bin_sizes.rs has it.

    Since then, rows that are a little longer are not cut if there are no longer ones."""
    share = s.nnz / (s.multiprocessors * 48)
    of_size = np.where(s.lanes <= 2, 6.0, 4.0) * share**0.8
    mean = np.ceil(s.nnz / s.rows_)
    usual = 2.0 ** np.ceil(np.log2(np.where(s.lanes <= 4, 2.0, 1.5) * mean))
    uncut = np.where(s.lanes <= 4, 512.0, 128.0)
    limit = np.maximum(4 * share, np.where(mean <= uncut, uncut, 0))
    longest = np.maximum(of_size, np.minimum(usual, limit))
    return 2.0 ** np.round(np.log2(np.clip(longest, 64, 4096)))


def variation(bins):
    """The standard deviation of the rows' lengths over their mean, by a histogram: rows and their nonzeros."""
    rows, nonzeros = np.array(bins, float).T
    lengths = nonzeros / np.maximum(rows, 1)
    mean = nonzeros.sum() / rows.sum()
    return np.sqrt((rows * (lengths - mean) ** 2).sum() / rows.sum()) / mean


class Sweeps:
    """The candidates of some files of the bench `plans`."""

    def __init__(self, paths):
        rows, types = [], []
        devices = []
        self.names = []
        # A sweep of another type than f32 may leave out the statistics: they are those of the sweep in f32.
        lines = [[json.loads(text) for text in open(path)] for path in paths]
        key = lambda line: (line["device"], line["seed"], line["matrix"])
        matrices = {key(line): line for of_file in lines for line in of_file if line["line"] == "matrix"}
        for gpu, (path, of_file) in enumerate(zip(paths, lines)):
            for line in of_file:
                if line["line"] == "device":
                    devices.append(line)
                    part = Path(path).stem.removeprefix("spmm_sweep").replace("_", ", ")
                    self.names.append(line["device"] + part)
                elif line["line"] == "case":
                    if key(line) not in matrices:
                        raise SystemExit(f"{path}: no sweep has the statistics of {line['matrix']}")
                    matrix = matrices[key(line)]
                    # Sweeps before 1 December 2026 are of f32, and do not say so.
                    element = line.get("type", "f32")
                    results = [result for result in line["results"] if result.get("ms")]
                    rows += [(gpu, matrix, line["features"], result) for result in results]
                    types += [element] * len(results)
        self.rows = rows
        self.gpus = [device["device"] for device in devices]
        number = lambda get: np.array([float(get(*row)) for row in rows])
        flag = lambda get: np.array([bool(get(*row)) for row in rows])
        self.gpu = np.array([row[0] for row in rows])
        self.ms = number(lambda g, m, f, r: r["ms"])
        self.rows_ = number(lambda g, m, f, r: m["rows"])
        self.cols = number(lambda g, m, f, r: m["cols"])
        self.nnz = number(lambda g, m, f, r: m["nnz"])
        self.features = number(lambda g, m, f, r: f)
        self.blocks = number(lambda g, m, f, r: r["column_blocks"])
        self.type = np.array(types)
        shapes = [shape(r, f, t) for (_, _, f, r), t in zip(rows, types)]
        self.lanes, self.tile, self.width, self.load = np.array(shapes, float).T
        self.element, self.value = np.array([BYTES[t] for t in types], float).T
        # Loads of a lane's vector.
        self.parts = np.maximum(1, self.width * self.element / LOAD_BYTES)
        self.vector = flag(lambda g, m, f, r: r["kernel"] == "vector")
        self.in_step = flag(lambda g, m, f, r: r["kernel"] == "in_step")
        self.binned = flag(lambda g, m, f, r: r["kernel"] == "row_bins")
        self.grouped = flag(lambda g, m, f, r: r["kernel"] == "row_groups")
        # Lanes of a row or of a task.
        least = np.where(self.grouped, self.lanes, 1)
        self.group = np.maximum(number(lambda g, m, f, r: r.get("lanes") or 32), least)
        self.group[self.in_step] = 32
        usual = np.array([in_step_loads(f, t)[0] for (_, _, f, _), t in zip(rows, types)], float)
        self.usual_share_in_step = np.where(self.in_step, usual / self.lanes, 1)
        # Plans take these kernels only if a warp has all features of a row at once; in f64 `row_groups` also otherwise.
        self.tiled = (self.binned | self.grouped & (self.type != "f64")) & (self.features > self.tile)
        # They take `in_step` with fewer lanes than the usual ones only in one or two tiles.
        tiles = np.ceil(self.features / self.tile)
        self.tiled |= (self.usual_share_in_step != 1) & (tiles > 2) & (self.lanes < 32)
        # Other sizes of tasks than the plan's, and X in shared memory: no part of the model.
        is_sized = lambda r: r.get("task_size") is not None or r.get("joined") is not None
        self.sized = flag(lambda g, m, f, r: is_sized(r) or r.get("shared_x", False))
        self.own = flag(lambda g, m, f, r: r["setting"] != "set")
        self.told = flag(lambda g, m, f, r: r["told_features"])
        # Sweeps before 30 November 2026 have no rows by first column.
        in_order = lambda m, r: (r["order"] != "given" and m.get(r["order"])) or None
        self.ordered = flag(lambda g, m, f, r: in_order(m, r))
        self.fitting = flag(lambda g, m, f, r: m["set"] == "fitting")
        self.kind = np.array([m["kind"] for _, m, _, _ in rows])
        self.matrix = np.array([m["matrix"] for _, m, _, _ in rows])
        names = {}
        self.case = np.array([names.setdefault((g, m["matrix"], f), len(names)) for g, m, f, _ in rows])
        self.cases = len(names)
        of_device = lambda values: np.array(values, float)[self.gpu]
        self.multiprocessors = of_device([device["multiprocessors"] for device in devices])
        self.l2_bytes = of_device([device["l2_bytes"] for device in devices])
        self.memory_rate = of_device([RATES[name][0] for name in self.gpus])
        self.clock = of_device([RATES[name][1] for name in self.gpus])
        statistics = [in_order(m, r) or m["given"] for _, m, _, r in rows]
        self.longest = np.array([float(s["longest_row"]) for s in statistics])
        self.variation = np.array([variation(s["rows"]) for s in statistics])
        # Rows and their nonzeros by length: bin b has lengths from 2^b to 2^(b + 1) - 1.
        self.row_bins = np.array([s["rows"] for s in statistics], float)
        self._columns(statistics)
        self._locality(statistics)

    def _columns(self, statistics):
        """Columns and their nonzeros by length, and what follows from them."""
        bins = np.array([s["columns"] for s in statistics], float)
        self.bin_columns, self.bin_nonzeros = bins[:, :, 0], bins[:, :, 1]
        self.per_column = self.bin_nonzeros / np.maximum(self.bin_columns, 1)
        self.used_columns = self.bin_columns.sum(1)
        self.miss_rates = {}

    def missed(self, rows, partitions):
        """The share of the nonzeros whose row of X is not in a cache in one or two partitions that hold so many rows.

        As host/spmm/plan/columns.rs has it."""
        if partitions not in self.miss_rates:
            rate = self.per_column / (self.nnz / self.used_columns)[:, None]
            share = self.bin_nonzeros / self.nnz[:, None]
            held, misses = [np.zeros(len(self.nnz))], [np.ones(len(self.nnz))]  # an empty cache
            for time in LEAST_TIME * TIME_STEP ** np.arange(TIMES):
                far = np.exp(-rate * time)
                near = np.exp(-rate * time * (1 + far)) if partitions == 2 else far
                held.append((self.bin_columns * (2 - far - near) / 2).sum(1))
                misses.append((share * (near * (1 + far) / 2 if partitions == 2 else far)).sum(1))
            held.append(self.used_columns)  # a cache of all rows
            misses.append(np.zeros(len(self.nnz)))
            self.miss_rates[partitions] = np.array(held), np.array(misses)
        held, misses = self.miss_rates[partitions]
        above = np.clip((held <= rows).sum(0), 1, TIMES + 1)
        at = lambda values, place: np.take_along_axis(values, place[None], 0)[0]
        low, high = at(held, above - 1), at(held, above)
        part = np.clip((rows - low) / np.maximum(high - low, 1e-9), 0, 1)
        return at(misses, above - 1) * (1 - part) + at(misses, above) * part

    def expected_distinct(self, nonzeros):
        """The expected number of distinct columns of nonzeros drawn at random."""
        return (self.bin_columns * -np.expm1(-self.per_column * (nonzeros / self.nnz)[:, None])).sum(1)

    def expected_longest(self, drawn, most):
        """The expected length of the longest of some rows drawn at random, each of which counts as `most` at most."""
        rows, nonzeros = self.row_bins[:, :, 0], self.row_bins[:, :, 1]
        length = np.minimum(nonzeros / np.maximum(rows, 1), most[:, None])
        empty = 1 - rows.sum(1) / self.rows_
        up_to = np.concatenate([empty[:, None], empty[:, None] + np.cumsum(rows, 1) / self.rows_[:, None]], 1)
        return (np.diff(up_to**drawn, axis=1) * length).sum(1)

    def _locality(self, statistics):
        """Distinct columns of windows over those of as many nonzeros at random, for each size of WINDOWS."""
        mean_row = self.nnz / self.rows_
        recorded = [int(window[0]) for window in statistics[0]["windows"]]
        found = {}
        before = np.ones(len(self.nnz))
        for index, size in enumerate(recorded):
            counted = np.array([s["windows"][index] for s in statistics], float)
            share = counted[:, 2] / np.maximum(counted[:, 1], 1)
            expected = self.expected_distinct(size * mean_row) / (size * mean_row)
            before = found[size] = np.where(counted[:, 1] > 0, np.minimum(share / expected, 1), before)
        found[1024] = (2 * found[512] + found[4096]) / 3
        self.locality = [found[size] for size in WINDOWS]

    def locality_of(self, rows):
        """The locality of a window of so many rows, between those that were counted."""
        x = np.log2(np.clip(rows, 1, WINDOWS[-1]))
        nodes = [0.0] + [np.log2(size) for size in WINDOWS]
        # The distinct columns of a banded matrix grow by its rows, so the logarithms are interpolated.
        values = [np.zeros(len(x))] + [np.log(np.maximum(local, LEAST_LOCALITY)) for local in self.locality]
        result = values[0]
        for left, right, low, high in zip(nodes, nodes[1:], values, values[1:]):
            part = np.clip((x - left) / (right - left), 0, 1)
            result = np.where(x >= left, low + part * (high - low), result)
        return np.exp(result)
