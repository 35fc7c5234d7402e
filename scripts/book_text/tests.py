"""What scripts/book must find and make, in small examples."""

import json
import re
import tempfile
import unittest
from pathlib import Path

from . import commands, figures, links, listings, notes
from .fault import Fault

SOURCE = """//! A file.

/// Documentation.
#[kernel]
pub unsafe fn first(n: u32) {
    if n > 0 {
        second();
    }
}

const LENGTH: usize = 3;

mod inner {
    fn second() {}
}
"""


class Listings(unittest.TestCase):
    def test_an_item_has_its_attributes_and_ends_with_its_brace(self):
        self.assertEqual(
            listings.item(SOURCE, "first", "a.rs", nodoc=True),
            "#[kernel]\npub unsafe fn first(n: u32) {\n    if n > 0 {\n        second();\n    }\n}",
        )
        self.assertTrue(listings.item(SOURCE, "first", "a.rs", nodoc=False).startswith("/// Documentation."))
        self.assertEqual(listings.item(SOURCE, "LENGTH", "a.rs", nodoc=False), "const LENGTH: usize = 3;")
        self.assertEqual(listings.item(SOURCE, "second", "a.rs", nodoc=False), "fn second() {}")

    def test_an_item_that_is_not_there_is_a_fault(self):
        with self.assertRaises(Fault):
            listings.item(SOURCE, "third", "a.rs", nodoc=False)

    def test_a_stale_listing_is_replaced_and_a_current_one_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "a.rs").write_text(SOURCE)
            chapter = root / "chapter.md"
            text = "Before\n\n<!-- listing: a.rs#LENGTH -->\n\nAfter\n"
            once = listings.renewed(root, chapter, text)
            self.assertIn("```rust\nconst LENGTH: usize = 3;\n```\n\nAfter", once)
            self.assertEqual(listings.renewed(root, chapter, once), once)
            self.assertEqual(listings.renewed(root, chapter, once.replace("= 3", "= 4")), once)
            with self.assertRaises(Fault):
                listings.renewed(root, chapter, "<!-- listing: missing.rs -->\n")


class Commands(unittest.TestCase):
    def renewed(self, text):
        return commands.renewed(Path("."), Path("chapter.md"), text, update=False)

    def test_output_that_differs_is_replaced(self):
        text = "```console\n$ echo one; echo two\none\n```\n"
        self.assertEqual(self.renewed(text), "```console\n$ echo one; echo two\none\ntwo\n```\n")

    def test_times_and_cores_are_not_compared(self):
        text = "```console\n$ echo 'emulator (2 cores), 0.35 s'\nemulator (8 cores), 1.2 s\n```\n"
        self.assertEqual(self.renewed(text), text)

    def test_rounding_errors_are_not_compared(self):
        text = "```console\n$ echo 'verified, greatest error 1.2e-7'\nverified, greatest error 3e-8\n```\n"
        self.assertEqual(self.renewed(text), text)

    def test_a_wrong_exit_code_is_a_fault(self):
        with self.assertRaises(Fault):
            self.renewed("```console\n$ false\n```\n")
        with self.assertRaises(Fault):
            self.renewed("<!-- fails -->\n```console\n$ true\n```\n")
        text = "<!-- fails -->\n```console\n$ echo no; false\nno\n```\n"
        self.assertEqual(self.renewed(text), text)

    def test_only_lines_that_match_are_kept(self):
        text = "<!-- keep: [13] -->\n```console\n$ seq 4\n```\n"
        self.assertIn("$ seq 4\n1\n..\n3\n..\n```", self.renewed(text))

    def test_what_cargo_says_is_left_out(self):
        text = "```console\n$ echo '    Finished x'; echo; echo y\ny\n```\n"
        self.assertEqual(self.renewed(text), text)

    def test_a_picture_that_changes_is_a_fault_and_stays_until_it_is_updated(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            picture = root / "book/chapters/pictures/a.svg"
            picture.parent.mkdir(parents=True)
            text = "```console\n$ echo new > book/chapters/pictures/a.svg\n```\n"
            with self.assertRaises(Fault):
                commands.renewed(root, root / "c.md", text, update=False)
            self.assertFalse(picture.exists())
            picture.write_text("old\n")
            with self.assertRaises(Fault):
                commands.renewed(root, root / "c.md", text, update=False)
            self.assertEqual(picture.read_text(), "old\n")
            self.assertEqual(commands.renewed(root, root / "c.md", text, update=True), text)
            self.assertEqual(picture.read_text(), "new\n")
            self.assertEqual(commands.renewed(root, root / "c.md", text, update=False), text)

    def test_a_program_that_is_built_already_replaces_cargo(self):
        wanted = {
            "cargo run --release --example gcn": "bin/gcn",
            "cargo run --release --example book -- sum --lanes 4 -- x": "bin/book sum --lanes 4 -- x",
            "unzip -p a.zip b": "unzip -p a.zip b",
        }
        for command, replaced in wanted.items():
            self.assertEqual(commands.with_programs(command, Path("bin")), replaced)
            self.assertEqual(commands.with_programs(command, None), command)

    def test_numbers_may_differ_within_a_limit_and_nothing_else_may(self):
        def text(line):
            return f"<!-- within: 10 % -->\n```console\n$ echo 'rows_2   1,000  0.05'\n{line}\n```\n"

        same = text("rows_2     950  0.06")
        self.assertEqual(self.renewed(same), same)
        for other in ("rows_2  1,200  0.05", "rows_2  1,000  0.07", "lines_2  1,000  0.05", "rows_2  1,000  0.05 5"):
            self.assertEqual(self.renewed(text(other)), text("rows_2   1,000  0.05"))
        exact = same.partition("\n")[2]
        self.assertNotEqual(self.renewed(exact), exact)

    def test_a_block_without_a_command_is_a_fault(self):
        with self.assertRaises(Fault):
            self.renewed("```console\nhello\n```\n")


class Links(unittest.TestCase):
    def test_links_to_missing_files_and_headings_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            chapter = Path(folder) / "chapter.md"
            chapter.write_text("# One, *two*\n\n[a](missing.md) [b](#one-two) [c](#three) [d](https://no.where)\n")
            found = links.faults(chapter)
            self.assertEqual(len(found), 2, found)
            self.assertTrue(re.search("missing.md", found[0]) and re.search("#three", found[1]))


    def test_links_of_the_html_lead_to_files_of_the_repository(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            chapters, pages = root / "book/chapters", root / "target/book"
            for directory in (chapters, pages, root / "docs"):
                directory.mkdir(parents=True)
            for file in (chapters / "README.md", root / "docs/glossary.md", pages / "index.html"):
                file.write_text("")
            (pages / "1.html").write_text(
                '<a href="../../docs/glossary.html#warp"><a href="README.html"><a href="no.html"><a href="https://x.y">'
            )
            found = links.repair_html(chapters, pages)
            self.assertEqual(found, ["1.html: the link to no.html leads to no file"])
            text = (pages / "1.html").read_text()
            self.assertIn('"../../docs/glossary.md#warp"', text)
            self.assertIn('"index.html"', text)


class Figures(unittest.TestCase):
    def test_an_unknown_figure_is_a_fault(self):
        with self.assertRaises(Fault):
            figures.renewed(Path("."), Path("c.md"), "<!-- figure: unknown -->1<!-- end figure -->")

    def test_times_and_ratios_come_from_the_results(self):
        with tempfile.TemporaryDirectory() as folder:
            root = results = Path(folder)
            both = {"family": "spmm", "case": "a b", "device": "GPU", "date": "today"}
            lines = [
                json.dumps({**both, "rung": rung, "parent": parent, "ms": ms}) + "\n"
                for rung, parent, ms in [("slow", None, 0.5), ("fast", "slow", 0.2)]
            ]
            (results / "ladder.jsonl").write_text("".join(lines))
            self.assertEqual(figures.time(results, "spmm", "a b", "slow"), "500.0 us")
            self.assertEqual(figures.speedup(results, "spmm", "a b", "fast", "slow"), "2.5")
            (root / figures.RESULTS).mkdir(parents=True)
            (root / figures.RESULTS / "ladder.jsonl").write_text("".join(lines))
            mark = '<!-- figure: time spmm "a b" slow --><!-- end figure -->'
            self.assertIn("-->500.0 us<!--", figures.renewed(root, root / "c.md", f"It takes {mark}."))
            with self.assertRaises(Fault):
                figures.renewed(root, root / "c.md", f"It takes\n{mark}.")
            self.assertIn("| `fast` | `slow` | 200.0 us |", figures.ladder_cases(results, "spmm", "a b"))
            with self.assertRaises(Fault):
                figures.time(results, "spmm", "a b", "missing")


    def test_lines_of_the_model_are_those_of_its_table(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for directory in (root / figures.RESULTS, root / "docs"):
                directory.mkdir(parents=True)
            table = "| graph | 1 |\n| --- | ---: |\n| first | 2 |\n| second | 3 |\n"
            (root / figures.MODEL).write_text(f"<!-- begin: t -->\n{table}<!-- end: t -->\n")
            found = figures.model(root / figures.RESULTS, "t", "second")
            self.assertEqual(found, "\n| graph | 1 |\n| --- | ---: |\n| second | 3 |\n")
            for wrong in (("t", "third"), ("u", "first")):
                with self.assertRaises(Fault):
                    figures.model(root / figures.RESULTS, *wrong)


class Notes(unittest.TestCase):
    def test_a_stale_paragraph_is_replaced_and_a_missing_one_is_a_fault(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "notes.md").write_text("# Notes\n\n**First.** Found\none thing.\n\n**Second.** Another.\n")
            text = "Before\n\n<!-- note: notes.md#First -->\n> old\n\nAfter\n"
            once = notes.renewed(root, root / "chapter.md", text)
            self.assertIn("-->\n> **First.** Found one thing.\n> ([notes.md](notes.md))\n\nAfter", once)
            self.assertEqual(notes.renewed(root, root / "chapter.md", once), once)
            with self.assertRaises(Fault):
                notes.renewed(root, root / "chapter.md", "<!-- note: notes.md#Third -->\n")
