//! The access map of a warp: which sectors of global memory its lanes touch, request by request.

use super::sources::{Sources, place};
use super::svg::{Align, CODE_CHARACTER, COLORS, MARGIN, Svg, WIDTH, cut, number};
use crate::counters::display::table::{bytes, grouped};
use crate::counters::{GlobalCounters, TracedRequest, WarpTrace};
use crate::limits::WARP_SIZE;
use crate::masks::bits;

/// The width of a lane.
const LANE: f64 = 12.0;
/// The right end of the sectors' column, and the left end of the lines' text.
const SECTORS: f64 = 456.0;
const TEXT: f64 = 470.0;
/// The height of a request to memory, and of a collective operation; the gap below each.
const HEIGHT: f64 = 26.0;
const COLLECTIVE_HEIGHT: f64 = 10.0;
const GAP: f64 = 8.0;
/// The thickness of the mark at a lane's address.
const MARK: f64 = 3.0;
/// Maximum number of rows in a picture.
const MAX_ROWS: usize = 32;
/// Bytes of a sector.
const SECTOR: u64 = 32;

/// Draws the requests of a traced warp of a kernel, in the order in which the warp executes them.
///
/// A row is a request, a column a lane. Lanes that touch the same sector of 32 bytes have the same colour, and one box
/// if they are neighbours. The mark in a lane's box shows how high its address is among those of the request.
#[must_use]
pub fn access_map(kernel: &str, trace: &WarpTrace, sources: &Sources) -> String {
    let mut svg = Svg::new(
        &format!("Access map of block {}, warp {}", trace.block, trace.warp),
        kernel,
        "Time runs down: each row is a request, each column a lane, a box is one sector (32 bytes of global \
         memory), and the mark in it is the lane's address, low or high. Few wide boxes are good.",
    );
    svg.legend(&[
        ("c0", "a sector"),
        ("c1", "another sector"),
        ("plain", "shared memory, or a collective operation"),
        ("slot", "idle lane"),
    ]);
    head(&mut svg);
    let mut left = &trace.requests[..];
    for _ in 0..MAX_ROWS {
        let Some((request, rest)) = left.split_first() else {
            break;
        };
        // A collective operation that is repeated has one row.
        let same = |other: &&TracedRequest| request.kind.is_collective() && *other == request;
        let repeats = rest.iter().take_while(same).count();
        row(&mut svg, request, repeats + 1, sources);
        left = &rest[repeats..];
    }
    let drawn = (trace.requests.len() - left.len()) as u64;
    let left_out = trace.executed.saturating_sub(drawn);
    if left_out > 0 {
        svg.note(&format!(
            "The warp executes {} more requests and collective operations, which are not drawn.",
            grouped(left_out)
        ));
    } else if drawn == 0 {
        svg.note("The warp executes no request and no collective operation.");
    }
    svg.finish()
}

/// The heads of the columns.
fn head(svg: &mut Svg) {
    svg.y += 16.0;
    for lane in [0, 8, 16, 24, 31] {
        let middle = left_of(lane) + LANE / 2.0;
        svg.aligned(middle, svg.y, "small", &lane.to_string(), Align::Middle);
    }
    svg.aligned(SECTORS, svg.y, "small", "sectors", Align::End);
    svg.text(TEXT, svg.y, "small", "line of source");
    svg.y += 6.0;
}

/// The left end of a lane.
fn left_of(lane: u32) -> f64 {
    MARGIN + LANE * f64::from(lane)
}

/// A row of the picture: a request that the warp executes `times` times.
fn row(svg: &mut Svg, request: &TracedRequest, times: usize, sources: &Sources) {
    let kind = request.kind;
    let height = match kind.is_collective() {
        true => COLLECTIVE_HEIGHT,
        false => HEIGHT,
    };
    svg.rect([MARGIN, svg.y, LANE * f64::from(WARP_SIZE), height], "slot");
    if kind.is_global() {
        global(svg, request);
    } else {
        let path: String = bits(request.lanes)
            .map(|lane| {
                let (x, y, width) = (number(left_of(lane) + 0.5), number(svg.y), LANE - 1.0);
                format!("M{x} {y}h{width}v{height}h-{width}z")
            })
            .collect();
        svg.path(&path, "plain");
    }
    if kind.is_shared() {
        let wavefronts = request.shared_counters().wavefronts.to_string();
        svg.aligned(SECTORS, svg.y + 11.0, "lit", &wavefronts, Align::End);
        svg.aligned(SECTORS, svg.y + 23.0, "small", "wavefr.", Align::End);
    }
    let mut what =
        place(&request.file, request.line) + " " + kind.name().trim_start_matches("global ");
    if kind.is_collective() {
        if times > 1 {
            what += &format!(", {times} times");
        }
        svg.text(TEXT, svg.y + 9.0, "small", &what);
    } else {
        what += &format!(", {}{}", bytes(request.bytes.into()), span(request));
        svg.text(TEXT, svg.y + 10.0, "small", &cut(&what, 50));
        let width = WIDTH - MARGIN - TEXT;
        let fits = (width / CODE_CHARACTER) as usize;
        let code = sources.statement(&request.file, request.line, fits);
        svg.code(TEXT, svg.y + 23.0, "code", &code, width);
    }
    svg.y += height + GAP;
}

/// How far the addresses of a request lie apart.
fn span(request: &TracedRequest) -> String {
    let addresses = || request.accesses().map(|(_, address)| address);
    match (addresses().min(), addresses().max()) {
        (Some(least), Some(most)) => {
            format!(", span {}", bytes(most - least + u64::from(request.bytes)))
        }
        _ => String::new(),
    }
}

/// The boxes of a request to global memory, the marks in them, and its sectors.
fn global(svg: &mut Svg, request: &TracedRequest) {
    let colors = colors(request);
    let mut next = 0;
    while next < colors.len() {
        let (first, sector, color) = colors[next];
        let run = colors[next..].iter().zip(first..);
        let length =
            run.take_while(|((lane, other, _), wanted)| lane == wanted && *other == sector);
        let length = length.count();
        let width = LANE * length as f64 - 1.0;
        svg.rect(
            [left_of(first) + 0.5, svg.y, width, HEIGHT],
            &format!("c{color}"),
        );
        next += length;
    }
    marks(svg, request);
    let counters = request.global_counters();
    let class = if is_wasteful(&counters) {
        "lit warn"
    } else {
        "lit"
    };
    svg.aligned(
        SECTORS,
        svg.y + 11.0,
        class,
        &counters.sectors.to_string(),
        Align::End,
    );
    let least = format!("least {}", counters.bytes.div_ceil(SECTOR));
    svg.aligned(SECTORS, svg.y + 23.0, "small", &least, Align::End);
}

/// Whether a request touches at least twice the sectors that its bytes need.
fn is_wasteful(counters: &GlobalCounters) -> bool {
    counters.sectors >= 2 * counters.bytes.div_ceil(SECTOR)
}

/// The marks at the addresses, in one path.
fn marks(svg: &mut Svg, request: &TracedRequest) {
    let least = request
        .accesses()
        .map(|(_, address)| address)
        .min()
        .unwrap_or(0);
    let most = request
        .accesses()
        .map(|(_, address)| address)
        .max()
        .unwrap_or(0);
    let room = HEIGHT - MARK - 4.0;
    let path: String = request
        .accesses()
        .map(|(lane, address)| {
            let height = match most - least {
                0 => 0.5,
                span => (address - least) as f64 / span as f64,
            };
            let (x, y) = (left_of(lane) + 3.0, svg.y + 2.0 + room * (1.0 - height));
            format!(
                "M{} {}h{}v{MARK}h-{}z",
                number(x),
                number(y),
                LANE - 6.0,
                LANE - 6.0
            )
        })
        .collect();
    svg.path(&path, "mark");
}

/// The sector and the colour of each active lane. Lanes of a sector have the same colour; neighbours in different
/// sectors differ, and so do different sectors as far as there are colours.
fn colors(request: &TracedRequest) -> Vec<(u32, u64, usize)> {
    let lanes: Vec<(u32, u64)> = request
        .accesses()
        .map(|(lane, address)| (lane, address / SECTOR))
        .collect();
    let mut colored: Vec<(u64, usize)> = Vec::new();
    let color_of = |colored: &[(u64, usize)], sector| {
        let found = colored.iter().find(|&&(other, _)| other == sector);
        found.map(|&(_, color)| color)
    };
    for &(_, sector) in &lanes {
        if color_of(&colored, sector).is_some() {
            continue;
        }
        let beside = lanes
            .windows(2)
            .filter_map(|pair| match (pair[0].1, pair[1].1) {
                (a, b) if a == sector => Some(b),
                (a, b) if b == sector => Some(a),
                _ => None,
            });
        let taken: Vec<usize> = beside
            .filter_map(|other| color_of(&colored, other))
            .collect();
        let start = colored.len();
        let free = (start..start + COLORS).map(|color| color % COLORS);
        let color = { free }.find(|color| !taken.contains(color));
        colored.push((sector, color.unwrap_or(start % COLORS)));
    }
    lanes
        .into_iter()
        .map(|(lane, sector)| (lane, sector, color_of(&colored, sector).unwrap_or(0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::RequestKind;

    fn load(addresses: &[u64]) -> TracedRequest {
        TracedRequest {
            kind: RequestKind::GlobalLoad,
            file: "a.rs".to_owned(),
            line: 1,
            lanes: u32::MAX >> (32 - addresses.len()),
            bytes: 4,
            addresses: addresses.to_vec(),
        }
    }

    #[test]
    fn lanes_of_a_sector_have_one_color_and_neighbours_in_other_sectors_another() {
        // 20 sectors that come back to the first one between them.
        let addresses: Vec<u64> = (0..32)
            .map(|lane| if lane % 3 == 0 { 0 } else { 32 * lane })
            .collect();
        let colors = colors(&load(&addresses));
        assert_eq!(colors.len(), 32);
        for pair in colors.windows(2) {
            assert_eq!(pair[0].1 == pair[1].1, pair[0].2 == pair[1].2, "{pair:?}");
        }
        let first = colors.iter().filter(|&&(_, sector, _)| sector == 0);
        assert!(first.clone().count() == 11 && first.clone().all(|found| found.2 == colors[0].2));
    }

    #[test]
    fn up_to_eight_sectors_all_differ() {
        let addresses: Vec<u64> = (0..32).map(|lane| 4 * 2 * lane).collect();
        let mut found: Vec<usize> = colors(&load(&addresses))
            .iter()
            .map(|&(_, _, color)| color)
            .collect();
        found.dedup();
        assert_eq!(found, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn an_empty_trace_and_requests_that_were_not_kept_are_said() {
        let mut trace = WarpTrace::default();
        let draw = |trace: &WarpTrace| access_map("k", trace, &Sources::default());
        assert!(draw(&trace).contains("executes no request"));
        trace.requests = vec![load(&[0]); MAX_ROWS + 1];
        trace.executed = 2000;
        let svg = draw(&trace);
        assert!(svg.contains("executes 1,968 more requests"), "{svg}");
        assert_eq!(svg.matches(">least 1<").count(), MAX_ROWS);
    }

    #[test]
    fn repeated_collective_operations_have_one_row() {
        let shuffle = TracedRequest {
            kind: RequestKind::Shuffle,
            bytes: 0,
            addresses: Vec::new(),
            ..load(&[0])
        };
        let mut trace = WarpTrace {
            requests: vec![shuffle; 40],
            executed: 41,
            ..WarpTrace::default()
        };
        trace.requests.push(load(&[0]));
        let svg = access_map("k", &trace, &Sources::default());
        assert!(
            svg.contains("a.rs:1 shuffle, 40 times") && svg.contains(">least 1<"),
            "{svg}"
        );
        assert!(!svg.contains("not drawn"), "{svg}");
    }
}
