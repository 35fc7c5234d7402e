"""The counters: what each means, where the emulator's report has it, and the metrics of Nsight Compute for it."""

from dataclasses import dataclass
from typing import Callable

EXACT, FIVE_PERCENT, TWENTY_PERCENT = 0.0, 0.05, 0.2

MICRO, ALL, NONE = r"^micro/", "", None

# The key of what Nsight Compute counts as atomics or as reductions.
UPDATES = "atomics_and_reductions"


@dataclass(frozen=True)
class Metric:
    """A counter."""

    key: str
    meaning: str
    # The metrics of Nsight Compute with this meaning: the first that this version of ncu has is taken.
    ncu: tuple
    # Its value, from a line that the bench `counters` writes for a launch on the emulator; None: the line has none.
    emulated: Callable
    # Part of the GPU's value by which the two may differ.
    tolerance: float = EXACT
    # In which cases they must agree: a regular expression of their names. NONE: the two are only shown.
    checked: str | None = ALL
    # What Nsight Compute may be without: metrics whose names depend on its version.
    optional: bool = False

    def is_calculated(self):
        """Whether it is the sum or the difference of other metrics."""
        return " " in self.ncu[0]


def counter(kinds, field):
    """A field of one kind of access, or of several together."""
    return lambda line: sum(line["counters"][kind][field] for kind in kinds.split("+"))


def without_conflicts(kind):
    return lambda line: line["counters"][kind]["wavefronts"] - line["counters"][kind]["bank_conflicts"]


def occupancy(field):
    return lambda line: (line.get("occupancy") or {}).get(field)


def memory(field):
    return lambda line: (line.get("memory") or {}).get(field)


def percent_of_sectors(line):
    loads = line["counters"]["global_loads"]
    return 100 * loads["bytes"] / (32 * loads["sectors"]) if loads["sectors"] else None


def lanes_of_collectives(line):
    return sum(line["counters"][kind]["lanes"] for kind in ("shuffles", "votes"))


def global_metrics():
    """Requests and sectors of each kind of access to global memory."""
    # Nsight Compute counts asynchronous copies among the loads.
    kinds = {
        "loads": ("global loads and asynchronous copies", "global_loads+async_copies", "ld", ALL),
        "stores": ("global stores", "global_stores", "st", ALL),
        "atomics": ("global atomics", "global_atomics", "atom", MICRO),
        "reductions": ("global reductions", "global_reductions", "red", MICRO),
        # The compiler makes a reduction of an atomic whose result nobody uses.
        UPDATES: ("global atomics and reductions", "global_atomics+global_reductions", "atom+red", ALL),
    }
    for name, (meaning, fields, ops, checked) in kinds.items():
        for unit, what in (("requests", "instructions of a warp"), ("sectors", "sectors of 32 bytes that these touch")):
            ncu = " + ".join(f"l1tex__t_{unit}_pipe_lsu_mem_global_op_{op}.sum" for op in ops.split("+"))
            yield Metric(f"{name}_{unit}", f"{meaning}: {what}", (ncu,), counter(fields, unit), checked=checked)


def shared_metrics():
    """Wavefronts of each kind of access to shared memory, and the bank conflicts among them."""
    for name, op in (("loads", "ld"), ("stores", "st")):
        field = f"shared_{name}"
        wavefronts = f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"
        conflicts = f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum"
        yield Metric(
            f"{field}_wavefronts",
            f"shared {name}: passes over the banks",
            (wavefronts,),
            counter(field, "wavefronts"),
            checked=MICRO,
        )
        yield Metric(
            f"{field}_conflicts",
            f"shared {name}: passes beyond those that the size needs",
            (conflicts,),
            counter(field, "bank_conflicts"),
            checked=MICRO,
        )
        yield Metric(
            f"{field}_without_conflicts",
            f"shared {name}: passes less bank conflicts",
            (f"{wavefronts} - {conflicts}",),
            without_conflicts(field),
            FIVE_PERCENT,
        )
    atomics = "shared_atomics"
    yield Metric(
        f"{atomics}_requests",
        "shared atomics: instructions of a warp",
        ("smsp__inst_executed_op_shared_atom.sum",),
        counter(atomics, "requests"),
        checked=NONE,
        optional=True,
    )
    yield Metric(
        f"{atomics}_wavefronts",
        "shared atomics: passes over the banks",
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",),
        counter(atomics, "wavefronts"),
        checked=MICRO,
        optional=True,
    )
    yield Metric(
        f"{atomics}_conflicts",
        "shared atomics: passes beyond the first",
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",),
        counter(atomics, "bank_conflicts"),
        checked=NONE,
        optional=True,
    )


def other_metrics():
    """What is only shown, because Nsight Compute counts something that is near, but not the same."""

    def shown(key, meaning, ncu, emulated):
        return Metric(key, meaning, ncu, emulated, checked=NONE, optional=True)

    ldgsts = "pipe_lsu_mem_global_op_ldgsts"
    yield shown(
        "async_copies_requests",
        "asynchronous copies: instructions of a warp",
        (f"l1tex__t_requests_{ldgsts}.sum", "smsp__inst_executed_op_ldgsts.sum"),
        counter("async_copies", "requests"),
    )
    yield shown(
        "async_copies_sectors",
        "asynchronous copies: sectors that these touch",
        (f"l1tex__t_sectors_{ldgsts}.sum",),
        counter("async_copies", "sectors"),
    )
    yield shown(
        "shuffles",
        "shuffles: instructions of a warp",
        ("smsp__inst_executed_op_shfl.sum", "smsp__sass_inst_executed_op_shfl.sum"),
        counter("shuffles", "executed"),
    )
    yield shown(
        "votes",
        "votes, matches and reductions of a warp: instructions of a warp",
        ("smsp__inst_executed_op_vote.sum", "smsp__sass_inst_executed_op_vote.sum"),
        counter("votes", "executed"),
    )
    yield shown(
        "lanes_of_collectives",
        "active lanes of shuffles, votes, matches and reductions",
        ("smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum",),
        lanes_of_collectives,
    )
    yield shown(
        "block_barriers",
        "barriers of a block: instructions of a warp",
        ("smsp__inst_executed_op_barrier.sum", "smsp__inst_executed_op_bar.sum"),
        counter("block_barriers", "executed"),
    )
    yield shown(
        "matrix_products",
        "matrix products: instructions of a warp",
        ("sm__inst_executed_pipe_tensor.sum", "smsp__inst_executed_pipe_tensor.sum"),
        counter("matrix_products", "executed"),
    )
    yield shown(
        "loads_percent_of_sectors",
        "global loads: the part of each sector that lanes ask for, in percent",
        ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",),
        percent_of_sectors,
    )


def launch_metrics():
    """Occupancy, traffic and time."""
    for field, limit, limited_by in (
        ("blocks_by_registers", "registers", "their registers"),
        ("blocks_by_shared_memory", "shared_mem", "their shared memory"),
        ("blocks_by_warps", "warps", "the maximum number of warps"),
        ("blocks_by_hardware", "blocks", "the maximum number of blocks"),
    ):
        what = f"blocks of a multiprocessor, limited by {limited_by}"
        yield Metric(field, what, (f"launch__occupancy_limit_{limit}",), occupancy(field))
    yield Metric(
        "warps_percent",
        "theoretical occupancy: resident warps in percent of what a multiprocessor holds",
        ("sm__maximum_warps_per_active_cycle_pct",),
        occupancy("warps_percent"),
        # Nsight Compute rounds to 0.01.
        2e-3,
    )
    yield Metric(
        "registers",
        "registers of a thread, by the table of the library's kernels",
        ("launch__registers_per_thread",),
        lambda line: line.get("registers"),
    )
    yield Metric(
        "l2_read_bytes",
        "bytes that the L1 caches read from L2, by the model of the caches",
        ("l1tex__m_xbar2l1tex_read_bytes.sum",),
        memory("l2_read_bytes"),
        checked=NONE,
        optional=True,
    )
    yield Metric(
        "memory_read_bytes",
        "bytes read from memory, by the model of the caches",
        ("dram__bytes_read.sum",),
        memory("memory_read_bytes"),
        TWENTY_PERCENT,
        r"^(spmm|xw)/",
    )
    yield Metric("nanoseconds", "time of a cold launch", ("gpu__time_duration.sum",), lambda line: None, checked=NONE)


METRICS = [*global_metrics(), *shared_metrics(), *other_metrics(), *launch_metrics()]


def names(metrics, known):
    """The names for `ncu --metrics`, of metrics that it knows; `known` is None if that could not be asked."""

    def is_known(metric, name):
        return not metric.optional if known is None else name.split(".")[0] in known or not metric.optional

    found = {}
    for metric in metrics:
        if metric.is_calculated():
            continue
        name = next((name for name in metric.ncu if is_known(metric, name)), None)
        if name is not None:
            found[metric.key] = name
    return found
