//! Two reports side by side as plain text.

use std::fmt;

use super::table::{Table, grouped};
use super::{mean_and_most, table};
use crate::counters::report::{BlockWork, LaunchReport};

/// A table of two reports, and of the ratios of their counters. See [`LaunchReport::compare`].
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    before: &'a LaunchReport,
    after: &'a LaunchReport,
}

impl LaunchReport {
    /// A table of this report and another one, with the other's counters divided by this one's.
    #[must_use]
    pub fn compare<'a>(&'a self, other: &'a Self) -> Comparison<'a> {
        Comparison {
            before: self,
            after: other,
        }
    }
}

/// A quantity of a report.
struct Quantity {
    name: String,
    /// The value; `None` if the report does not have it.
    value: Option<f64>,
    text: String,
}

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut first, mut second) = (self.before.kernel.clone(), self.after.kernel.clone());
        if first == second {
            first += ", before";
            second += ", after";
        }
        let mut table = Table::new(1, &["", &first, &second, "ratio"]);
        for (before, after) in quantities(self.before)
            .into_iter()
            .zip(quantities(self.after))
        {
            let (a, b) = (before.value.unwrap_or(0.0), after.value.unwrap_or(0.0));
            if a != 0.0 || b != 0.0 {
                let both = before.value.is_some() && after.value.is_some() && a != 0.0;
                let ratio = if both {
                    format!("{:.2}", b / a)
                } else {
                    String::new()
                };
                table.row([before.name, before.text, after.text, ratio]);
            }
        }
        table.fmt(f)
    }
}

/// All quantities that are compared; the same for each report, in the same order.
fn quantities(report: &LaunchReport) -> Vec<Quantity> {
    let mut found = Vec::new();
    for (name, counters) in report.total.global() {
        found.push(count(format!("global {name}: requests"), counters.requests));
        found.push(count(format!("global {name}: sectors"), counters.sectors));
        let each = counters.sectors_per_request();
        found.push(mean(format!("global {name}: sectors a request"), each));
        let used = 100.0 * counters.bytes_used();
        found.push(mean(format!("global {name}: % of bytes used"), used));
    }
    for (name, counters) in report.total.shared() {
        found.push(count(format!("shared {name}: requests"), counters.requests));
        found.push(count(
            format!("shared {name}: wavefronts"),
            counters.wavefronts,
        ));
        found.push(count(
            format!("shared {name}: bank conflicts"),
            counters.bank_conflicts,
        ));
    }
    for (name, counters) in report.total.collectives() {
        found.push(count(name.to_owned(), counters.executed));
    }
    let lanes = report.total.lanes_per_instruction();
    found.push(mean("active lanes".to_owned(), lanes));
    let blocks: Vec<u64> = report.blocks.iter().map(BlockWork::requests).collect();
    let (each, most) = mean_and_most(&blocks);
    found.push(count("blocks".to_owned(), blocks.len() as u64));
    found.push(mean("requests of a block: mean".to_owned(), each));
    found.push(count("requests of a block: maximum".to_owned(), most));
    found.push(count(
        "atomic operations of lanes".to_owned(),
        report.total.atomic_operations(),
    ));
    found.push(count(
        "  on a word of an earlier lane".to_owned(),
        report.total.atomic_repeats,
    ));
    let word = report.contended.first().map_or(0, |word| word.operations);
    found.push(count("  on the most contended word".to_owned(), word));
    let warps = report.occupancy.map(|occupancy| u64::from(occupancy.warps));
    found.push(optional(
        "warps that a multiprocessor holds",
        warps,
        grouped,
    ));
    let bytes = |name, bytes: Option<u64>| optional(name, bytes, table::bytes);
    let memory = report.memory;
    found.push(bytes(
        "model: read from L2",
        memory.map(|memory| memory.l2_read_bytes),
    ));
    found.push(bytes(
        "model: read from memory",
        memory.map(|memory| memory.memory_read_bytes),
    ));
    found
}

fn count(name: String, value: u64) -> Quantity {
    Quantity {
        name,
        value: Some(value as f64),
        text: grouped(value),
    }
}

/// A mean, which is zero if there is nothing to count.
fn mean(name: String, value: f64) -> Quantity {
    let value = (value != 0.0).then_some(value);
    Quantity {
        name,
        value,
        text: value.map_or_else(String::new, |value| format!("{value:.1}")),
    }
}

fn optional(name: &str, value: Option<u64>, text: fn(u64) -> String) -> Quantity {
    Quantity {
        name: name.to_owned(),
        value: value.map(|value| value as f64),
        text: value.map_or_else(|| "not known".to_owned(), text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::sample;
    use super::*;
    use crate::counters::report::{Counters, GlobalCounters};

    #[test]
    fn quantities_that_one_report_has_are_compared() {
        let loads = GlobalCounters {
            requests: 500,
            sectors: 2000,
            lanes: 16_000,
            bytes: 64_000,
        };
        let after = LaunchReport {
            kernel: "better".to_owned(),
            total: Counters {
                global_loads: loads,
                ..Counters::default()
            },
            ..LaunchReport::default()
        };
        let expected = "                                          add     better  ratio
global loads: requests                  1,000        500   0.50
global loads: sectors                  32,000      2,000   0.06
global loads: sectors a request          32.0        4.0   0.12
global loads: % of bytes used            12.5      100.0   8.00
global reductions: requests               100          0   0.00
global reductions: sectors                400          0   0.00
global reductions: sectors a request      4.0
global reductions: % of bytes used       16.0
shared loads: requests                    200          0   0.00
shared loads: wavefronts                  800          0   0.00
shared loads: bank conflicts              600          0   0.00
block barriers                             40          0   0.00
active lanes                             30.8       32.0   1.04
blocks                                      2          0   0.00
requests of a block: mean               670.0
requests of a block: maximum            1,300          0   0.00
atomic operations of lanes              1,600          0   0.00
  on a word of an earlier lane            400          0   0.00
  on the most contended word              900          0   0.00
warps that a multiprocessor holds          16  not known
model: read from L2                    1.0 MB  not known
model: read from memory               24.0 kB  not known
";
        assert_eq!(sample().compare(&after).to_string(), expected);
    }

    #[test]
    fn reports_of_one_kernel_are_told_apart() {
        let report = sample();
        let text = report.compare(&report).to_string();
        let heading = text.lines().next().unwrap_or_default();
        assert!(heading.contains("add, before  add, after"), "{heading}");
        assert!(
            text.lines().skip(1).all(|line| line.ends_with("1.00")),
            "{text}"
        );
    }
}
