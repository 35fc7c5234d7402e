//! The results: a line on the terminal and a JSON object in the file for each.

use crate::gcn::networks::Network;
use crate::gcn::verification::Verification;
use crate::harness::measure::Timing;
use serde::Serialize;

/// The implementation's name in the results, which has others' beside it.
const OURS: &str = "warprow";

/// A result: of one operator, or of the whole network.
#[derive(Clone, Debug)]
pub struct Line {
    /// `gemm`, `spmm`, `aggregate`, `activate`, `log_softmax`; `network`; or `launches`, the network launched operator
    /// by operator.
    pub operator: String,
    /// The layer, from 1; 0 for the whole.
    pub layer: usize,
    /// Bytes to move.
    pub bytes: u128,
    /// The time of one run; none on the emulator.
    pub timing: Option<Timing>,
    /// Milliseconds of a copy of as many bytes.
    pub floor_ms: Option<f64>,
}

/// A line of the file.
#[derive(Debug, Serialize)]
pub struct Object<'a> {
    bench: &'static str,
    graph: &'static str,
    rows: u32,
    nnz: u32,
    widths: [usize; 3],
    #[serde(rename = "type")]
    element: &'static str,
    #[serde(rename = "impl")]
    implementation: &'static str,
    operator: &'a str,
    layer: usize,
    ms: Option<f64>,
    ms_min: Option<f64>,
    ms_max: Option<f64>,
    launches: Option<u32>,
    floor_ms: Option<f64>,
    bytes: u128,
    ok: bool,
    max_rel_err: f64,
}

impl<'a> Object<'a> {
    /// That of a line of a network, in whose result `found` was found.
    pub fn new(network: &Network, line: &'a Line, found: Verification) -> Self {
        Self {
            bench: "gcn",
            graph: network.name,
            rows: network.nodes,
            nnz: network.edges,
            widths: network.widths,
            element: "f32",
            implementation: OURS,
            operator: &line.operator,
            layer: line.layer,
            ms: line.timing.map(|timing| timing.median),
            ms_min: line.timing.map(|timing| timing.min),
            ms_max: line.timing.map(|timing| timing.max),
            launches: line.timing.map(|timing| timing.launches),
            floor_ms: line.floor_ms,
            bytes: line.bytes,
            ok: found.ok,
            max_rel_err: found.max_rel_err,
        }
    }
}

/// The line of the terminal.
pub fn text(network: &Network, line: &Line, found: Verification) -> String {
    let mut text = format!(
        "{:<9} {:<16} {:<28}",
        network.name,
        OURS,
        format!("{} {}", line.operator, line.layer)
    );
    match (line.timing, line.floor_ms) {
        (Some(timing), Some(floor)) => {
            let part = floor / timing.median;
            text += &format!("{:>9.4} ms, {part:.2} of the floor", timing.median);
        }
        (Some(timing), None) => text += &format!("{:>9.4} ms", timing.median),
        (None, _) => text += "emulated: no timing",
    }
    let verdict = if found.ok { "ok" } else { "WRONG" };
    text + &format!(", {verdict}, error {:.1e}", found.max_rel_err)
}
