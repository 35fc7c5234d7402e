//! The load balance of a launch: the work of each block, and a model of how blocks follow each other.

use std::cmp::Reverse;

use super::schedule::Schedule;
use super::sources::counted;
use super::svg::{Align, MARGIN, Svg, WIDTH, number};
use crate::counters::display::table::grouped;
use crate::counters::{Hardware, LaunchReport};

/// The width and the height of the two upper panels, and the gap between them.
const PANEL: f64 = 356.0;
const HEIGHT: f64 = 130.0;
const GAP: f64 = WIDTH - 2.0 * (MARGIN + PANEL);
/// The height of the lower panel.
const LOWER: f64 = 100.0;
/// The least width of a column.
const COLUMN: f64 = 2.0;

/// Draws the work of the blocks of a launch, sorted and in launch order, and how the blocks follow each other on
/// `hardware` as a model says.
///
/// The work of a block is its number of requests to memory and collective operations, for all warps together.
#[must_use]
pub fn load_balance(report: &LaunchReport, hardware: &Hardware) -> String {
    let mut svg = Svg::new(
        "Load balance: the work of each block",
        &report.kernel,
        "Each column is a block, and its height is the block's work: the requests to memory and collective \
         operations of all its warps. Equal columns are good; the GPU waits at the end for a high one.",
    );
    let work: Vec<u64> = report.blocks.iter().map(|block| block.requests()).collect();
    let most = work.iter().copied().max().unwrap_or(0);
    if most == 0 {
        svg.note("No block executes a request or a collective operation.");
        return svg.finish();
    }
    svg.legend(&[
        ("good", "work of a block"),
        ("pale", "largest of the blocks that share a column"),
        ("tip", "mean"),
    ]);
    let mean = work.iter().sum::<u64>() as f64 / work.len() as f64;
    let mut sorted = work.clone();
    sorted.sort_unstable_by_key(|&work| Reverse(work));
    svg.y += 22.0;
    panel(
        &mut svg,
        MARGIN,
        "sorted, the largest block first",
        &sorted,
        mean,
    );
    panel(
        &mut svg,
        MARGIN + PANEL + GAP,
        "in launch order",
        &work,
        mean,
    );
    svg.y += HEIGHT + 26.0;
    svg.note(&format!(
        "{}; the largest one has {}, {:.1} times the mean of {:.1}.",
        counted(work.len() as u64, "block"),
        counted(most, "request"),
        most as f64 / mean,
        mean
    ));
    draw_schedule(&mut svg, &Schedule::of(report, hardware), hardware);
    svg.finish()
}

/// A panel with a column for each block, or for some neighbouring blocks if there are too many.
fn panel(svg: &mut Svg, left: f64, title: &str, work: &[u64], mean: f64) {
    let top = svg.y + 8.0;
    let base = top + HEIGHT;
    svg.text(left, svg.y, "head", title);
    let most = work.iter().copied().max().unwrap_or(1).max(1);
    svg.rect([left, top, PANEL, HEIGHT], "slot");
    let columns = work.len().min((PANEL / COLUMN) as usize);
    let (mut pale, mut solid) = (String::new(), String::new());
    for column in 0..columns {
        let of_column = &work[column * work.len() / columns..(column + 1) * work.len() / columns];
        let x = PANEL * column as f64 / columns as f64;
        let width = PANEL / columns as f64;
        // Columns that are wide enough have gaps.
        let width = if width >= 4.0 { width - 1.0 } else { width };
        let bar = |path: &mut String, work: f64| {
            let height = HEIGHT * work / most as f64;
            *path += &format!(
                "M{} {}v-{}h{}v{}z",
                number(left + x),
                number(base),
                number(height),
                number(width),
                number(height)
            );
        };
        let largest = of_column.iter().copied().max().unwrap_or(0);
        let its_mean = of_column.iter().sum::<u64>() as f64 / of_column.len() as f64;
        if of_column.len() > 1 {
            bar(&mut pale, largest as f64);
        }
        bar(&mut solid, its_mean);
    }
    if !pale.is_empty() {
        svg.path(&pale, "pale");
    }
    svg.path(&solid, "good");
    let height = base - HEIGHT * mean / most as f64;
    for class in ["halo", "mean"] {
        svg.line([left, height, left + PANEL, height], class);
    }
    svg.line([left, base, left + PANEL, base], "axis");
    let scale = format!("0 to {}", counted(most, "request"));
    svg.aligned(left + PANEL, svg.y, "small", &scale, Align::End);
    let blocks = match work.len() - columns {
        0 => "a column is a block".to_owned(),
        _ => format!(
            "a column is {:.1} blocks",
            work.len() as f64 / columns as f64
        ),
    };
    svg.text(left, base + 14.0, "small", &blocks);
}

/// The slots that are busy over time, and what follows.
fn draw_schedule(svg: &mut Svg, schedule: &Schedule, hardware: &Hardware) {
    svg.y += 14.0;
    svg.text(MARGIN, svg.y, "head", "Model: busy slots over time");
    svg.aligned(
        WIDTH - MARGIN,
        svg.y,
        "small",
        &format!(
            "at most {} of {} slots",
            grouped(schedule.most_busy()),
            grouped(schedule.slots)
        ),
        Align::End,
    );
    let (top, width) = (svg.y + 8.0, WIDTH - 2.0 * MARGIN);
    let base = top + LOWER;
    svg.rect([MARGIN, top, width, LOWER], "slot");
    let of_time = |time: u64| MARGIN + width * time as f64 / schedule.end.max(1) as f64;
    let alone = of_time(schedule.end - schedule.alone);
    if schedule.alone > 0 {
        svg.rect([alone, top, MARGIN + width - alone, LOWER], "band");
    }
    let mut path = format!("M{} {}", number(MARGIN), number(base));
    for (time, busy) in schedule.busy((width / COLUMN) as u64) {
        let height = LOWER * busy as f64 / schedule.most_busy().max(1) as f64;
        path += &format!("L{} {}", number(of_time(time)), number(base - height));
    }
    path += &format!("L{} {}z", number(MARGIN + width), number(base));
    svg.path(&path, "good");
    svg.line([MARGIN, base, MARGIN + width, base], "axis");
    svg.text(MARGIN, base + 14.0, "small", "start");
    let end = format!("end after {} steps", grouped(schedule.end));
    svg.aligned(MARGIN + width, base + 14.0, "small", &end, Align::End);
    svg.y = base + 18.0;
    let part = |time: f64| percent(time / schedule.end.max(1) as f64);
    let alone = match schedule.alone {
        0 => "No block runs alone at the end.".to_owned(),
        alone => format!(
            "The last block runs alone for {} of the time (the shaded part).",
            part(alone as f64)
        ),
    };
    let equal = if schedule.all_at_once() {
        "All blocks start at once, so the launch takes as long as its longest block; the mean block takes"
    } else {
        "With the same steps spread evenly over all slots, the launch would take"
    };
    svg.note(&format!(
        "{alone} {equal} {} of that time.",
        part(schedule.equal)
    ));
    let registers = if schedule.registers_known {
        ""
    } else {
        " The kernel's registers are not known, so the model lets them limit nothing."
    };
    svg.note(&format!(
        "The model: each of {} multiprocessors has slots for {} blocks. A free slot takes the next block in launch \
         order. A block takes one step for each request of its longest warp. Real requests take different \
         times.{registers}",
        hardware.multiprocessors, schedule.blocks_per_multiprocessor
    ));
}

/// A part of a whole in percent, with a digit after the point if it is small.
fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    let digits = usize::from(percent < 9.95);
    format!("{percent:.digits$} %")
}
