"""What plans chose in runs of the bench `plans`, against the fastest of all candidates, and what planning cost."""

import json
from pathlib import Path

import numpy as np

HEAD = (
    "| | cases | within 5 % | within 15 % | mean loss | worst ratio | planning, median | at most |\n"
    "|---|---|---|---|---|---|---|---|"
)
ONCE_HEAD = (
    "| matrix, features | plan for one run | plan by default | statistics | best of cuSPARSE | ratio |\n"
    "|---|---|---|---|---|---|"
)


def lines_of(path):
    """The name of the device, and the lines of a file."""
    lines = [json.loads(text) for text in Path(path).read_text().splitlines()]
    device = next(line for line in lines if line["line"] == "device")
    return device["device"], lines


def choices(path):
    """A line for plans that predict and one for plans that measure, for each set."""
    device, lines = lines_of(path)
    cases = [line for line in lines if line["line"] == "case"]
    for name in sorted({case["set"] for case in cases}):
        some = [case for case in cases if case["set"] == name]
        for setting, words in (("own", "predicted"), ("measured", "measured")):
            losses, runs, times = [], [], []
            for case in some:
                results = [result for result in case["results"] if result.get("ms")]
                best = min(result["ms"] for result in results)
                found = [r for r in results if r["setting"] == setting and r["told_features"]]
                for result in found:
                    losses.append(result["ms"] / best)
                    runs.append(result["plan_ms"] / result["ms"])
                    times.append(result["plan_ms"])
            if losses:
                print(row(f"{device}, {name}, {words}", np.array(losses), runs, times))


def row(name, losses, runs, times):
    within = [100 * np.mean(losses <= limit) for limit in (1.05, 1.15)]
    mean = 100 * (np.exp(np.mean(np.log(losses))) - 1)
    return (
        f"| {name} | {len(losses)} | {within[0]:.0f} % | {within[1]:.0f} % | {mean:.1f} % | {losses.max():.2f} "
        f"| {np.median(runs):.0f} runs, {np.median(times):.1f} ms | {max(runs):.0f} runs, {max(times):.1f} ms |"
    )


def once(path):
    """A line for each product that was planned for one run, and the ratios' mean and the worst."""
    device, lines = lines_of(path)
    lines = [line for line in lines if line["line"] == "once"]
    if not lines:
        return
    print(f"\n{device}, milliseconds of planning and one run:\n\n{ONCE_HEAD}")
    ratios = []
    for line in lines:
        ours = {result["runs"]: result for result in line["results"] if result["name"] == "warprow"}
        peers = [result["ms"] for result in line["results"] if result["name"] != "warprow" and result["ms"]]
        if not peers or ours[1]["ms"] is None:
            continue
        statistics = ours[None]["statistics_ms"] or 0.0
        ratios.append(ours[1]["ms"] / min(peers))
        print(
            f"| {line['matrix']}, {line['features']} | {ours[1]['ms']:.3f} | {ours[None]['ms']:.3f} | {statistics:.3f} "
            f"| {min(peers):.3f} | {ratios[-1]:.2f} |"
        )
    if ratios:
        mean = np.exp(np.mean(np.log(ratios)))
        print(f"\nRatio: {mean:.2f} in the geometric mean, {max(ratios):.2f} at worst.")


def report(paths):
    print(HEAD)
    for path in paths:
        choices(path)
    for path in paths:
        once(path)
