"""Counters of kernels by ncu, for the scripts beside this file."""

import csv
import subprocess
import sys

# Our name and ncu's.
COUNTERS = {
    "us": "gpu__time_duration.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_to_sm_percent": "lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "l1_hit_percent": "l1tex__t_sector_hit_rate.pct",
    "l2_gigabytes": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "lsu_percent": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "shared_percent": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed",
    "issue_percent": "sm__inst_executed.avg.pct_of_peak_sustained_active",
    "warps_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
}

# To microseconds and to gigabytes.
SCALES = {"ns": 1e-3, "us": 1, "ms": 1e3, "byte": 1e-9, "Kbyte": 1e-6, "Mbyte": 1e-3, "Gbyte": 1}


def launches(kernels, count, command):
    """The first `count` launches of kernels whose name matches `kernels`, in order: names and counters."""
    return profiled(["-k", f"regex:{kernels}", "-c", str(count)], command)


def launches_of_each(kernels, count, command):
    """As `launches`, but the first `count` of each of the kernels."""
    invocations = "|".join(str(invocation + 1) for invocation in range(count))
    return profiled(["--kernel-id", f"::regex:{kernels}:{invocations}"], command)


def profiled(filters, command):
    """The launches of the command that ncu's filters select, in order: kernel names and counters."""
    ncu = ["ncu", "--csv", "--metrics", ",".join(COUNTERS.values()), *filters, *command]
    run = subprocess.run(ncu, capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith('"')]
    if run.returncode != 0 or len(lines) < 2:
        sys.exit(f"{' '.join(ncu)} failed:\n{run.stdout}{run.stderr}")
    names = {counter: name for name, counter in COUNTERS.items()}
    found = {}
    for row in csv.DictReader(lines):
        launch = found.setdefault(row["ID"], {"kernel": row["Kernel Name"]})
        value = float(row["Metric Value"].replace(",", "")) * SCALES.get(row["Metric Unit"], 1)
        launch[names[row["Metric Name"]]] = round(value, 4)
    return list(found.values())
