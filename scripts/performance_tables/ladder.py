"""The tables of the ladders: ladder.jsonl."""

from performance_tables.results import distinct, item, measured, prose, read, table, time


class Ladder:
    """The results of a family."""

    def __init__(self, results):
        self.results = results
        self.cases = distinct((result["case"], result["type"]) for result in results)
        self.found = {(result["rung"], result["case"], result["type"]): result for result in results}
        # The later result of a rung has its present idea and parent.
        self.rungs = {result["rung"]: result for result in results}

    def speed_up(self, rung, case):
        """How many times as fast as its parent; none if one of them has no time."""
        ours = time(self.found.get((rung, *case)))
        theirs = time(self.found.get((self.rungs[rung]["parent"], *case)))
        return theirs / ours if ours and theirs else None

    def cell(self, rung, case):
        result = self.found.get((rung, *case))
        if result is None or "skipped" in result:
            return "-" if result else ""
        if time(result) is None:
            return "wrong" if result.get("ok") is False else "not timed"
        text = milliseconds(result["ms"])
        if result.get("precision"):
            text += f" {result['precision']}"
        ratio = self.speed_up(rung, case)
        return f"{text} ({ratio:.2f})" if ratio else text

    def slower(self):
        """The rungs that are slower than their parents in some case."""
        ratios = {rung: [self.speed_up(rung, case) for case in self.cases] for rung in self.rungs}
        return [rung for rung, found in ratios.items() if any(ratio and ratio < 1 for ratio in found)]

    def skipped(self):
        """A line for each reason why a rung does not compute some cases."""
        reasons = {}
        for result in self.found.values():
            if "skipped" in result:
                cases = reasons.setdefault((result["rung"], result["skipped"]), [])
                cases.append(f"{result['case']}, {result['type']}")
        return [item(f"`{rung}` ({'; '.join(cases)}): {reason}") for (rung, reason), cases in reasons.items()]

    def text(self):
        slower = ", ".join(f"`{rung}`" for rung in self.slower())
        sentences = [
            "A cell has milliseconds and, in brackets, how many times as fast the rung is as its parent.",
            f"Slower than its parent in at least one case: {slower or 'none'}.",
        ]
        if any(result.get("precision") for result in self.results):
            sentences.append("A type after the time says that the rung multiplies in that lower precision.")
        skipped = self.skipped()
        if skipped:
            sentences.append("A dash says that the rung cannot compute the case; the reason is below.")
        rows = []
        for rung, result in self.rungs.items():
            parent = f"`{result['parent']}`" if result["parent"] else "none"
            rows.append([f"`{rung}`", parent, result["idea"], *(self.cell(rung, case) for case in self.cases)])
        text = prose(*sentences) + "\n" + table(["rung", "parent", "idea", *map(", ".join, self.cases)], rows)
        if skipped:
            text += "".join(skipped) + "\n"
        text += prose("Medians, verified against f64.", measured(self.results))
        return text + "[Results]({folder}/ladder.jsonl).\n"


def milliseconds(ms):
    """At least three significant digits."""
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.3g}" if ms >= 0.1 else f"{ms:.4f}"


def family(name):
    """The section of a family."""

    def section(folder):
        results = read(folder / "ladder.jsonl", "family", "rung", "parent", "idea", "case", "type")
        results = [result for result in results if result["family"] == name]
        return Ladder(results).text() if results else "Not measured yet.\n"

    return section


SECTIONS = {f"ladder_{name}": family(name) for name in ("spmm", "spgemm", "gemm")}
