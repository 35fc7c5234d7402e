//! The table on the terminal: a block for each case, a line for each implementation.

use crate::report::{Case, Line, Outcome};
use std::fmt::Write;

/// The head of the table.
pub fn head() -> String {
    format!(
        "{:<20} {:>9} {:>21} {:>9} {:>12}  verified",
        "", "ms", "least .. most", "GFLOP/s", "to cuSPARSE"
    )
}

/// The lines of one case. The ratio is the best time of cuSPARSE over the line's own: above 1 is faster.
pub fn block(case: &Case, lines: &[Line]) -> String {
    let mut text = format!(
        "{} {}, {} x {}, {} nonzeros, {} features, {}\n",
        case.graph, case.kind, case.rows, case.cols, case.nnz, case.features, case.element
    );
    let best = best_of_cusparse(lines);
    for Line {
        implementation,
        outcome,
    } in lines
    {
        let _ = write!(text, "  {:<18} ", implementation.name);
        let computed = match outcome {
            Outcome::Skipped { skipped } => {
                let _ = writeln!(text, "skipped: {skipped}");
                continue;
            }
            Outcome::Computed(computed) => computed,
        };
        let _ = match (computed.ms, computed.ms_min, computed.ms_max) {
            (Some(ms), Some(min), Some(max)) => {
                let ratio = best.map_or(String::from("-"), |best| format!("{:.2}", best / ms));
                let gflops = case.operations() / ms / 1e6;
                write!(
                    text,
                    "{ms:>9.4} {:>21} {gflops:>9.0} {ratio:>12}",
                    format!("{min:.4} .. {max:.4}")
                )
            }
            _ => write!(text, "{:<54}", "emulated: no timing"),
        };
        let _ = write!(
            text,
            "  {} {} rows, error {:.1e}",
            if computed.ok { "ok:" } else { "WRONG:" },
            computed.rows_verified,
            computed.max_rel_err
        );
        if let (Some(kernel), "warprow") = (implementation.kernel, implementation.name) {
            let _ = write!(text, ", by {kernel}");
        }
        text.push('\n');
    }
    text
}

/// The least of the times of cuSPARSE, in milliseconds; wrong results do not count.
fn best_of_cusparse(lines: &[Line]) -> Option<f64> {
    lines
        .iter()
        .filter(|line| line.implementation.cusparse.is_some())
        .filter_map(|line| match &line.outcome {
            Outcome::Computed(computed) if computed.ok => computed.ms,
            _ => None,
        })
        .min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Computed, Implementation};

    fn line(name: &'static str, ms: f64, ok: bool) -> Line {
        let of_cusparse = name.starts_with("cusparse");
        Line {
            implementation: Implementation {
                name,
                kernel: (!of_cusparse).then_some("some_kernel"),
                cusparse: of_cusparse.then(|| "12.6.3".to_owned()),
            },
            outcome: Outcome::Computed(Computed {
                ms: Some(ms),
                ms_min: Some(ms),
                ms_max: Some(ms),
                launches: Some(1),
                plan_ms: Some(1.0),
                rows_verified: 3,
                max_rel_err: 1e-8,
                ok,
            }),
        }
    }

    fn case() -> Case {
        Case {
            graph: "small",
            kind: "uniform",
            rows: 3,
            cols: 3,
            nnz: 1_000_000,
            features: 50,
            element: "f32",
        }
    }

    #[test]
    fn the_ratio_is_to_the_best_algorithm_that_is_right() {
        let lines = [
            line("warprow", 2.0, true),
            line("cusparse_default", 5.0, true),
            line("cusparse_csr_alg1", 3.0, true),
            line("cusparse_csr_alg2", 1.0, false),
        ];
        assert_eq!(best_of_cusparse(&lines), Some(3.0));
        let text = block(&case(), &lines);
        let rows: Vec<_> = text.lines().collect();
        assert!(rows[1].contains(" 1.50  ok: 3 rows"), "{text}");
        assert!(rows[1].ends_with("by some_kernel"), "{text}");
        assert!(rows[4].contains("WRONG"), "{text}");
    }

    #[test]
    fn operations_are_counted_in_billions_a_second() {
        // 10^8 operations in 2 ms.
        let text = block(&case(), &[line("warprow", 2.0, true)]);
        assert!(text.contains(" 50 "), "{text}");
        assert!(text.contains(" -  ok"), "{text}");
    }

    #[test]
    fn a_skipped_case_says_why() {
        let mut line = line("cusparse_default", 1.0, true);
        line.outcome = Outcome::Skipped {
            skipped: "too large".into(),
        };
        assert_eq!(best_of_cusparse(std::slice::from_ref(&line)), None);
        assert!(block(&case(), &[line]).contains("skipped: too large"));
    }
}
