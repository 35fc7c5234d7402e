"""What the measurements say of an instance, and the reasons of those without evidence."""

import fnmatch
import json
import sys
from collections import defaultdict

# What is a gain, as a ratio of times.
GAIN = 1.02


class Run:
    """A timed run of a case, and the instances that it launched. `certain` are those that it did launch, `possible`
    those that it may have launched, which are more where the results do not record them."""

    def __init__(self, ms, certain, possible=None):
        self.ms, self.certain = ms, certain
        self.possible = certain if possible is None else possible


class Evidence:
    """What was measured of an instance: in how many cases it ran, and its greatest gain, with the case."""

    def __init__(self):
        self.cases, self.gain, self.where = 0, 0.0, None


def evidence(cases, names):
    """The evidence of each instance in `names`; `cases` are pairs of a key and its runs."""
    found = {name: Evidence() for name in names}
    for key, runs in cases:
        runs = list(runs)
        for name in set().union(*(run.certain for run in runs)) & names:
            with_it = min(run.ms for run in runs if name in run.certain)
            without = min((run.ms for run in runs if name not in run.possible), default=None)
            of_name = found[name]
            of_name.cases += 1
            if without is not None and without / with_it > of_name.gain:
                of_name.gain, of_name.where = without / with_it, key
    return found


def reason(name, reasons):
    """The first pattern of the table that the name matches."""
    return next((pattern for pattern in reasons if fnmatch.fnmatchcase(name, pattern)), None)


def read(path, *keys):
    """The right results with times of a file, by case and implementation. The keys name the fields of a case."""
    cases = defaultdict(dict)
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            result = json.loads(line)
            if result.get("ms") and result.get("ok"):
                cases[tuple(result[key] for key in keys)][result["impl"]] = result
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"{path}:{number}: wanted a result with {', '.join(keys)}, found {error!r}")
    return cases
