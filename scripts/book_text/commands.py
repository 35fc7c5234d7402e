"""Console blocks: fenced blocks of the language `console`, whose commands are run from the root of the repository.

A line that begins with `$ ` is a command; the lines after it are its output, standard error included. Neither what
cargo says while it builds nor the reason why there is no GPU is a part of it. Times, numbers of cores and rounding
errors are not compared. Marks may stand before a block, each on a line:

    <!-- fails -->          the commands must exit with a code other than 0; else they must exit with 0
    <!-- keep: REGEX -->    only lines that match are shown; the others become one line `..`
    <!-- within: 10 % -->   numbers may differ by as much

The last one is for kernels whose lanes diverge: in which order a warp runs their branches, and so some of its counters,
depends on how the host's compiler has laid out the kernel. `--update` leaves numbers that agree so well as they are.

Commands run on the emulator. What only a GPU prints is a `text` block, which is not run. A picture in
book/chapters/pictures that a command writes must be as it was before; `--update` keeps the new one.
"""

import os
import re
import subprocess

from .fault import Fault

BLOCK = re.compile(
    r"^(?P<marks>(?:<!-- (?:fails|keep: [^\n]*|within: \d+ %) -->\n)*)```console\n(?P<body>.*?)^```\n", re.MULTILINE | re.DOTALL
)
CARGO = re.compile(
    r"^ *(Blocking|Building|Compiling|Downloaded|Downloading|Finished|Fresh|Locking|Running|Updating) "
    r"|^warning: \S+@\d"
    r"|^error: process didn't exit successfully|^ +no GPU: "
)
MASKS = [
    (re.compile(r"\b\d+(\.\d+)? (s|ms|us)\b"), "TIME"),
    (re.compile(r"\(\d+ cores?\)"), "CORES"),
    (re.compile(r"\bin \d+(\.\d+)?s\b"), "TIME"),
    (re.compile(r"\bgreatest error .*"), "ERROR"),
]
EXAMPLE = re.compile(r"\bcargo run --release --example (\w+)(?: --(?= ))?")
PICTURE = re.compile(r"\bbook/chapters/pictures/[\w-]+\.svg\b")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
SECONDS = 600


def renewed(root, chapter, text, update, programs=None):
    """The text with the output of its commands, where that differs in more than times."""
    return BLOCK.sub(lambda match: block(root, match["marks"], match["body"], update, programs), text)


def block(root, marks, body, update, programs):
    fails = "<!-- fails -->" in marks
    keep = re.search(r"<!-- keep: (.*) -->", marks)
    within = re.search(r"<!-- within: (\d+) % -->", marks)
    percent = int(within[1]) if within else 0
    found = []
    for command in commands(body):
        output = run_and_compare_pictures(root, command, fails, update, programs)
        if keep:
            output = only(output, re.compile(keep[1]))
        found += [*("$ " + command).split("\n"), *output]
    before = body.splitlines()
    same = len(before) == len(found) and all(agree(*lines, percent) for lines in zip(before, found))
    return f"{marks}```console\n" + "".join(line + "\n" for line in (before if same else found)) + "```\n"


def commands(body):
    """The commands of a block; one may continue after a backslash at a line's end."""
    found = []
    continues = False
    for line in body.splitlines():
        if continues:
            found[-1] += "\n" + line
        elif line.startswith("$ "):
            found.append(line[2:])
        continues = (continues or line.startswith("$ ")) and line.endswith("\\")
    if not found:
        raise Fault("wanted a command, a line that begins with `$ `, in each console block")
    return found


def run_and_compare_pictures(root, command, fails, update, programs):
    """The lines that a command prints. If it changes a picture, that is a fault, unless it may update pictures."""
    pictures = [root / path for path in PICTURE.findall(command)]
    before = [path.read_bytes() if path.exists() else None for path in pictures]
    output = run(root, with_programs(command, programs), fails)
    for path, content in zip(pictures, before):
        if not path.exists():
            raise Fault(f"`{command}` writes no {path.relative_to(root)}")
        if path.read_bytes() != content and not update:
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
            raise Fault(f"`{command}`: {path.relative_to(root)} is out of date; run scripts/book --update")
    return output


def with_programs(command, programs):
    """The command that runs the example in the folder `programs`, where cargo would build it first."""
    return EXAMPLE.sub(lambda found: str(programs / found[1]), command) if programs else command


def run(root, command, fails):
    """The lines that a command prints."""
    environment = {**os.environ, "WARPROW_DEVICE": "emulator", "CARGO_TERM_COLOR": "never"}
    try:
        process = subprocess.run(
            command, shell=True, executable="/bin/bash", cwd=root, env=environment, text=True, timeout=SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
    except subprocess.TimeoutExpired:
        raise Fault(f"`{command}` runs for more than {SECONDS} s") from None
    if (process.returncode != 0) != fails:
        wanted = "another code than 0" if fails else "exit code 0"
        raise Fault(f"`{command}`: wanted {wanted}, found {process.returncode}:\n{process.stdout}")
    lines = [line.rstrip() for line in process.stdout.splitlines() if not CARGO.match(line)]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def only(lines, pattern):
    """The lines that match, and `..` for each group of others."""
    kept = []
    for line in lines:
        if pattern.search(line):
            kept.append(line)
        elif kept[-1:] != [".."]:
            kept.append("..")
    return kept


def masked(line):
    for pattern, name in MASKS:
        line = pattern.sub(name, line)
    return line


def agree(before, found, percent):
    """Whether two lines are the same, but for what is masked, and for numbers that differ by at most `percent`."""
    before, found = masked(before), masked(found)
    if before == found or percent == 0:
        return before == found
    words = [NUMBER.sub("#", line).split() for line in (before, found)]
    numbers = zip(NUMBER.findall(before), NUMBER.findall(found))
    return words[0] == words[1] and all(close(*pair, percent) for pair in numbers)


def close(before, found, percent):
    """Whether two numbers differ by at most `percent` of the greater one, or by one unit of the last digit."""
    decimals = max(len(number.partition(".")[2]) for number in (before, found))
    before, found = (float(number.replace(",", "")) for number in (before, found))
    allowed = max(percent / 100 * max(before, found), 1.001 * 10**-decimals)
    return abs(before - found) <= allowed
