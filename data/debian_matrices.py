#!/usr/bin/env python3
"""Makes larger real matrices of Debian 12's indices: packages and the words of their descriptions, files and packages.

    data/debian_matrices.py FOLDER      writes three files there, 25 MB, in a minute

| file | rows | columns | entry |
|---|---|---|---|
| packages_words.mtx.gz | packages | words | how often the word stands in the package's description |
| words_packages.mtx.gz | words | packages | its transpose, for products of both |
| files_packages.mtx.gz | files | packages | 1 where the package has the file |

Packages are those of debian-bookworm-depends.mtx.gz, in the same order. A word is a run of at least two letters,
without case, of the long or the short description in English. It has a column if between 2 and 1,000 packages use it:
more common words say nothing of a package and would make the product of both matrices dense. Words and files are in the
order of their bytes. Files are those of the Contents indices, of which most belong to one package.

apt fetches the indices, 66 MB, to a folder of its own, and changes nothing of the system's. The same indices always
make the same matrices.
"""

import argparse
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import Counter

import debian_packages
from debian_packages import ARCHITECTURE, CODENAME, COMPONENT

# Packages that use a word that gets a column.
FEWEST, MOST = 2, 1000

WORD = re.compile(r"[a-z]{2,}")


def fetch(folder):
    """Fetches the indices. Returns apt's options that name the folder."""
    contents = "Acquire::IndexTargets::deb::Contents-deb::"
    options = {
        "Dir::State::Lists": f"{folder}/lists",
        "Dir::Cache": f"{folder}/cache",
        "Acquire::Languages": "en",
        f"{contents}MetaKey": "$(COMPONENT)/Contents-$(ARCHITECTURE)",
        f"{contents}flatMetaKey": "Contents-$(ARCHITECTURE)",
        f"{contents}ShortDescription": "Contents-$(ARCHITECTURE)",
        f"{contents}Description": "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Contents (deb)",
    }
    for name in ("lists/partial", "cache/archives/partial"):
        (pathlib.Path(folder) / name).mkdir(parents=True)
    options = [argument for key, value in options.items() for argument in ("-o", f"{key}={value}")]
    subprocess.run(["apt-get", "update", "-q", *options], check=True, stdout=sys.stderr)
    return options


def targets(options, created_by):
    """The paths of the release's own indices of a kind, without updates and security."""
    wanted = [created_by, "Debian", "Debian", CODENAME, COMPONENT]
    fields = ["CREATED_BY", "ORIGIN", "LABEL", "CODENAME", "COMPONENT", "FILENAME"]
    form = "|".join(f"$({field})" for field in fields)
    lines = debian_packages.run("apt-get", "indextargets", *options, "--format", form).splitlines()
    files = sorted({line.split("|")[-1] for line in lines if line.split("|")[:-1] == wanted})
    # The security archive and the updates have code names of their own, but share the component's name.
    files = [file for file in files if f"_dists_{CODENAME}_" in file]
    if not files:
        sys.exit(f"apt has fetched no {created_by} of Debian {CODENAME}/{COMPONENT} {ARCHITECTURE}")
    return files


def lines_of(options, index):
    """The lines of an index, as apt decompresses it."""
    command = [debian_packages.APT_HELPER, *options, "cat-file", index]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace") as process:
        yield from process.stdout
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed")


def descriptions(options):
    """The long English description of each package that has one."""
    found = {}
    for index in targets(options, "Translations"):
        stanza = []
        for line in [*lines_of(options, index), "\n"]:
            if line != "\n":
                stanza.append(line)
                continue
            text = "".join(stanza)
            name = re.match(r"Package: (\S+)", text)
            if name:
                found[name.group(1)] = text.partition("Description-en:")[2]
            stanza = []
    return found


def write(path, shape, count, entries, comments):
    """Writes a matrix, `count` entries (row, column, value) from 1 on, in their order."""
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
        lines = ["%%MatrixMarket matrix coordinate integer general", *(f"% {line}" for line in comments)]
        lines += ["% Made by debian_matrices.py.", f"{shape[0]} {shape[1]} {count}"]
        compressed.write(("\n".join(lines) + "\n").encode("ascii"))
        written = 0
        for row, column, value in entries:
            compressed.write(b"%d %d %d\n" % (row, column, value))
            written += 1
    assert written == count, f"{written} entries of {count}"
    part.replace(path)
    print(f"{path}: {shape[0]} x {shape[1]}, {count} nonzeros, {path.stat().st_size} bytes")


def write_words(folder, packages, options, of_release):
    """Writes the packages and their words, and the transpose."""
    long = descriptions(options)
    counts = []
    for name in sorted(packages):
        text = long.get(name, packages[name].get("Description", "")).lower()
        counts.append(Counter(WORD.findall(text)))
    uses = Counter(word for count in counts for word in count)
    words = sorted(word for word, use in uses.items() if FEWEST <= use <= MOST)
    number = {word: column for column, word in enumerate(words, start=1)}
    entries = [
        (row, number[word], count[word])
        for row, count in enumerate(counts, start=1)
        for word in sorted(count)
        if word in number
    ]
    shape = (len(packages), len(words))
    rule = f"Words that {FEWEST} to {MOST} packages use in their descriptions."
    write(folder / "packages_words.mtx.gz", shape, len(entries), entries, [of_release, rule])
    transpose = sorted((column, row, value) for row, column, value in entries)
    comments = [of_release, rule, "The transpose of packages_words.mtx.gz."]
    write(folder / "words_packages.mtx.gz", shape[::-1], len(transpose), transpose, comments)


def write_files(folder, packages, options, of_release):
    """Writes the files and the packages that have them."""
    number = {name: column for column, name in enumerate(sorted(packages), start=1)}
    owners = {}
    for index in targets(options, "Contents-deb"):
        for line in lines_of(options, index):
            # The last word is a list of sections and packages: `admin/apt,libs/libapt`.
            path, _, qualified = line.rstrip("\n").rpartition(" ")
            columns = {number.get(name.rpartition("/")[2]) for name in qualified.split(",")} - {None}
            if columns:
                owners.setdefault(path.rstrip(), set()).update(columns)
    rows = sorted(owners)
    entries = ((row, column, 1) for row, path in enumerate(rows, start=1) for column in sorted(owners[path]))
    count = sum(map(len, owners.values()))
    comments = [of_release, "Rows: files. Columns: packages, in the order of their names' bytes."]
    write(folder / "files_packages.mtx.gz", (len(rows), len(packages)), count, entries, comments)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the files go; it is made if it is not there")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as state:
        options = fetch(state)
        indices = [file for file in targets(options, "Packages") if f"binary-{ARCHITECTURE}_" in file]
        packages = debian_packages.packages_of(indices[0], options)
        version, date = debian_packages.release_of(indices[0])
        of_release = f"Debian {version} ({CODENAME}), {COMPONENT}, {ARCHITECTURE}; date of the index: {date}."
        write_words(folder, packages, options, of_release)
        write_files(folder, packages, options, of_release)


if __name__ == "__main__":
    main()
