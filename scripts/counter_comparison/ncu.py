"""Runs Nsight Compute, and reads what it prints."""

import csv
import re
import subprocess

from counter_comparison.metrics import METRICS, UPDATES, names

# Launches that are counted, with the state of a launch after others: no caches, the GPU's own clocks.
FLAGS = ["--csv", "--print-units", "base", "--clock-control", "none", "--cache-control", "all"]
FLAGS += ["--profile-from-start", "off", "--target-processes", "all"]

# Metrics that may count what the report has, and that are not asked for yet.
OF_INTEREST = re.compile(
    r"shfl|shuffle|vote|match|redux|barrier|op_bar|ldgsts|lsuin|inter_thread|ldsm|wgmma|pipe_tensor"
    r"|mem_shared_op|op_shared|mem_global_op|op_global"
)


class NcuFailed(Exception):
    """What ncu said."""


def known_metrics(folder):
    """The base names of the GPU's metrics, or None if ncu does not list them. Keeps those of interest in a file."""
    run = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if "__" in line.split(" ")[0]]
    if run.returncode != 0 or not lines:
        return None
    kept = [line for line in lines if OF_INTEREST.search(line)]
    (folder / "metrics_of_interest.txt").write_text("\n".join(kept) + "\n")
    return {line.split()[0] for line in lines}


def count(command, metrics, folder, seconds):
    """Runs a program under ncu with these metrics, by key. Returns its launches; leaves ncu's output in the folder."""
    metrics = dict(metrics)
    while True:
        listed = ",".join(dict.fromkeys(metrics.values()))
        ncu = ["ncu", *FLAGS, "--metrics", listed, *command]
        (folder / "ncu_command.txt").write_text(" ".join(ncu) + "\n")
        run = subprocess.run(ncu, capture_output=True, text=True, timeout=seconds)
        (folder / "ncu.csv").write_text(run.stdout)
        (folder / "ncu_errors.txt").write_text(run.stderr)
        if run.returncode == 0:
            return launches(run.stdout, metrics), metrics
        missing = set(re.findall(r"Failed to find metric (?:regex:)?\W*([\w.]+)", run.stdout + run.stderr))
        left = {key: name for key, name in metrics.items() if name not in missing}
        if not left or len(left) == len(metrics):
            last = (run.stdout + run.stderr).splitlines()[-12:]
            raise NcuFailed(f"ncu ended with {run.returncode}: " + "\n".join(last))
        print(f"ncu has no {', '.join(sorted(missing))}", flush=True)
        metrics = left


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def triple(text):
    return [int(extent) for extent in re.findall(r"\d+", text)]


def launches(text, metrics):
    """The launches in the output of `ncu --csv`, in order: kernel, grid, block and the values of the metrics by key."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    found = {}
    for row in csv.DictReader(lines):
        launch = found.setdefault(
            row["ID"],
            {
                "kernel": re.split(r"[(<]", row["Kernel Name"])[0],
                "grid": triple(row.get("Grid Size", "")),
                "block": triple(row.get("Block Size", "")),
                "values": {},
            },
        )
        value = number(row["Metric Value"])
        for key, name in metrics.items():
            if name == row["Metric Name"] and value is not None:
                launch["values"][key] = value
    for launch in found.values():
        add_calculated(launch["values"])
    return list(found.values())


def recorded(folder):
    """The launches that `count` has left in a folder."""
    command = (folder / "ncu_command.txt").read_text().split()
    asked = command[command.index("--metrics") + 1].split(",")
    return launches((folder / "ncu.csv").read_text(), names(METRICS, {name.split(".")[0] for name in asked}))


def add_calculated(values):
    """Adds what is the sum or the difference of two metrics."""
    for unit in ("requests", "sectors"):
        if f"atomics_{unit}" in values and f"reductions_{unit}" in values:
            values[f"{UPDATES}_{unit}"] = values[f"atomics_{unit}"] + values[f"reductions_{unit}"]
    for kind in ("shared_loads", "shared_stores"):
        if f"{kind}_wavefronts" in values and f"{kind}_conflicts" in values:
            values[f"{kind}_without_conflicts"] = values[f"{kind}_wavefronts"] - values[f"{kind}_conflicts"]
