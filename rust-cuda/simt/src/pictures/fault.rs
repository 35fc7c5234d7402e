//! A fault between two threads: a race, or a barrier that one of them does not reach.

use super::sources::{Sources, place};
use super::svg::{Align, MARGIN, Svg, WIDTH, number};
use super::two_threads::{Conflict, Order, Side, TwoThreads};
use crate::fault::Fault;
use crate::limits::WARP_SIZE;

/// The width of a thread's panel, and the left end of the right one.
const PANEL: f64 = 366.0;
const RIGHT: f64 = WIDTH - MARGIN - PANEL;
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
            "Time runs down: the thread on the left came first this time. Nothing orders its access before that of the \
             thread on the right, so a GPU may run them in either order or at once. Green is what would order them."
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

/// The panel of a thread. Returns the height of its line's middle, and of the panel's end.
fn panel(svg: &mut Svg, left: f64, top: f64, side: &Side, sources: &Sources) -> (f64, f64) {
    let lines: Vec<(u32, &str)> = match &side.location {
        Some(location) => {
            let around = location.line.saturating_sub(CONTEXT).max(1)
                ..=location.line.saturating_add(CONTEXT);
            let text = |line| sources.line(&location.file, line).map(|text| (line, text));
            around.filter_map(text).collect()
        }
        None => Vec::new(),
    };
    let height = HEAD + ROW * lines.len() as f64 + 8.0;
    svg.rect([left, top, PANEL, height], "slot");
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
    let mut middle = top + 33.0;
    for (place, (number, text)) in lines.iter().enumerate() {
        let y = top + HEAD + ROW * place as f64;
        let own = side
            .location
            .as_ref()
            .is_some_and(|location| location.line == *number);
        if own {
            svg.rect([left + 1.0, y, PANEL - 2.0, ROW], "band");
            middle = y + ROW / 2.0;
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
        svg.code(left + 50.0, y + 12.0, class, text, PANEL - 58.0);
    }
    (middle, top + height)
}

/// Two accesses to a word, the first one above the second one, and what would order them in between.
fn race(svg: &mut Svg, scene: &TwoThreads, word: &str, order: &Order, sources: &Sources) {
    let top = svg.y;
    let (line, end) = panel(svg, MARGIN, top, &scene.other, sources);
    let (name, rest) = word.split_once(" (").unwrap_or((word, ""));
    let (center, box_top) = (RIGHT + PANEL / 2.0, line - 22.0);
    svg.rect([RIGHT + 40.0, box_top, PANEL - 80.0, 44.0], "c0");
    svg.aligned(center, box_top + 19.0, "in", name, Align::Middle);
    svg.aligned(
        center,
        box_top + 35.0,
        "in",
        rest.trim_end_matches(')'),
        Align::Middle,
    );
    arrow(svg, [MARGIN + PANEL, line], [RIGHT + 38.0, line]);
    let end = end.max(box_top + 44.0);
    let middle = end + 30.0;
    let second = end + 58.0;
    svg.y = middle;
    let (line, second_end) = panel(svg, RIGHT, second, &scene.own, sources);
    let _ = line;
    arrow(svg, [center, second], [center, box_top + 46.0]);
    match order {
        Order::Barrier(name) => {
            svg.line([MARGIN, middle, WIDTH - MARGIN, middle], "cure");
            svg.text(
                MARGIN,
                middle - 7.0,
                "note curetext",
                &format!("missing: {name}"),
            );
        }
        Order::HandOff(first, then) => {
            svg.text(MARGIN, middle + 4.0, "note curetext", first);
            svg.path(
                &format!(
                    "M{} {}V{}H{}",
                    number(MARGIN + 60.0),
                    number(middle + 12.0),
                    number(second + 40.0),
                    number(RIGHT - 8.0)
                ),
                "cure",
            );
            svg.text(MARGIN + 72.0, second + 32.0, "note curetext", then);
        }
    }
    svg.y = second_end;
}

/// A thread that waits and one that does not arrive, side by side, and the operation below them.
fn absence(
    svg: &mut Svg,
    scene: &TwoThreads,
    operation: &str,
    mask: Option<(u32, u32)>,
    sources: &Sources,
) {
    let top = svg.y;
    let (_, left_end) = panel(svg, MARGIN, top, &scene.own, sources);
    let (_, right_end) = panel(svg, RIGHT, top, &scene.other, sources);
    let bar = left_end.max(right_end) + 46.0;
    svg.rect([MARGIN, bar, WIDTH - 2.0 * MARGIN, 5.0], "plain");
    svg.aligned(WIDTH / 2.0, bar + 20.0, "note", operation, Align::Middle);
    let (left, right) = (MARGIN + PANEL / 2.0, RIGHT + PANEL / 2.0);
    svg.path(
        &format!(
            "M{} {}V{}",
            number(left),
            number(left_end),
            number(bar - 1.0)
        ),
        "axis",
    );
    svg.text(left + 8.0, bar - 10.0, "note", "waits here");
    // The other thread's way stops half-way.
    let stop = right_end + (bar - right_end) / 2.0;
    svg.line([right, right_end, right, stop], "arrow");
    let cross = format!(
        "M{} {}l12 12m0-12l-12 12",
        number(right - 6.0),
        number(stop)
    );
    svg.path(&cross, "arrow");
    svg.text(right + 14.0, stop + 10.0, "note warn", "does not arrive");
    svg.y = bar + 24.0;
    if let Some((mask, absent)) = mask {
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
