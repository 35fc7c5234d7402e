"""The imports between the files of a Cargo workspace, read from the text of its manifests and sources.

An import is a `use` declaration or a path in the code. It is followed through `pub use` to the file that defines the
name. Comments, strings and the code of tests (`#[cfg(test)]`) do not count. Modules follow from the folders: what a
macro declares counts too, and `#[path]` does not.
"""

import re
import tomllib
from collections import namedtuple

# `name` and `dependencies` are names of libraries, which may differ from those of their packages; `root` is the path of
# lib.rs or main.rs.
Crate = namedtuple("Crate", "folder name dependencies root")
Import = namedtuple("Import", "source target line text")
Module = namedtuple("Module", "crate path file")

# ---------------------------------------------------------------- Rust text


def blanked(text):
    """The text with comments, strings and character literals blanked out, all lines in their places."""
    pattern = re.compile(
        r"""//[^\n]*|/\*.*?\*/|\bb?r(\#*)".*?"\1|\bb?"(?:\\.|[^"\\])*"|"(?:\\.|[^"\\])*"|'(?:\\[^\n]+?|[^'\\\n])'""",
        re.S,
    )
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def end_of_item(text, start):
    """Where the item ends that starts there: at its closing brace, or at a semicolon outside of braces."""
    depth = 0
    is_use = re.compile(r"\s*(pub(\([^)]*\))?\s+)?use\b").match(text, start)
    for at in range(start, len(text)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0 and not is_use:
                return at + 1
        elif text[at] == ";" and depth == 0:
            return at + 1
    return len(text)


def without_tests(text):
    """Blanks out items that are compiled for tests alone; returns the text and the names of such modules."""
    modules = []
    for found in list(re.finditer(r"#\[cfg\((?:all\(\s*)?test\b[^\]]*\]", text)):
        start = found.end()
        while attribute := re.compile(r"\s*#\[[^\]]*\]").match(text, start):
            start = attribute.end()
        end = end_of_item(text, start)
        item = text[start:end]
        if module := re.match(r"\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", item):
            modules.append(module.group(1))
        text = text[: found.start()] + re.sub(r"[^\n]", " ", text[found.start() : end]) + text[end:]
    return text, modules


def inline_modules(text):
    """The modules that are written out in a file: name, start and end of each."""
    found = re.finditer(r"\bmod\s+(\w+)\s*\{", text)
    return [(module.group(1), module.start(), end_of_item(text, module.start())) for module in found]


def use_tree(text):
    """The paths of a `use` tree with the name that each gets: `a::{b, c as d}` has (a, b), b and (a, c), d."""
    text = text.strip()
    if not text:
        return []
    head, brace, rest = text.partition("{")
    if brace:
        prefix = tuple(part.strip() for part in head.split("::") if part.strip())
        branches, depth, start = [], 0, 0
        inner = rest[: rest.rindex("}")]
        for at, letter in enumerate(inner + ","):
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                branches.append(inner[start:at])
                start = at + 1
        found = []
        for branch in branches:
            for path, name in use_tree(branch):
                if path == ("self",):
                    found.append((prefix, name if name != "self" else prefix[-1]))
                else:
                    found.append((prefix + path, name))
        return found
    path, _, name = text.partition(" as ")
    parts = tuple(part.strip() for part in path.split("::") if part.strip())
    return [(parts, name.strip() or parts[-1])]


class File:
    """A source file: the names that it defines, the names that it imports, and the paths in its code."""

    def __init__(self, module, text):
        self.module = module
        text, self.test_modules = without_tests(blanked(text))
        self.inline = inline_modules(text)
        self.names = {}
        self.globs = []
        self.paths = []  # path, position in the text, whether it is a `use`
        uses = re.compile(r"\buse\s+([^;]+);")
        for found in uses.finditer(text):
            for path, name in use_tree(found.group(1)):
                scope = self.scope(found.start())
                self.paths.append((path, scope, text.count("\n", 0, found.start()) + 1))
                if name == "*":
                    self.globs.append((path[:-1], scope))
                elif name != "_":
                    self.names[name] = (path, scope)
        code = uses.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
        code = re.sub(r"\bpub\(in [^)]*\)", lambda found: " " * len(found.group()), code)
        for found in re.finditer(r"(?<![\w:$])(\$?\w+(?:\s*::\s*\w+)+)", code):
            path = tuple(part.strip() for part in found.group(1).split("::"))
            self.paths.append((path, self.scope(found.start()), code.count("\n", 0, found.start()) + 1))
        items = r"\b(?:struct|enum|union|trait|type|fn|const|static|mod|macro_rules!)\s+(\w+)"
        self.defined = set(re.findall(items, code))

    def scope(self, at):
        """The path of the module that has this place of the text."""
        inline = tuple(name for name, start, end in self.inline if start < at < end)
        return self.module.path + inline


# ---------------------------------------------------------------- the workspace


class Workspace:
    """The crates and files of a workspace, from the texts of its files by their paths."""

    def __init__(self, texts):
        self.crates = read_crates(texts)
        self.by_name = {crate.name.replace("-", "_"): crate for crate in self.crates}
        self.files = {}  # by crate name and module path
        self.modules = set()  # the same keys, and those of folders without a file of their own
        for crate in self.crates:
            if crate.root in texts:
                self.read_files(crate, texts)

    def read_files(self, crate, texts):
        folder = crate.root.rpartition("/")[0]
        others = tuple(f"{other.folder}/" for other in self.crates if other.folder.startswith(folder + "/"))
        tests = set()
        found = {}
        for path, text in texts.items():
            if not path.endswith(".rs") or not path.startswith(folder + "/") or path.startswith(others):
                continue
            module = () if path == crate.root else module_path(path[len(folder) + 1 :])
            found[module] = File(Module(crate, module, path), text)
            tests.update(module + (name,) for name in found[module].test_modules)
        for module, file in found.items():
            if not any(module[: len(test)] == test for test in tests):
                self.files[crate.name, module] = file
                self.modules.update((crate.name, module[:length]) for length in range(len(module) + 1))

    def place(self, crate, path):
        """The file that has the longest part of a path from the crate's root, and the rest of the path."""
        for length in range(len(path), -1, -1):
            if file := self.files.get((crate.name, path[:length])):
                return file, path[length:]
        return None, path

    def resolve(self, file, path, scope, seen=()):
        """The file that defines what a path names; None if it is none of the workspace."""
        crate, first = file.module.crate, path[0]
        if first in ("crate", "$crate"):
            return self.follow(crate, path[1:], seen)
        if first in ("self", "super"):
            while path and path[0] in ("self", "super"):
                scope = scope[:-1] if path[0] == "super" else scope
                path = path[1:]
            return self.follow(crate, scope + path, seen)
        if (crate.name, scope + (first,)) in self.modules:
            return self.follow(crate, scope + path, seen)
        if first in file.names and (file, first) not in seen:
            named, named_scope = file.names[first]
            return self.resolve(file, named + path[1:], named_scope, seen + ((file, first),))
        if first in self.by_name and self.by_name[first] is not crate:
            return self.follow(self.by_name[first], path[1:], seen)
        return None

    def follow(self, crate, path, seen):
        """As `resolve`, for a path from the root of a crate."""
        file, rest = self.place(crate, path)
        if file is None or not rest or rest[0] == "*":
            return file
        inline = tuple(name for name, _, _ in file.inline)
        while len(rest) > 1 and rest[0] in inline:
            rest = rest[1:]
        name = rest[0]
        if name in file.names and (file, name) not in seen:
            named, scope = file.names[name]
            return self.resolve(file, named + rest[1:], scope, seen + ((file, name),)) or file
        if name not in file.defined:
            for glob, scope in file.globs:
                target = self.resolve(file, glob, scope, seen) if glob else None
                if target and target is not file and name in target.defined | set(target.names):
                    return self.follow(target.module.crate, target.module.path + rest, seen)
        return file

    def imports(self):
        """All imports between files."""
        found = {}
        for file in self.files.values():
            for path, scope, line in file.paths:
                target = self.resolve(file, path, scope)
                if target and target is not file:
                    key = (file.module.file, target.module.file)
                    found.setdefault(key, Import(*key, line, "::".join(path)))
        return sorted(found.values())


def module_path(path):
    """The module of a file below the crate's root: spmm/mod.rs and spmm.rs are (spmm)."""
    parts = path.removesuffix(".rs").split("/")
    return tuple(parts[:-1] if parts[-1] == "mod" else parts)


def read_crates(texts):
    """The crates that the workspace's manifest names."""
    workspace = tomllib.loads(texts["Cargo.toml"])
    folders = [".", *workspace["workspace"]["members"]]
    manifests = {}
    for folder in folders:
        manifest = tomllib.loads(texts["Cargo.toml" if folder == "." else f"{folder}/Cargo.toml"])
        if "package" in manifest:
            manifests[folder] = manifest
    inherited = workspace["workspace"].get("dependencies", {})
    libraries = {manifest["package"]["name"]: library_name(manifest) for manifest in manifests.values()}
    crates = []
    for folder, manifest in manifests.items():
        tables = [manifest, *manifest.get("target", {}).values()]
        wanted = set()
        for table in tables:
            for kind in ("dependencies", "build-dependencies"):
                for name, value in table.get(kind, {}).items():
                    value = value if isinstance(value, dict) else {}
                    value = inherited.get(name, {}) if value.get("workspace") else value
                    wanted.add(value.get("package", name) if isinstance(value, dict) else name)
        prefix = "" if folder == "." else folder + "/"
        root = manifest.get("lib", {}).get("path")
        root = root or next((at for at in ("src/lib.rs", "src/main.rs") if prefix + at in texts), "src/lib.rs")
        dependencies = sorted(libraries[package] for package in wanted & libraries.keys())
        crates.append(Crate(folder, library_name(manifest), dependencies, prefix + root))
    return crates


def library_name(manifest):
    """The name by which code names a crate; a package's own, if it names no library."""
    return manifest.get("lib", {}).get("name", manifest["package"]["name"])


def read_texts(root):
    """The manifests and sources of the workspace."""
    workspace = tomllib.loads((root / "Cargo.toml").read_text())
    texts = {"Cargo.toml": (root / "Cargo.toml").read_text()}
    folders = ["host", *workspace["workspace"]["members"]]
    for folder in folders:
        for path in [root / folder / "Cargo.toml", *sorted((root / folder).rglob("*.rs"))]:
            if path.is_file() and "target" not in path.relative_to(root).parts:
                texts[path.relative_to(root).as_posix()] = path.read_text()
    return texts
