//! Results: what one is, the table's line and the file's object.

use crate::spgemm::launched::Launched;
use crate::spgemm::verification::Found;
use serde::Serialize;
use std::borrow::Cow;

/// A product to compute.
#[derive(Clone, Debug, Serialize)]
pub struct Product {
    /// The matrix.
    pub graph: Cow<'static, str>,
    /// The distribution of its nonzeros.
    pub kind: &'static str,
    /// What it is multiplied by.
    pub product: &'static str,
    /// Rows of A.
    pub rows: usize,
    /// Columns of A.
    pub cols: usize,
    /// Nonzeros of A.
    pub nnz: usize,
    /// The element type.
    #[serde(rename = "type")]
    pub element: &'static str,
    /// Multiplications of a nonzero of A with one of B.
    pub products: u64,
}

/// The result of one implementation.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// `warprow`, a choice of the sweep, or an algorithm of cuSPARSE.
    #[serde(rename = "impl")]
    pub implementation: &'static str,
    /// The version of cuSPARSE, if cuSPARSE ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cusparse: Option<String>,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A line of the file.
#[derive(Debug, Serialize)]
pub struct Object<'a> {
    /// `spgemm`.
    pub bench: &'static str,
    /// The product.
    #[serde(flatten)]
    pub product: &'a Product,
    /// The result.
    #[serde(flatten)]
    pub line: &'a Line,
}

/// The outcome of a product.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The product was computed.
    Computed {
        /// Entries of C.
        entries: u64,
        /// Times; null on the emulator.
        #[serde(flatten)]
        times: Times,
        /// The entry points, of this crate's products.
        #[serde(flatten)]
        launched: Option<Box<Launched>>,
        /// The comparison.
        #[serde(flatten)]
        found: Found,
    },
    /// The product was not computed.
    Skipped {
        /// The reason.
        skipped: String,
    },
}

/// Times in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// The median time of a whole multiplication.
    pub ms: Option<f64>,
    /// The least time of a whole multiplication.
    pub ms_min: Option<f64>,
    /// The greatest time of a whole multiplication.
    pub ms_max: Option<f64>,
    /// The median time of the symbolic phase.
    pub symbolic_ms: Option<f64>,
    /// The median time of the first numeric run of a structure, into an allocated C.
    pub numeric_first_ms: Option<f64>,
    /// The median time of later numeric runs.
    pub numeric_ms: Option<f64>,
    /// The most device memory of a whole multiplication in bytes: C and what is freed again, without A and B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// The same of a symbolic phase and a numeric run that keep what later runs need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases_peak_bytes: Option<u64>,
    /// Two operations for each product, divided by the time of a whole multiplication.
    pub gflops: Option<f64>,
}

/// The median of times in milliseconds. There must be at least one.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

impl Line {
    /// Whether the result is right, or there is none.
    pub fn is_right(&self) -> bool {
        match &self.outcome {
            Outcome::Computed { found, .. } => found.ok,
            Outcome::Skipped { .. } => true,
        }
    }

    fn best_of_cusparse(lines: &[Self]) -> Option<f64> {
        lines
            .iter()
            .filter(|line| line.cusparse.is_some())
            .filter_map(|line| match &line.outcome {
                Outcome::Computed { times, found, .. } if found.ok => times.ms,
                _ => None,
            })
            .min_by(f64::total_cmp)
    }
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The table of one product: a line for each implementation. The ratio is the best time of cuSPARSE over the line's
/// own.
pub fn table(product: &Product, lines: &[Line]) -> String {
    let mut text = format!(
        "{} {}, {} x {}, {} nonzeros, {}, {} products\n",
        product.graph,
        product.product,
        product.rows,
        product.cols,
        product.nnz,
        product.element,
        product.products
    );
    let best = Line::best_of_cusparse(lines);
    for line in lines {
        let number = |number: Option<f64>, digits| {
            number.map_or_else(|| "-".to_owned(), |number| format!("{number:.digits$}"))
        };
        text += &match &line.outcome {
            Outcome::Skipped { skipped } => {
                format!("  {:<16} skipped: {skipped}\n", line.implementation)
            }
            Outcome::Computed {
                entries,
                times,
                found,
                ..
            } => format!(
                "  {:<16} {:>10} ms ({} .. {}), symbolic {}, numeric {} then {}, {} GFLOP/s, \
                 {} x cuSPARSE, peak {} then {} MB, {entries} entries, {} {} rows, error {:.1e}\n",
                line.implementation,
                number(times.ms, 3),
                number(times.ms_min, 3),
                number(times.ms_max, 3),
                number(times.symbolic_ms, 3),
                number(times.numeric_first_ms, 3),
                number(times.numeric_ms, 3),
                number(times.gflops, 1),
                number(best.zip(times.ms).map(|(best, ms)| best / ms), 2),
                number(times.peak_bytes.map(megabytes), 1),
                number(times.phases_peak_bytes.map(megabytes), 1),
                if found.ok { "ok:" } else { "WRONG:" },
                found.rows_verified,
                found.max_rel_err,
            ),
        };
    }
    text
}
