//! The table on the terminal: a block for each case, a line for each implementation.

use crate::spmm::gather_limit;
use crate::spmm::report::{Case, Line, Outcome};
use std::fmt::Write;

/// The head of the table.
pub fn head() -> String {
    format!(
        "{:<20} {:>9} {:>21} {:>9} {:>12} {:>9} {:>10}  verified",
        "", "ms", "least .. most", "GFLOP/s", "to cuSPARSE", "to limit", "plan, runs"
    )
}

/// The lines of one case. The ratios are the best time of cuSPARSE, and the gather limit's, over the line's own:
/// above 1 is faster. What a plan takes, without the upload, is given in runs.
pub fn block(case: &Case, lines: &[Line]) -> String {
    let mut text = format!(
        "{} {}, {} x {}, {} nonzeros, {} features, {}\n",
        case.graph, case.kind, case.rows, case.cols, case.nnz, case.features, case.element
    );
    let theirs = |line: &Line| line.implementation.cusparse.is_some();
    let is_limit = |line: &Line| line.implementation.name == gather_limit::NAME;
    let (best, limit) = (least_time(lines, theirs), least_time(lines, is_limit));
    for line in lines {
        let _ = write!(text, "  {:<18} ", line.implementation.name);
        let computed = match &line.outcome {
            Outcome::Skipped { skipped } => {
                let _ = writeln!(text, "skipped: {skipped}");
                continue;
            }
            Outcome::Computed(computed) => computed,
        };
        let _ = match (computed.ms, computed.ms_min, computed.ms_max) {
            (Some(ms), None, _) => write!(text, "{ms:>9.4} {:<65}", "computed"),
            (Some(ms), Some(min), Some(max)) => {
                let ratio =
                    |to: Option<f64>| to.map_or("-".to_owned(), |to| format!("{:.2}", to / ms));
                let plan = computed.preparation.map(|preparation| preparation.plan_ms);
                write!(
                    text,
                    "{ms:>9.4} {:>21} {:>9.0} {:>12} {:>9} {:>10}",
                    format!("{min:.4} .. {max:.4}"),
                    case.operations() / ms / 1e6,
                    ratio(best),
                    ratio(limit),
                    plan.map_or("-".to_owned(), |plan| format!("{:.1}", plan / ms))
                )
            }
            _ => write!(text, "{:<75}", "emulated: no timing"),
        };
        let _ = match &computed.verified {
            Some(verified) => write!(
                text,
                "  {} {} rows, error {:.1e}",
                if verified.ok { "ok:" } else { "WRONG:" },
                verified.rows_verified,
                verified.max_rel_err
            ),
            None => write!(text, "  no product"),
        };
        match (&line.implementation.kernel, line.implementation.name) {
            (Some(kernel), name) if *kernel != name => {
                let _ = write!(text, ", by {kernel}");
            }
            _ => {}
        }
        text.push('\n');
    }
    text
}

/// The least time in milliseconds of some lines; wrong results do not count.
fn least_time(lines: &[Line], counts: impl Fn(&Line) -> bool) -> Option<f64> {
    let times = lines.iter().filter(|line| counts(line));
    times.filter_map(Line::right_time).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spmm::report::{Computed, Implementation, Preparation, Verified};

    fn line(name: &'static str, ms: f64, ok: bool) -> Line {
        let of_cusparse = name.starts_with("cusparse");
        let is_product = name != "gather_limit";
        Line {
            implementation: Implementation {
                name,
                kernel: (!of_cusparse).then_some("some_kernel".into()),
                instance: None,
                cusparse: of_cusparse.then(|| "12.6.3".to_owned()),
            },
            outcome: Outcome::Computed(Computed {
                ms: Some(ms),
                ms_min: Some(ms),
                ms_max: Some(ms),
                samples: Some(5),
                launches: Some(1),
                flushed_ms: None,
                floor: None,
                preparation: is_product.then_some(Preparation {
                    plan_ms: 7.0,
                    ..Preparation::default()
                }),
                verified: is_product.then_some(Verified {
                    rows_verified: 3,
                    max_rel_err: 1e-8,
                    rounds_sums: false,
                    exact: None,
                    ok,
                }),
            }),
        }
    }

    fn case() -> Case {
        Case {
            graph: "small".into(),
            kind: "uniform",
            rows: 3,
            cols: 3,
            nnz: 1_000_000,
            features: 50,
            element: "f32",
        }
    }

    #[test]
    fn the_ratios_are_to_the_best_algorithm_that_is_right_and_to_the_limit() {
        let lines = [
            line("warprow", 2.0, true),
            line("cusparse_default", 5.0, true),
            line("cusparse_csr_alg1", 3.0, true),
            line("cusparse_csr_alg2", 1.0, false),
            line("gather_limit", 1.8, true),
        ];
        let text = block(&case(), &lines);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|row| row.split_whitespace().collect())
            .collect();
        // 10^8 operations in 2 ms, and a plan of 7 ms.
        let wanted = ["50", "1.50", "0.90", "3.5", "ok:", "3", "rows,"];
        assert_eq!(rows[1][5..12], wanted, "{text}");
        assert_eq!(
            rows[1][rows[1].len() - 2..],
            ["by", "some_kernel"],
            "{text}"
        );
        assert!(rows[4].contains(&"WRONG:"), "{text}");
        assert_eq!(rows[5][7..11], ["1.00", "-", "no", "product,"], "{text}");
    }

    #[test]
    fn a_case_without_cusparse_has_no_ratio() {
        let text = block(&case(), &[line("warprow", 2.0, true)]);
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[6..8], ["-", "-"], "{text}");
    }

    #[test]
    fn a_skipped_case_says_why() {
        let mut line = line("cusparse_default", 1.0, true);
        line.outcome = Outcome::Skipped {
            skipped: "too large".into(),
        };
        assert_eq!(least_time(std::slice::from_ref(&line), |_| true), None);
        assert!(block(&case(), &[line]).contains("skipped: too large"));
    }
}
