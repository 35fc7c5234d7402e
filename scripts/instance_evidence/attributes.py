"""The entry points of kernels, from the `#[kernel]` attributes in their sources."""

import re
from itertools import product

ATTRIBUTE = re.compile(r"#\[kernel\((.*?)\)\]\s*pub unsafe fn", re.DOTALL)


def entry_points(folder):
    """The names of all entry points of the sources in a folder."""
    return {
        name
        for path in sorted(folder.rglob("*.rs"))
        for attribute in ATTRIBUTE.finditer(path.read_text())
        for name in names_of(attribute.group(1))
    }


def names_of(attribute):
    """The entry points of an attribute: `name = "..", T = [..], LANES = [..]; T = [..], ..`."""
    name = re.match(r'\s*name = "(\w+)"', attribute)
    if name is None:
        return []
    groups = attribute[name.end() :].split(";")
    lists = [re.findall(r"\b[A-Z]+ = \[([^]]*)\]", group) for group in groups]
    return [
        "_".join([name.group(1), *(value.strip() for value in values)])
        for group in lists
        for values in product(*(values.split(",") for values in group))
    ]
