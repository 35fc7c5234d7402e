//! A fault between two threads: a race, or a barrier that one of them does not reach.

use super::sources::{Sources, place};
use super::svg::{Align, MARGIN, Svg, WIDTH, number};
use super::two_threads::{Conflict, Order, Side, TwoThreads};
use crate::fault::{Fault, SourceLocation};
use crate::limits::WARP_SIZE;

/// The width of a thread's panel, if both stand side by side, and in a race.
const BESIDE: f64 = 366.0;
const ABOVE: f64 = 480.0;
/// The width of the box of a word.
const WORD: f64 = 244.0;
/// Lines of source before and after the line of a thread.
const CONTEXT: u32 = 2;
/// The height of a line of source, and of what stands above the source.
const ROW: f64 = 16.0;
const HEAD: f64 = 46.0;

/// Draws a fault between two threads: a race on a word, or a barrier or a warp operation that a thread does not reach.
/// `None` for a fault of one thread, which its message describes.
#[must_use]
pub fn fault(fault: &Fault, sources: &Sources) -> Option<String> {
    let scene = TwoThreads::of(fault)?;
    let reading = match scene.conflict {
        Conflict::Word { .. } => {
            "Time runs down: the thread on the left came first this time. Nothing orders its access before that of \
             the thread on the right, so a GPU may run them in either order or at once. Green is what would order \
             them."
        }
        Conflict::Absence { .. } => {
            "The thread on the left waits for the thread on the right, which never arrives. On a GPU the result is \
             undefined; often the kernel hangs."
        }
    };
    let mut svg = Svg::new(&scene.title, &format!("kernel {}", fault.kernel), reading);
    svg.y += 10.0;
    match &scene.conflict {
        Conflict::Word { word, order } => race(&mut svg, &scene, word, order, sources),
        Conflict::Absence { operation, mask } => {
            absence(&mut svg, &scene, operation, *mask, sources);
        }
    }
    svg.y += 6.0;
    svg.note(scene.cure);
    Some(svg.finish())
}

/// The panel of a thread.
struct Panel {
    /// The middle of the thread's line.
    line: f64,
    /// The end of the panel.
    end: f64,
}

/// Draws the panel of a thread at a left end, with a top and a width.
fn panel(svg: &mut Svg, [left, top, width]: [f64; 3], side: &Side, sources: &Sources) -> Panel {
    let lines = side.location.as_ref();
    let lines = lines.map_or_else(Vec::new, |location| window(location, sources));
    let height = HEAD + ROW * lines.len() as f64 + 8.0;
    svg.rect([left, top, width, height], "slot");
    svg.text(left + 12.0, top + 20.0, "head", &side.thread);
    let does = match &side.location {
        Some(location) => format!("{} at {}", side.does, place(&location.file, location.line)),
        None => side.does.clone(),
    };
    svg.text(left + 12.0, top + 38.0, "note", &does);
    let texts = || {
        lines
            .iter()
            .map(|(_, text)| *text)
            .filter(|text| !text.is_empty())
    };
    let indent = texts()
        .map(|text| text.len() - text.trim_start().len())
        .min();
    let mut line = top + 33.0;
    for (place, (number, text)) in lines.iter().enumerate() {
        let y = top + HEAD + ROW * place as f64;
        let own = side
            .location
            .as_ref()
            .is_some_and(|location| location.line == *number);
        if own {
            svg.rect([left + 1.0, y, width - 2.0, ROW], "band");
            line = y + ROW / 2.0;
        }
        let class = if own { "lit" } else { "line" };
        svg.aligned(
            left + 40.0,
            y + 12.0,
            class,
            &number.to_string(),
            Align::End,
        );
        let text = text.get(indent.unwrap_or(0)..).unwrap_or("");
        let class = if own { "code" } else { "line" };
        svg.code(left + 50.0, y + 12.0, class, text, width - 58.0);
    }
    Panel {
        line,
        end: top + height,
    }
}

/// The lines around a location that are not blank at either end.
fn window<'a>(location: &SourceLocation, sources: &'a Sources) -> Vec<(u32, &'a str)> {
    let first = location.line.saturating_sub(CONTEXT).max(1);
    let around = first..=location.line.saturating_add(CONTEXT);
    let text = |line| sources.line(&location.file, line).map(|text| (line, text));
    let lines: Vec<_> = around.filter_map(text).collect();
    let is_blank = |(_, text): &&(u32, &str)| text.trim().is_empty();
    let end = lines.len() - lines.iter().rev().take_while(is_blank).count();
    let start = lines.iter().take_while(is_blank).count().min(end);
    lines[start..end].to_vec()
}

/// Two accesses to a word, the first one above the second one, and what would order them in between.
fn race(svg: &mut Svg, scene: &TwoThreads, word: &str, order: &Order, sources: &Sources) {
    let first = panel(svg, [MARGIN, svg.y, ABOVE], &scene.other, sources);
    let (name, rest) = word.split_once(" (").unwrap_or((word, ""));
    let (left, top) = (WIDTH - MARGIN - WORD, first.line - 22.0);
    let center = left + WORD / 2.0;
    svg.rect([left, top, WORD, 44.0], "c0");
    svg.aligned(center, top + 19.0, "in", name, Align::Middle);
    let rest = rest.trim_end_matches(')');
    svg.aligned(center, top + 35.0, "in", rest, Align::Middle);
    arrow(svg, [MARGIN + ABOVE, first.line], [left - 2.0, first.line]);
    let gap = match order {
        Order::Barrier(_) => 58.0,
        Order::HandOff(..) => 76.0,
    };
    let from = first.end.max(top + 44.0);
    let until = from + gap;
    let right = WIDTH - MARGIN - ABOVE;
    let second = panel(svg, [right, until, ABOVE], &scene.own, sources);
    arrow(svg, [center, until], [center, top + 46.0]);
    match order {
        Order::Barrier(name) => {
            let middle = from + 34.0;
            svg.line([MARGIN, middle, WIDTH - MARGIN, middle], "cure");
            svg.text(
                MARGIN,
                middle - 7.0,
                "note curetext",
                &format!("missing: {name}"),
            );
        }
        Order::HandOff(does, then) => {
            let (down, across) = (MARGIN + 20.0, right + 20.0);
            let path = format!(
                "M{} {}V{}H{}V{}",
                number(down),
                number(first.end),
                number(from + 36.0),
                number(across),
                number(until)
            );
            svg.path(&path, "cure");
            svg.text(down + 12.0, from + 24.0, "note curetext", does);
            svg.text(across + 12.0, from + 60.0, "note curetext", then);
        }
    }
    svg.y = second.end;
}

/// A thread that waits and one that does not arrive, side by side, and the operation below them.
fn absence(
    svg: &mut Svg,
    scene: &TwoThreads,
    operation: &str,
    mask: Option<(u32, u32)>,
    sources: &Sources,
) {
    let (top, right) = (svg.y, WIDTH - MARGIN - BESIDE);
    let waits = panel(svg, [MARGIN, top, BESIDE], &scene.own, sources).end;
    let absent = panel(svg, [right, top, BESIDE], &scene.other, sources).end;
    let bar = waits.max(absent) + 46.0;
    svg.rect([MARGIN, bar, WIDTH - 2.0 * MARGIN, 5.0], "plain");
    svg.aligned(WIDTH / 2.0, bar + 21.0, "head", operation, Align::Middle);
    let (left, right) = (MARGIN + BESIDE / 2.0, right + BESIDE / 2.0);
    svg.line([left, waits, left, bar], "axis");
    svg.text(left + 8.0, bar - 10.0, "note", "waits here");
    // The other thread's way stops half-way.
    let stop = absent + (bar - absent) / 2.0;
    svg.line([right, absent, right, stop], "arrow");
    let cross = format!(
        "M{} {}l12 12m0-12l-12 12",
        number(right - 6.0),
        number(stop)
    );
    svg.path(&cross, "arrow");
    svg.text(right + 14.0, stop + 10.0, "note warn", "does not arrive");
    svg.y = bar + 28.0;
    if let Some((mask, absent)) = mask {
        svg.y += 8.0;
        lanes(svg, mask, absent);
    }
}

/// The lanes of a mask.
fn lanes(svg: &mut Svg, mask: u32, absent: u32) {
    svg.legend(&[
        ("good", "lane of the mask"),
        ("bad", "lane of the mask that does not arrive"),
        ("slot", "lane outside the mask"),
    ]);
    let width = (WIDTH - 2.0 * MARGIN) / f64::from(WARP_SIZE);
    for lane in 0..WARP_SIZE {
        let left = MARGIN + width * f64::from(lane);
        let (class, text) = match (lane == absent, mask >> lane & 1) {
            (true, _) => ("bad", "in"),
            (false, 1) => ("good", "in"),
            _ => ("slot", "small"),
        };
        svg.rect([left + 0.5, svg.y, width - 1.0, 18.0], class);
        let middle = left + width / 2.0;
        svg.aligned(middle, svg.y + 13.0, text, &lane.to_string(), Align::Middle);
    }
    svg.y += 26.0;
}

/// A straight arrow.
fn arrow(svg: &mut Svg, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
    svg.line([x1, y1, x2, y2], "arrow");
    let length = (x2 - x1).hypot(y2 - y1).max(1.0);
    let (dx, dy) = ((x2 - x1) / length, (y2 - y1) / length);
    let corner = |across: f64| {
        let (x, y) = (x2 - 9.0 * dx - across * dy, y2 - 9.0 * dy + across * dx);
        format!("{} {}", number(x), number(y))
    };
    let path = format!(
        "M{} {}L{}L{}z",
        number(x2),
        number(y2),
        corner(5.0),
        corner(-5.0)
    );
    svg.path(&path, "tip");
}
