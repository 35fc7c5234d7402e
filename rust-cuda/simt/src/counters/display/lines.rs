//! The counters of each line of source as plain text.

use std::fmt;

use super::table::{Table, grouped, percent};
use crate::counters::report::{LaunchReport, LineCounters};

/// A table of the counters of each line, a row for each kind of request. See [`LaunchReport::by_line`].
#[derive(Clone, Copy, Debug)]
pub struct ByLine<'a> {
    lines: &'a [LineCounters],
}

impl LaunchReport {
    /// A table of the counters of each line of source.
    #[must_use]
    pub fn by_line(&self) -> ByLine<'_> {
        ByLine { lines: &self.lines }
    }
}

impl fmt::Display for ByLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(
            2,
            &[
                "line",
                "operation",
                "executed",
                "active lanes",
                "sectors",
                "bytes used",
                "wavefronts",
                "bank conflicts",
            ],
        );
        for line in self.lines {
            for cells in rows(line) {
                table.row(
                    [format!("{}:{}", line.file, line.line)]
                        .into_iter()
                        .chain(cells),
                );
            }
        }
        table.fmt(f)
    }
}

/// A row for each kind of request that the line executes, without the line.
fn rows(line: &LineCounters) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let lanes = |lanes: f64| format!("{lanes:.1}");
    for (name, counters) in line.counters.global() {
        if counters.requests > 0 {
            rows.push(vec![
                format!("global {name}"),
                grouped(counters.requests),
                lanes(counters.lanes_per_request()),
                grouped(counters.sectors),
                percent(counters.bytes_used()),
            ]);
        }
    }
    for (name, counters) in line.counters.shared() {
        if counters.requests > 0 {
            rows.push(vec![
                format!("shared {name}"),
                grouped(counters.requests),
                lanes(counters.lanes_per_request()),
                String::new(),
                String::new(),
                grouped(counters.wavefronts),
                grouped(counters.bank_conflicts),
            ]);
        }
    }
    for (name, counters) in line.counters.collectives() {
        if counters.executed > 0 {
            rows.push(vec![
                name.to_owned(),
                grouped(counters.executed),
                lanes(counters.lanes_per_instruction()),
            ]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::sample::sample;

    #[test]
    fn each_line_has_a_row_for_each_kind_of_request() {
        let expected = "\
line       operation          executed  active lanes  sectors  bytes used  wavefronts  bank conflicts
add.rs:3   global loads          1,000          32.0   32,000        12 %
add.rs:3   shared loads            200          32.0                              800             600
add.rs:11  global reductions       100          16.0      400        16 %
add.rs:11  block barriers           40          32.0
";
        assert_eq!(sample().by_line().to_string(), expected);
    }
}
