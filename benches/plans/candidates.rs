//! What a plan chooses from.

use super::told;
use serde::Serialize;
use warprow::{RowOrder, SpmmKernel, SpmmOptions, SpmmTuning};

/// What a plan is told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Whether the choices are the plan's.
    pub setting: Setting,
    /// Whether the plan knows the number of features.
    pub told_features: bool,
    #[serde(skip)]
    tuning: SpmmTuning,
    /// Steps of a task, if they are set; else the plan chooses them, as it does for what it predicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_size: Option<u32>,
    /// Whether tasks are joined, if that is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<bool>,
    /// Whether X is to be in shared memory, if that is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_x: Option<bool>,
}

/// Who chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// The plan.
    Own,
    /// The plan, which measures.
    Measured,
    /// The sweep.
    Set,
}

impl Candidate {
    fn own(told_features: bool) -> Self {
        Self {
            setting: Setting::Own,
            told_features,
            tuning: SpmmTuning::new(),
            task_size: None,
            joined: None,
            shared_x: None,
        }
    }

    fn measured() -> Self {
        Self {
            setting: Setting::Measured,
            ..Self::own(true)
        }
    }

    fn set(tuning: SpmmTuning) -> Self {
        Self {
            setting: Setting::Set,
            told_features: true,
            tuning,
            task_size: tuning.task_size,
            joined: tuning.join_tasks,
            shared_x: tuning.shared_x,
        }
    }

    /// The order of the rows that the sweep sets, if it is not the caller's.
    pub fn other_order(&self) -> Option<RowOrder> {
        self.tuning.order.filter(|&order| order != RowOrder::Given)
    }

    /// The options of the plan.
    pub fn options(&self, features: u32) -> SpmmOptions {
        let measures = self.setting == Setting::Measured;
        let options = told(self.told_features.then_some(features));
        options.tuning(self.tuning).measure(measures)
    }
}

/// The most features with which `row_groups` and `row_bins` are tried.
const MAX_GROUPED: u32 = 128;

/// Elements of a row of X that a lane has at most: 8 lanes are enough for so many, and so on.
const ELEMENTS_OF_LANE: u32 = 4;

/// Mean number of nonzeros of a row in a block of columns from which on blocks are tried.
const MIN_NONZEROS_IN_BLOCK: f64 = 5.0;

const ORDERS: [RowOrder; 3] = [RowOrder::Given, RowOrder::FirstColumn, RowOrder::Clustered];

/// Maximum number of blocks of columns that are tried with the rows in an order.
const fn max_blocks(order: RowOrder) -> u32 {
    match order {
        RowOrder::Given => 8,
        RowOrder::Clustered => 2,
        _ => 1,
    }
}

/// The candidates for a number of features and a mean number of nonzeros of a row, the plan's own choices first.
pub fn candidates(features: u32, mean_row: f64) -> Vec<Candidate> {
    let mut all = vec![
        Candidate::own(true),
        Candidate::own(false),
        Candidate::measured(),
    ];
    if features <= MAX_GROUPED {
        let bins = SpmmTuning::new().kernel(SpmmKernel::RowBins);
        let bins = bins.order(RowOrder::Given);
        all.extend([false, true].map(|shared| Candidate::set(bins.shared_x(shared))));
        let bins = bins.shared_x(false);
        for size in [256, 1024, 4096] {
            all.push(Candidate::set(bins.task_size(size)));
        }
    }
    if (2..=MAX_GROUPED).contains(&features) {
        let groups = SpmmTuning::new().kernel(SpmmKernel::RowGroups);
        for (order, lanes) in ORDERS
            .into_iter()
            .flat_map(|order| [2, 4, 8, 16, 32].map(|lanes| (order, lanes)))
        {
            all.push(Candidate::set(groups.order(order).lanes(lanes)));
        }
    }
    for order in ORDERS {
        let in_step = SpmmTuning::new().kernel(SpmmKernel::InStep).order(order);
        all.push(Candidate::set(in_step));
        // Lanes can be chosen only if 4 divides the features. With these, fewer than half of the lanes are idle.
        let lanes = [4, 8, 16, 32].into_iter();
        let lanes = lanes
            .filter(|lanes| features.is_multiple_of(4) && features > ELEMENTS_OF_LANE * lanes / 2);
        all.extend(lanes.map(|lanes| Candidate::set(in_step.lanes(lanes))));
    }
    // A lane may load single elements, so one step more than loads of four need.
    let lanes = [8, 16, 32]
        .into_iter()
        .filter(|&lanes| lanes == 8 || 2 * features > ELEMENTS_OF_LANE * lanes / 2);
    for lanes in lanes {
        let vector = SpmmTuning::new().kernel(SpmmKernel::Vector).lanes(lanes);
        for order in ORDERS {
            for blocks in [1, 2, 4, 8] {
                let too_short = mean_row / f64::from(blocks) < MIN_NONZEROS_IN_BLOCK;
                if blocks > 1 && (too_short || blocks > max_blocks(order)) {
                    continue;
                }
                all.push(Candidate::set(vector.order(order).column_blocks(blocks)));
            }
        }
        let one_block = vector.order(RowOrder::Given).column_blocks(1);
        for size in [64, 128, 256, 512] {
            all.push(Candidate::set(one_block.task_size(size).join_tasks(false)));
        }
        if lanes > 8 {
            for size in [64, 128] {
                all.push(Candidate::set(one_block.task_size(size).join_tasks(true)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_each_once_and_the_plans_own_come_first() {
        for (features, mean_row) in [(1, 4.0), (16, 100.0), (33, 12.0), (256, 400.0)] {
            let all = candidates(features, mean_row);
            assert_eq!(all[0], Candidate::own(true));
            for (index, candidate) in all.iter().enumerate() {
                assert!(
                    all[..index].iter().all(|other| other != candidate),
                    "{candidate:?}"
                );
                let blocks = candidate.tuning.column_blocks.unwrap_or(1);
                assert!(blocks <= candidate.tuning.order.map_or(1, max_blocks));
            }
        }
    }
}
