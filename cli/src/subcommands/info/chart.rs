//! Histograms in the terminal.

use super::statistics::Bin;
use crate::output::LABEL;
use crate::terminal::{bar, count, width};

/// Columns for the lengths, and for the counts, of a line.
const LENGTHS: usize = 17;
const COUNTS: usize = 13;

/// A line for each bin.
pub fn histogram(bins: &[Bin]) -> Vec<String> {
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    let room = width()
        .saturating_sub(LABEL + 1 + LENGTHS + COUNTS)
        .clamp(4, 60);
    let line = |bin: &Bin| {
        let lengths = match bin.least == bin.most {
            true => count(bin.least),
            false => format!("{} to {}", count(bin.least), count(bin.most)),
        };
        let bar = bar(bin.count as f64 / most.max(1) as f64, room);
        let line = format!("{lengths:<LENGTHS$}{:>11}  {bar}", count(bin.count));
        line.trim_end().to_owned()
    };
    bins.iter().map(line).collect()
}
