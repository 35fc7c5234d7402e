"""Results of benches as JSON lines, and what all tables share."""

import json
import textwrap
from math import exp, log
from statistics import median

OURS = "warprow"


class WrongResults(Exception):
    """A file that holds no results, and where."""


def read(path, *keys):
    """The results of a bench, in the order of the file; each must have these keys."""
    results = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            result = json.loads(line)
            for key in keys:
                result[key]
        except (ValueError, TypeError, KeyError) as error:
            raise WrongResults(f"{path}:{number}: wanted a result with {', '.join(keys)}, found {error!r}") from error
        results.append(result)
    if not results:
        raise WrongResults(f"{path}: wanted results, found none")
    return results


def grouped(results, *keys):
    """The results of each case by implementation; the later one counts."""
    cases = {}
    for result in results:
        cases.setdefault(tuple(result[key] for key in keys), {})[result["impl"]] = result
    return cases


def time(result):
    """Milliseconds; none of a result that is wrong or was skipped."""
    return result["ms"] if result and result.get("ms") and result.get("ok") is not False else None


def least(case, prefix):
    """The least time of the implementations whose names start with the prefix."""
    times = [time(result) for name, result in case.items() if name.startswith(prefix)]
    return min((ms for ms in times if ms), default=None)


def newest(case, peer):
    """The newest version of a peer in the results of a case; none if it has none."""
    return max((result[peer] for result in case.values() if result.get(peer)), default=None)


def distinct(values):
    return list(dict.fromkeys(values))


def mean(ratios):
    """The geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))


def profiled(results):
    return f"Profiled on {', '.join(sorted({result['date'] for result in results}))}."


def table(head, rows):
    """A table in Markdown, and an empty line."""
    lines = ["| " + " | ".join(map(str, row)) + " |\n" for row in (head, *rows)]
    return lines[0] + "|" + "---|" * len(head) + "\n" + "".join(lines[1:]) + "\n"


def prose(*sentences):
    """A paragraph, and its line's end."""
    return textwrap.fill(" ".join(sentences), 120, break_long_words=False, break_on_hyphens=False) + "\n"


def item(text):
    """An item of a list, and its line's end."""
    lines = textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False)
    return "- " + "\n  ".join(lines) + "\n"


def measured(results, *versions):
    """When, on what, and against which versions."""

    def listed(key):
        return ", ".join(sorted({result[key] for result in results if result.get(key)}))

    peers = "".join(f", {name} {listed(key)}" for key, name in versions if listed(key))
    driver, release = listed("driver"), listed("driver_release")
    text = f"Measured on {listed('date')}: {listed('device')}, driver {release + ' ' if release else ''}for "
    text += f"{driver or 'no GPU'}{peers}"
    clocks = sorted({tuple(result["clocks_mhz"]) for result in results if result.get("clocks_mhz")})
    if clocks:
        text += "; clocks up to " + ", ".join(f"{sm} MHz, memory {memory} MHz" for sm, memory in clocks)
    # Results of several versions of the kernels say so, and those of versions before the checksum.
    kernels = distinct(result.get("ptx") for result in results)
    if any(kernels):
        text += "; PTX " + ", ".join(sorted(ptx or "unknown" for ptx in kernels))
    seeds = sorted({result["seed"] for result in results if result.get("seed") is not None})
    if seeds:
        text += "; seed " + ", ".join(map(str, seeds))
    return text + "."
