"""Why the emulator and a GPU count differently, where they do."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """A reason, and the cases and metrics that it is for: regular expressions of names and of keys."""

    cases: str
    metrics: str
    reason: str

    def fits(self, case, metric):
        return bool(re.search(self.cases, case) and re.fullmatch(self.metrics, metric))


# Cases whose lanes take different ways, as the data decide. Hardware chooses where they come together again, so
# requests may differ by 5 %.
DIVERGING = r"^spmm/.*/(thread_per_row|in_step)$|^spgemm/"

EXPLANATIONS = [
    Explanation(
        r"^spmm/.*/(warp_per_row_cached|coarsened)$",
        r"shared_loads_(requests|wavefronts|without_conflicts)",
        "The assembler joins two loads of 4 bytes, the column and the value of a nonzero, into one of 8 bytes. The "
        "emulator counts the loads of the source.",
    ),
    Explanation(
        r"^spmm/.*/thread_per_row$",
        r"memory_read_bytes",
        "A warp fills a sector of Y slowly, a word at a time. The GPU reads some of the sectors that are written in "
        "part; the model does not.",
    ),
    Explanation(
        r"",
        r"registers",
        "The driver compiles the PTX. Its compiler is of another version than the assembler of the table.",
    ),
]


def explanation(case, metric):
    """The first explanation for a metric of a case, or None."""
    return next((explained for explained in EXPLANATIONS if explained.fits(case, metric)), None)
