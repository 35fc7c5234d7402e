#!/usr/bin/env python3
"""Makes debian-bookworm-depends.mtx.gz: who depends on whom among the packages of Debian 12.

Rows and columns are the binary packages of Debian 12 (bookworm) itself, component main, architecture amd64, in the
order of their names' bytes; updates and security archives are left out. The index that apt holds is read; nothing is
fetched (run `apt-get update` if apt holds none).

Entry (i, j) counts how often `Depends` and `Pre-Depends` of package i name package j: every alternative counts,
versions and architecture qualifiers are ignored. A name that packages provide also counts for each of its providers,
once, besides the package of that name if there is one. Names that no package of the index has or provides are left
out. Where the index has several versions of a package, the newest counts.

The same index always makes the same bytes (with the same zlib).
"""

import gzip
import pathlib
import re
import subprocess
import sys

CODENAME, COMPONENT, ARCHITECTURE = "bookworm", "main", "amd64"
APT_HELPER = "/usr/lib/apt/apt-helper"
OUTPUT = pathlib.Path(__file__).parent / "debian-bookworm-depends.mtx.gz"


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def index_file():
    """The path of the one index of the release itself among those that apt knows."""
    wanted = ["Packages", "Debian", "Debian", CODENAME, COMPONENT, ARCHITECTURE]
    fields = ["IDENTIFIER", "ORIGIN", "LABEL", "CODENAME", "COMPONENT", "ARCHITECTURE", "FILENAME"]
    lines = run("apt-get", "indextargets", "--format", "|".join(f"$({field})" for field in fields)).splitlines()
    files = sorted({line.split("|")[-1] for line in lines if line.split("|")[:-1] == wanted})
    if not files:
        sys.exit(f"apt holds no index of Debian {CODENAME}/{COMPONENT} {ARCHITECTURE}; run `apt-get update`")
    # Several mirrors may hold the same index.
    return files[0]


def release_of(index):
    """Version and date of the release that the index is of, from the signed Release file beside it."""
    stem = re.sub(r"_[^_]+_binary-[^_]+_Packages.*$", "", index)
    for path in (pathlib.Path(stem + suffix) for suffix in ("_InRelease", "_Release")):
        if path.exists():
            fields = dict(re.findall(r"^(\w+): (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
            return fields.get("Version", "version unknown"), fields.get("Date", "date unknown")
    return "version unknown", "date unknown"


def stanzas(index, options=()):
    """The packages of the index, a dictionary of the fields each. `options` are apt's."""
    for stanza in run(APT_HELPER, *options, "cat-file", index).split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): *(.*)$", stanza, flags=re.MULTILINE))
        if fields:
            yield fields


def is_newer(version, other):
    return subprocess.run(["dpkg", "--compare-versions", version, "gt", other], check=False).returncode == 0


def packages_of(index, options=()):
    """The newest stanza of every package, by name."""
    packages = {}
    for fields in stanzas(index, options):
        name = fields["Package"]
        if name not in packages or is_newer(fields["Version"], packages[name]["Version"]):
            packages[name] = fields
    return packages


def names(relation):
    """The package names in a relation like `a (>= 1) | b:any, c`, with repetitions."""
    for term in re.split(r"[,|]", relation):
        # What follows a name: a version in parentheses, an architecture after a colon.
        name = re.match(r"\s*([a-z0-9][a-z0-9+.-]*)", term)
        if name:
            yield name.group(1)


def entries(packages):
    """{(i, j): count}, with i and j from 1."""
    number = {name: position for position, name in enumerate(sorted(packages), start=1)}
    satisfied_by = {name: {name} for name in packages}
    for name, fields in packages.items():
        for provided in names(fields.get("Provides", "")):
            satisfied_by.setdefault(provided, set()).add(name)
    counts = {}
    for name, fields in packages.items():
        for relation in ("Pre-Depends", "Depends"):
            for needed in names(fields.get(relation, "")):
                for provider in satisfied_by.get(needed, ()):
                    entry = (number[name], number[provider])
                    counts[entry] = counts.get(entry, 0) + 1
    return counts


def main():
    index = index_file()
    version, date = release_of(index)
    packages = packages_of(index)
    counts = entries(packages)
    text = [
        "%%MatrixMarket matrix coordinate integer general",
        f"% Dependencies between the binary packages of Debian {version} ({CODENAME}), component {COMPONENT},",
        f"% architecture {ARCHITECTURE}; date of the index: {date}.",
        "% Rows and columns: the packages, in the order of their names' bytes.",
        "% Entry (i, j): how often Depends and Pre-Depends of package i name package j, all alternatives counted, a",
        "% provided name counting for each of its providers; names that the index does not have are left out.",
        "% Made by debian_packages.py.",
        f"{len(packages)} {len(packages)} {len(counts)}",
    ]
    text += [f"{row} {column} {count}" for (row, column), count in sorted(counts.items())]
    with open(OUTPUT, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as compressed:
        compressed.write(("\n".join(text) + "\n").encode("ascii"))
    lengths = [0] * len(packages)
    for row, _ in counts:
        lengths[row - 1] += 1
    print(
        f"{len(packages)} rows, {len(counts)} nonzeros, longest row {max(lengths)}, {lengths.count(0)} empty rows, "
        f"{OUTPUT.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
