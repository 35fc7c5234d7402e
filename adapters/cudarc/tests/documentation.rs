//! The page on other libraries shows the example of this crate, which is a documentation test.

use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The lines of a fenced block that begins with `fence`, without indentation.
fn block(text: &str, fence: &str) -> Vec<String> {
    let after = text.lines().skip_while(|line| *line != fence).skip(1);
    let lines = after.take_while(|line| *line != "```");
    // Documentation hides lines behind `# `.
    let shown = lines.map(|line| line.strip_prefix("# ").unwrap_or(line).trim().to_owned());
    shown.filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_page_on_other_libraries_shows_the_example_that_is_compiled() {
    let read = |path| fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let page = read("docs/interoperate.md");
    let (_, section) = page
        .split_once("\n## cudarc\n")
        .expect("a section on cudarc");
    let library = read("adapters/cudarc/src/lib.rs");
    let documentation: Vec<_> = library
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let compiled = block(&documentation.join("\n"), "```no_run");
    assert!(compiled.len() > 10, "{compiled:?}");
    assert_eq!(block(section, "```rust,ignore"), compiled);
}
