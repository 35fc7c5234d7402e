//! The source of a kernel with counters beside each line.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::Sources;
use super::svg::{Align, MARGIN, Svg, WIDTH};
use crate::counters::display::table::grouped;
use crate::counters::{Counters, LaunchReport, LineCounters, ratio};

/// Lines of source around each counted line.
const CONTEXT: u32 = 2;
/// Maximum number of counted lines in a picture.
const MAX_COUNTED: usize = 40;
/// The height of a line.
const ROW: f64 = 17.0;
/// The width of a bar that stands for the whole launch.
const BAR: f64 = 60.0;
/// The right ends of the columns, and the left end of the source.
const SHARE: f64 = 118.0;
const NUMBER: f64 = 150.0;
const CODE: f64 = 158.0;
const EXECUTED: f64 = 586.0;
const SECTORS: f64 = 658.0;
const WAVEFRONTS: f64 = 732.0;
const LANES: f64 = WIDTH - MARGIN;
/// The part of the launch's sectors or wavefronts from which a line is marked.
const HOT: f64 = 0.1;

/// Draws the lines of source that a report counts, with a few lines around them and the heads of their functions. The
/// lines of a file that `sources` does not have are drawn without text.
#[must_use]
pub fn source_view(report: &LaunchReport, sources: &Sources) -> String {
    let mut svg = Svg::new(
        "Source view: where the kernel accesses memory",
        &report.kernel,
        "A long bar marks a line with much traffic: its part of all sectors (upper bar) or of all wavefronts \
         (lower bar). For 32 lanes with neighbouring 4-byte words, 4 sectors or 1 wavefront a request is the \
         least.",
    );
    svg.legend(&[
        ("c1", "part of the sectors (global memory)"),
        ("c4", "part of the wavefronts (shared memory)"),
        ("band", "line with 10 % or more"),
    ]);
    let total = Traffic::of(&report.total);
    let mut lines: Vec<&LineCounters> = report.lines.iter().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(Traffic::of(&line.counters).rank()));
    let left_out = lines.split_off(lines.len().min(MAX_COUNTED));
    let mut files: BTreeMap<&str, BTreeMap<u32, &Counters>> = BTreeMap::new();
    for line in lines {
        files
            .entry(&line.file)
            .or_default()
            .insert(line.line, &line.counters);
    }
    for (file, counted) in &files {
        head(&mut svg, file);
        if sources.text(file).is_none() {
            svg.note("The source was not read, so its lines have no text.");
        }
        draw_file(&mut svg, &counted_rows(file, counted, sources), total);
    }
    if !left_out.is_empty() {
        let executed = left_out
            .iter()
            .map(|line| Traffic::of(&line.counters).executed);
        svg.note(&format!(
            "{} more lines are not drawn. They execute {} requests and collective operations of {}.",
            left_out.len(),
            grouped(executed.sum()),
            grouped(total.executed)
        ));
    }
    svg.finish()
}

/// What a line or a launch executes.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    /// Requests and collective operations.
    executed: u64,
    global_requests: u64,
    sectors: u64,
    shared_requests: u64,
    wavefronts: u64,
}

impl Traffic {
    fn of(counters: &Counters) -> Self {
        let mut traffic = Self::default();
        for (_, global) in counters.global() {
            traffic.global_requests += global.requests;
            traffic.sectors += global.sectors;
        }
        for (_, shared) in counters.shared() {
            traffic.shared_requests += shared.requests;
            traffic.wavefronts += shared.wavefronts;
        }
        let collectives = counters.collectives().map(|(_, of)| of.executed);
        traffic.executed = traffic.global_requests
            + traffic.shared_requests
            + collectives.into_iter().sum::<u64>();
        traffic
    }

    /// The order in which lines are kept: those with the most traffic first.
    fn rank(&self) -> (u64, u64) {
        (self.sectors + self.wavefronts, self.executed)
    }
}

/// A line of a file in the picture.
struct Row<'a> {
    line: u32,
    text: &'a str,
    counters: Option<&'a Counters>,
}

/// The counted lines of a file, the lines around them, and the heads of their functions.
fn counted_rows<'a>(
    file: &str,
    counted: &BTreeMap<u32, &'a Counters>,
    sources: &'a Sources,
) -> Vec<Row<'a>> {
    let lines: Vec<&str> = sources
        .text(file)
        .map_or_else(Vec::new, |text| text.lines().collect());
    let mut wanted: BTreeSet<u32> = counted.keys().copied().collect();
    for &line in counted.keys() {
        let around = line.saturating_sub(CONTEXT).max(1)..=line.saturating_add(CONTEXT);
        wanted.extend(around.filter(|&line| line as usize <= lines.len()));
        wanted.extend(function_head(&lines, line));
    }
    let row = |line: u32| Row {
        line,
        text: (line as usize)
            .checked_sub(1)
            .and_then(|place| lines.get(place))
            .map_or("", |text| text.trim_end()),
        counters: counted.get(&line).copied(),
    };
    // A blank line is drawn between two other lines alone.
    let is_text = |line: u32| wanted.contains(&line) && !row(line).text.is_empty();
    let is_drawn = |line: u32| {
        let between = is_text(line.saturating_sub(1)) && is_text(line.saturating_add(1));
        is_text(line) || between || counted.contains_key(&line)
    };
    let lines = wanted.iter().copied();
    lines.filter(|&line| is_drawn(line)).map(row).collect()
}

/// The line on which the function around a line starts.
fn function_head(lines: &[&str], line: u32) -> Option<u32> {
    let indent = |text: &str| text.len() - text.trim_start().len();
    let place = (line as usize).checked_sub(1)?;
    let own = indent(lines.get(place)?);
    let is_head = |text: &str| {
        let code = text.trim_start();
        let is_function = code.starts_with("fn ") || code.contains(" fn ");
        is_function && !code.starts_with("//") && indent(text) < own
    };
    let found = lines[..place].iter().rposition(|text| is_head(text))?;
    u32::try_from(found + 1).ok()
}

/// The name of a file, and the heads of the columns.
fn head(svg: &mut Svg, file: &str) {
    svg.y += 14.0;
    for (right, first, second) in [
        (EXECUTED, "", "executed"),
        (SECTORS, "sectors", "per request"),
        (WAVEFRONTS, "wavefronts", "per request"),
        (LANES, "active", "lanes"),
    ] {
        svg.aligned(right, svg.y, "small", first, Align::End);
        svg.aligned(right, svg.y + 13.0, "small", second, Align::End);
    }
    svg.y += 13.0;
    let fits = ((EXECUTED - 60.0 - MARGIN) / 8.4) as usize;
    let characters = file.chars().count();
    let name: String = file.chars().skip(characters.saturating_sub(fits)).collect();
    svg.text(MARGIN, svg.y, "head", &name);
    svg.y += 7.0;
    svg.line([MARGIN, svg.y, WIDTH - MARGIN, svg.y], "grid");
    svg.y += 2.0;
}

fn draw_file(svg: &mut Svg, rows: &[Row<'_>], total: Traffic) {
    let texts = || {
        rows.iter()
            .map(|row| row.text)
            .filter(|text| !text.is_empty())
    };
    let indent = texts()
        .map(|text| text.len() - text.trim_start().len())
        .min();
    let indent = indent.unwrap_or(0);
    let mut before = rows.first().map_or(0, |row| row.line.saturating_sub(1));
    for row in rows {
        if row.line > before + 1 {
            let skipped = row.line - before - 1;
            let plural = if skipped == 1 { "" } else { "s" };
            svg.text(
                CODE,
                svg.y + 12.0,
                "small",
                &format!("⋯ {skipped} line{plural}"),
            );
            svg.y += ROW;
        }
        before = row.line;
        draw_row(svg, row, indent, total);
    }
    svg.y += 6.0;
}

fn draw_row(svg: &mut Svg, row: &Row<'_>, indent: usize, total: Traffic) {
    let base = svg.y + 12.0;
    let traffic = row.counters.map(Traffic::of);
    let text = row.text.get(indent..).unwrap_or("");
    if let Some(traffic) = traffic {
        let sectors = ratio(traffic.sectors, total.sectors);
        let wavefronts = ratio(traffic.wavefronts, total.wavefronts);
        if sectors.max(wavefronts) >= HOT {
            svg.rect(
                [CODE - 4.0, svg.y, WIDTH - MARGIN - CODE + 4.0, ROW],
                "band",
            );
        }
        svg.rect([MARGIN, svg.y + 2.0, BAR, ROW - 4.0], "slot");
        svg.rect([MARGIN, svg.y + 2.0, BAR * sectors, 6.5], "c1");
        svg.rect([MARGIN, svg.y + 8.5, BAR * wavefronts, 6.5], "c4");
        let share = sectors.max(wavefronts);
        if share >= 0.005 {
            let share = format!("{:.0} %", 100.0 * share);
            svg.aligned(SHARE, base, "small", &share, Align::End);
        }
    }
    let class = if traffic.is_some() { "lit" } else { "line" };
    svg.aligned(NUMBER, base, class, &row.line.to_string(), Align::End);
    let class = if traffic.is_some() { "code" } else { "line" };
    svg.code(CODE, base, class, text, EXECUTED - 60.0 - CODE);
    if let (Some(traffic), Some(counters)) = (traffic, row.counters) {
        let executed = grouped(traffic.executed);
        svg.aligned(EXECUTED, base, "code", &executed, Align::End);
        if traffic.global_requests > 0 {
            let sectors = format!("{:.1}", ratio(traffic.sectors, traffic.global_requests));
            svg.aligned(SECTORS, base, "code", &sectors, Align::End);
        }
        if traffic.shared_requests > 0 {
            let wavefronts = format!("{:.1}", ratio(traffic.wavefronts, traffic.shared_requests));
            svg.aligned(WAVEFRONTS, base, "code", &wavefronts, Align::End);
        }
        let lanes = format!("{:.1}", counters.lanes_per_instruction());
        svg.aligned(LANES, base, "code", &lanes, Align::End);
    }
    svg.y += ROW;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::GlobalCounters;

    const TEXT: &str = "\
fn other() {}

fn kernel() {
    let a = 1;
    let b = 2;
    let c = 3;
    if a < b {
        load();
    }
}
";

    fn report(lines: impl IntoIterator<Item = u32>) -> LaunchReport {
        let counters = Counters {
            global_loads: GlobalCounters {
                requests: 2,
                sectors: 8,
                lanes: 64,
                bytes: 256,
            },
            ..Counters::default()
        };
        let lines = lines.into_iter().map(|line| LineCounters {
            file: "a/kernel.rs".to_owned(),
            line,
            counters,
        });
        let mut report = LaunchReport {
            lines: lines.collect(),
            ..LaunchReport::default()
        };
        report
            .lines
            .iter()
            .for_each(|line| report.total += line.counters);
        report
    }

    #[test]
    fn counted_lines_have_their_function_and_the_lines_around_them() {
        let mut sources = Sources::default();
        sources.insert("a/kernel.rs", TEXT);
        let report = report([8]);
        let counted = BTreeMap::from([(8, &report.lines[0].counters)]);
        let rows = counted_rows("a/kernel.rs", &counted, &sources);
        let numbers: Vec<u32> = rows.iter().map(|row| row.line).collect();
        assert_eq!(numbers, [3, 6, 7, 8, 9, 10]);
        let svg = source_view(&report, &sources);
        assert!(svg.contains("⋯ 2 lines") && svg.contains(">load();<") && svg.contains(">100 %<"));
    }

    #[test]
    fn a_file_that_was_not_read_has_line_numbers() {
        let svg = source_view(&report([8]), &Sources::default());
        assert!(svg.contains(">8<") && svg.contains("was not read"), "{svg}");
    }

    #[test]
    fn a_line_beyond_the_end_of_its_file_is_drawn_without_text() {
        let mut sources = Sources::default();
        sources.insert("a/kernel.rs", "one line");
        assert!(source_view(&report([8]), &sources).contains(">8<"));
    }

    #[test]
    fn lines_that_are_left_out_are_counted() {
        let svg = source_view(&report(1..=50), &Sources::default());
        assert!(
            svg.contains("10 more lines are not drawn. They execute 20 requests"),
            "{svg}"
        );
        assert!(svg.contains("of 100."), "{svg}");
    }
}
