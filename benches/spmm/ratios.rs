//! What results come to: of each case the time of cuSPARSE and of the gather limit over ours, and their means.

use crate::spmm::choices::OURS;
use crate::spmm::floors::{L2_FLOOR, MEMORY_FLOOR};
use crate::spmm::gather_limit;
use crate::spmm::implementer::COPY_LIMIT;
use crate::spmm::results::Record;

/// A case, and how our time compares.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratios {
    /// The graph.
    pub graph: String,
    /// The distribution of its nonzeros.
    pub kind: String,
    /// Columns of X and Y.
    pub features: u32,
    /// The element type.
    pub element: String,
    /// The best time of cuSPARSE over ours: above 1 is faster.
    pub to_cusparse: Option<f64>,
    /// The time of the gather limit over ours: 1 is all that can be had by gathering.
    pub to_limit: Option<f64>,
    /// The time of the best of our other choices over that of the plan's: below 1 there was a better one.
    pub to_choices: Option<f64>,
}

impl Ratios {
    /// Of all cases that we have a time of, in the order of their first records. What is wrong does not count.
    pub fn of(records: &[Record]) -> Vec<Self> {
        let mut cases: Vec<(Ratios, [Option<f64>; 4])> = Vec::new();
        for record in records {
            if [COPY_LIMIT, MEMORY_FLOOR, L2_FLOOR].contains(&&*record.implementation) {
                continue;
            }
            let place = cases.iter().position(|(case, _)| case.has(record));
            let place = place.unwrap_or_else(|| {
                cases.push((Self::without_times(record), [None; 4]));
                cases.len() - 1
            });
            let time = match record.implementation.as_str() {
                OURS => 0,
                gather_limit::NAME => 1,
                _ if record.cusparse.is_some() => 2,
                _ => 3,
            };
            let best = &mut cases[place].1[time];
            *best = [*best, record.right_time()]
                .into_iter()
                .flatten()
                .min_by(f64::total_cmp);
        }
        let with_ratios = cases
            .into_iter()
            .filter_map(|(case, [ours, limit, theirs, choices])| {
                let ours = ours?;
                Some(Self {
                    to_cusparse: theirs.map(|theirs| theirs / ours),
                    to_limit: limit.map(|limit| limit / ours),
                    to_choices: choices.map(|best| best / ours),
                    ..case
                })
            });
        with_ratios.collect()
    }

    fn without_times(record: &Record) -> Self {
        Self {
            graph: record.graph.clone(),
            kind: record.kind.clone(),
            features: record.features,
            element: record.element.clone(),
            to_cusparse: None,
            to_limit: None,
            to_choices: None,
        }
    }

    fn has(&self, record: &Record) -> bool {
        self.graph == record.graph
            && self.kind == record.kind
            && self.features == record.features
            && self.element == record.element
    }
}

/// The geometric mean of some numbers, and the least of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// How many they are.
    pub count: usize,
    /// Their geometric mean.
    pub mean: f64,
    /// The least.
    pub least: f64,
}

impl Mean {
    /// Of these numbers, if there are any.
    pub fn of(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        let numbers: Vec<f64> = numbers.collect();
        let least = numbers.iter().copied().min_by(f64::total_cmp)?;
        let logarithms: f64 = numbers.iter().map(|number| number.ln()).sum();
        Some(Self {
            count: numbers.len(),
            mean: (logarithms / numbers.len() as f64).exp(),
            least,
        })
    }
}

/// The different values of a property, in the order in which they come first.
pub fn distinct<T: PartialEq>(ratios: &[Ratios], property: impl Fn(&Ratios) -> T) -> Vec<T> {
    let mut values = Vec::new();
    for value in ratios.iter().map(property) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::spmm::results::Setting;

    pub fn record(graph: &str, features: u32, implementation: &str, ms: f64) -> Record {
        let of_cusparse = implementation.starts_with("cusparse");
        Record {
            graph: graph.to_owned(),
            kind: "uniform".to_owned(),
            features,
            element: "f32".to_owned(),
            implementation: implementation.to_owned(),
            cusparse: of_cusparse.then(|| "12.6.3".to_owned()),
            ms: Some(ms),
            ok: (implementation != "gather_limit").then_some(true),
            device: "some GPU".to_owned(),
            ptx: None,
            setting: Setting::default(),
        }
    }

    #[test]
    fn the_ratios_are_to_the_best_right_algorithm_and_to_the_limit() {
        let wrong = Record {
            ok: Some(false),
            ..record("ppa", 32, "cusparse_csr_alg3", 0.1)
        };
        let records = [
            record("ppa", 32, "warprow", 2.0),
            record("ddi", 32, "cusparse_default", 7.0),
            record("ppa", 32, "vector", 1.0),
            record("ppa", 32, "gather_limit", 1.5),
            record("ppa", 32, "cusparse_default", 5.0),
            record("ppa", 32, "cusparse_csr_alg2", 3.0),
            wrong,
            record("ppa", 64, "warprow", 4.0),
        ];
        let ratios = Ratios::of(&records);
        assert_eq!(ratios.len(), 2);
        assert_eq!((&*ratios[0].graph, ratios[0].features), ("ppa", 32));
        assert_eq!(
            (ratios[0].to_cusparse, ratios[0].to_limit),
            (Some(1.5), Some(0.75))
        );
        assert_eq!(ratios[0].to_choices, Some(0.5));
        assert_eq!(ratios[1].features, 64);
        assert_eq!((ratios[1].to_cusparse, ratios[1].to_limit), (None, None));
        assert_eq!(ratios[1].to_choices, None);
        assert_eq!(distinct(&ratios, |case| case.features), [32, 64]);
    }

    #[test]
    fn means_are_geometric() {
        let mean = Mean::of([0.5, 2.0, 8.0].into_iter()).unwrap();
        assert_eq!((mean.count, mean.least), (3, 0.5));
        assert!((mean.mean - 2.0).abs() < 1e-12);
        assert_eq!(Mean::of([].into_iter()), None);
    }
}
