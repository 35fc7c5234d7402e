//! The end of a run: geometric means for each kind and width.

use crate::spmm::ratios::{Mean, Ratios, distinct};
use std::fmt::Write;

/// A table of the means over the graphs, for each element type, kind and width; empty if nothing was timed. The least
/// ratio comes with its graph.
pub fn summary(ratios: &[Ratios]) -> String {
    let mut text = String::new();
    let has_ratio = |case: &Ratios| case.to_cusparse.is_some() || case.to_limit.is_some();
    if !ratios.iter().any(has_ratio) {
        return text;
    }
    let _ = writeln!(
        text,
        "geometric means{:>28} {:>8}   {:<22} {:<22}",
        "features", "graphs", "to the best cuSPARSE", "to the gather limit"
    );
    for (element, kind) in distinct(ratios, |case| (case.element.clone(), case.kind.clone())) {
        let of_kind = |case: &&Ratios| case.element == element && case.kind == kind;
        let of_kind: Vec<Ratios> = ratios.iter().filter(of_kind).cloned().collect();
        let mut widths = distinct(&of_kind, |case| case.features);
        widths.sort_unstable();
        for width in widths {
            let cases: Vec<&Ratios> = of_kind
                .iter()
                .filter(|case| case.features == width)
                .collect();
            let _ = writeln!(
                text,
                "  {:<32} {width:>8} {:>8}   {:<22} {:<22}",
                format!("{kind} {element}"),
                cases.len(),
                cell(&cases, |case| case.to_cusparse),
                cell(&cases, |case| case.to_limit)
            );
        }
    }
    text
}

/// How many times as fast as the best of cuSPARSE all cases are together; empty if none was timed.
pub fn overall(ratios: &[Ratios]) -> String {
    let of_cusparse = || ratios.iter().filter_map(|case| case.to_cusparse);
    let Some(mean) = Mean::of(of_cusparse()) else {
        return String::new();
    };
    let slower = of_cusparse().filter(|&ratio| ratio < 1.0).count();
    let is_least = |case: &&Ratios| case.to_cusparse == Some(mean.least);
    let least = ratios.iter().find(is_least).map_or(String::new(), |case| {
        format!("{} {}, {} features", case.graph, case.kind, case.features)
    });
    format!(
        "{} products are {:.2} times as fast as the best of cuSPARSE in the geometric mean, \
         {:.2} at least ({least}); {slower} are slower\n",
        mean.count, mean.mean, mean.least
    )
}

/// What a choice may be slower than the best one and still count as good.
const GOOD: f64 = 0.95;

/// How many of the plan's choices were good, where others were timed; empty if none were.
pub fn choices(ratios: &[Ratios]) -> String {
    let of_best: Vec<f64> = ratios.iter().filter_map(|case| case.to_choices).collect();
    let Some(mean) = Mean::of(of_best.iter().copied()) else {
        return String::new();
    };
    let good = of_best.iter().filter(|&&ratio| ratio >= GOOD).count();
    format!(
        "the plan's choice is within 5 % of the best of the others in {good} of {} cases, \
         in the worst it has {:.2} of the speed\n",
        mean.count, mean.least
    )
}

/// The mean, and the least ratio and its graph.
fn cell(cases: &[&Ratios], ratio: impl Fn(&Ratios) -> Option<f64>) -> String {
    let Some(mean) = Mean::of(cases.iter().filter_map(|case| ratio(case))) else {
        return "-".to_owned();
    };
    let least = cases.iter().find(|case| ratio(case) == Some(mean.least));
    let graph = least.map_or("", |case| &case.graph);
    format!("{:.2} ({:.2} {graph})", mean.mean, mean.least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spmm::ratios::tests::record;

    #[test]
    fn each_kind_and_width_has_its_means_and_the_least_ratio() {
        let records = [
            record("ppa", 32, "warprow", 2.0),
            record("ppa", 32, "cusparse_default", 1.0),
            record("ddi", 32, "warprow", 2.0),
            record("ddi", 32, "cusparse_default", 4.0),
            record("ddi", 100, "warprow", 1.0),
            record("ddi", 100, "gather_limit", 0.8),
        ];
        let text = summary(&Ratios::of(&records));
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|row| row.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 3, "{text}");
        assert_eq!(
            rows[1],
            ["uniform", "f32", "32", "2", "1.00", "(0.50", "ppa)", "-"],
            "{text}"
        );
        assert_eq!(
            rows[2],
            ["uniform", "f32", "100", "1", "-", "0.80", "(0.80", "ddi)"],
            "{text}"
        );
    }

    #[test]
    fn good_choices_are_counted() {
        let records = [
            record("ppa", 32, "warprow", 2.0),
            record("ppa", 32, "vector", 1.95),
            record("ddi", 32, "warprow", 2.0),
            record("ddi", 32, "in_step", 1.0),
            record("ddi", 64, "warprow", 2.0),
        ];
        let text = choices(&Ratios::of(&records));
        assert!(
            text.contains("in 1 of 2 cases") && text.contains("0.50"),
            "{text}"
        );
        assert_eq!(choices(&Ratios::of(&records[4..])), "");
    }

    #[test]
    fn all_cases_together_have_a_mean_a_least_ratio_and_those_that_are_slower() {
        let records = [
            record("random_0", 32, "warprow", 1.0),
            record("random_0", 32, "cusparse_default", 4.0),
            record("random_1", 7, "warprow", 2.0),
            record("random_1", 7, "cusparse_default", 2.5),
            record("random_1", 7, "cusparse_csr_alg2", 1.0),
            record("random_2", 9, "warprow", 2.0),
        ];
        let text = overall(&Ratios::of(&records));
        assert!(text.starts_with("2 products are 1.41 times"), "{text}");
        assert!(text.contains("0.50 at least (random_1 uniform, 7 features); 1 are slower"));
        assert_eq!(overall(&Ratios::of(&records[5..])), "");
    }

    #[test]
    fn nothing_timed_gives_no_table() {
        assert_eq!(
            summary(&Ratios::of(&[record("ppa", 32, "warprow", 2.0)])),
            ""
        );
        assert_eq!(summary(&[]), "");
    }
}
