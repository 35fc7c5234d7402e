//! The bank map of a request to shared memory: which lanes meet at which bank, wavefront by wavefront.

use super::sources::{Sources, counted, place};
use super::svg::{Align, MARGIN, Svg};
use crate::counters::request::wavefronts::{Wavefront, wavefronts};
use crate::counters::{RequestKind, TracedRequest};
use crate::masks::bits;

/// The left end of the first bank, and the width of a bank.
const LEFT: f64 = MARGIN + 80.0;
const BANK: f64 = 21.0;
/// The height of a wavefront.
const ROW: f64 = 20.0;

/// Draws one request of a kernel's warp to shared memory; `None` if it is another kind of request.
///
/// A row is a wavefront, which reads or writes one word of each of the 32 banks. All wavefronts of a part of the
/// request after its first one are bank conflicts.
#[must_use]
pub fn bank_map(kernel: &str, request: &TracedRequest, sources: &Sources) -> Option<String> {
    if !request.kind.is_shared() {
        return None;
    }
    let counters = request.shared_counters();
    let wavefronts = wavefronts(&request.request());
    let mut svg = Svg::new(
        &format!(
            "Bank map: {} of {}, {}, {}",
            request.kind.name(),
            counted(request.bytes.into(), "byte"),
            counted(counters.wavefronts, "wavefront"),
            counted(counters.bank_conflicts, "bank conflict")
        ),
        &format!(
            "{kernel}, {}  {}",
            place(&request.file, request.line),
            sources.statement(&request.file, request.line, 60)
        ),
        "Each column is a bank of shared memory, and each row a wavefront, in which a bank serves one word of 4 \
         bytes to the lane in the box, or to several (×4) that share the word. Few rows are good.",
    );
    svg.legend(&[
        ("good", "first wavefront"),
        (
            "bad",
            "bank conflict: the bank serves another word once more",
        ),
        ("slot", "idle bank"),
    ]);
    svg.y += 16.0;
    for bank in 0..32 {
        let middle = LEFT + BANK * (f64::from(bank) + 0.5);
        svg.aligned(middle, svg.y, "small", &bank.to_string(), Align::Middle);
    }
    svg.text(MARGIN, svg.y, "small", "bank");
    svg.y += 7.0;
    let mut part = None;
    for wavefront in &wavefronts {
        if wavefront.first && part.is_some() {
            svg.y += 6.0;
        }
        part = Some(wavefront.part);
        row(&mut svg, wavefront);
    }
    if wavefronts.is_empty() {
        svg.note("No lane is active.");
    }
    svg.y += 4.0;
    svg.note(&verdict(request, counters.bank_conflicts));
    Some(svg.finish())
}

/// A sentence on why the request takes its wavefronts.
fn verdict(request: &TracedRequest, conflicts: u64) -> String {
    let parts = wavefronts(&request.request());
    let parts = parts.iter().filter(|wavefront| wavefront.first).count();
    let parts = match (parts, request.bytes) {
        (0 | 1, _) => "All lanes go together.".to_owned(),
        (parts, bytes) => format!(
            "Accesses of {bytes} bytes go in parts of the warp, here {parts}: all banks together serve 128 bytes \
             in a wavefront."
        ),
    };
    let conflicts = match (conflicts, request.kind) {
        (0, _) => "There is no bank conflict.",
        (_, RequestKind::SharedAtomic) => {
            "Lanes that operate on one word, or on different words of one bank, wait for each other."
        }
        _ => "Lanes that want different words of one bank wait for each other.",
    };
    format!("{parts} {conflicts}")
}

/// The row of a wavefront.
fn row(svg: &mut Svg, wavefront: &Wavefront) {
    let text = match (wavefront.first, wavefront.part) {
        (true, u32::MAX) => "all lanes".to_owned(),
        (true, part) => format!(
            "lanes {}–{}",
            part.trailing_zeros(),
            31 - part.leading_zeros()
        ),
        (false, _) => "conflict".to_owned(),
    };
    let class = if wavefront.first {
        "small"
    } else {
        "small warn"
    };
    svg.text(MARGIN, svg.y + 14.0, class, &text);
    svg.rect([LEFT, svg.y, 32.0 * BANK, ROW - 2.0], "slot");
    let mut bank = 0;
    while bank < wavefront.lanes.len() {
        let lanes = wavefront.lanes[bank];
        // A lane with a wide access has neighbouring banks.
        let same = wavefront.lanes[bank..]
            .iter()
            .take_while(|&&other| other == lanes);
        let width = same.count();
        if lanes != 0 {
            let left = LEFT + BANK * bank as f64;
            let class = if wavefront.first { "good" } else { "bad" };
            svg.rect(
                [left + 0.5, svg.y, BANK * width as f64 - 1.0, ROW - 2.0],
                class,
            );
            let middle = left + BANK * width as f64 / 2.0;
            svg.aligned(middle, svg.y + 13.0, "in", &label(lanes), Align::Middle);
        }
        bank += width;
    }
    svg.y += ROW;
}

/// The lane of a box, or the number of its lanes.
fn label(lanes: u32) -> String {
    match lanes.count_ones() {
        1 => bits(lanes).next().unwrap_or(0).to_string(),
        count => format!("×{count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(kind: RequestKind, bytes: u32, address: impl Fn(u64) -> u64) -> Option<String> {
        let request = TracedRequest {
            kind,
            file: "a.rs".to_owned(),
            line: 7,
            lanes: u32::MAX,
            bytes,
            addresses: (0..32).map(address).collect(),
        };
        bank_map("k", &request, &Sources::default())
    }

    #[test]
    fn each_wavefront_after_the_first_of_a_part_is_a_conflict() {
        let svg = drawn(RequestKind::SharedLoad, 4, |lane| 4 * 8 * lane).unwrap();
        assert_eq!(svg.matches(">conflict<").count(), 7);
        assert_eq!(
            svg.matches(r#"class="bad""#).count(),
            7 * 4 + 1,
            "a box each, and the legend"
        );
        let wide = drawn(RequestKind::SharedLoad, 16, |lane| 16 * lane).unwrap();
        assert!(wide.contains(">lanes 8–15<") && !wide.contains(">conflict<"));
        assert_eq!(wide.matches(r#"class="good""#).count(), 32 + 1);
    }

    #[test]
    fn lanes_that_share_a_word_are_counted_in_one_box() {
        let svg = drawn(RequestKind::SharedLoad, 4, |_| 64).unwrap();
        assert_eq!(svg.matches(">×32<").count(), 1);
    }

    #[test]
    fn other_requests_have_no_bank_map() {
        assert_eq!(drawn(RequestKind::GlobalLoad, 4, |lane| 4 * lane), None);
        assert_eq!(drawn(RequestKind::Shuffle, 0, |lane| lane), None);
    }
}
