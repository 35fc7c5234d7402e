//! The products of this crate that a run times: the plan's own, those of kernels and orders that are asked for, and
//! the sweep over what the plan could have chosen.

use crate::spmm::options::Options;
use warprow::{RowOrder, SpmmKernel, SpmmOptions, SpmmTuning};

/// The name of the product that the plan chooses alone.
pub const OURS: &str = "warprow";

/// A product: its name in the results, and what its plan is told.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The name.
    pub name: &'static str,
    /// What is not left to the plan.
    pub options: SpmmOptions,
}

const LANES: [(&str, u32); 3] = [("lanes_8", 8), ("lanes_16", 16), ("lanes_32", 32)];

const LANES_IN_STEP: [(&str, u32); 4] = [
    ("in_step_lanes_4", 4),
    ("in_step_lanes_8", 8),
    ("in_step_lanes_16", 16),
    ("in_step_lanes_32", 32),
];

const COLUMN_BLOCKS: [(&str, u32); 5] = [
    ("column_blocks_1", 1),
    ("column_blocks_2", 2),
    ("column_blocks_4", 4),
    ("column_blocks_8", 8),
    ("column_blocks_16", 16),
];

const TASK_SIZES: [(&str, u32); 4] = [
    ("task_size_64", 64),
    ("task_size_128", 128),
    ("task_size_256", 256),
    ("task_size_512", 512),
];

const JOINED: [(&str, bool); 2] = [("tasks_joined", true), ("tasks_single", false)];

/// The kernels that a plan chooses between.
const KERNELS: [SpmmKernel; 4] = [
    SpmmKernel::Vector,
    SpmmKernel::InStep,
    SpmmKernel::RowGroups,
    SpmmKernel::RowBins,
];

/// The orders of the rows that a plan chooses between.
const ORDERS: [RowOrder; 2] = [RowOrder::Given, RowOrder::Clustered];

/// All that the options ask for, the plan's own first, each name once.
pub fn choices(options: &Options) -> Vec<Choice> {
    let tuning = options.tuning();
    let own = Choice {
        name: OURS,
        options: tuning,
    };
    let sweep = if options.sweep { sweep(tuning) } else { vec![] };
    let kernels = options.kernels().into_iter();
    let orders = options.orders().into_iter();
    let mut choices = vec![own];
    let asked_for = kernels
        .map(|kernel| of_kernel(kernel, tuning))
        .chain(orders.map(|order| of_order(order, tuning)))
        .chain(sweep);
    for choice in asked_for {
        if choices.iter().all(|other| other.name != choice.name) {
            choices.push(choice);
        }
    }
    choices
}

/// The plan's own, and everything that it could have chosen.
pub fn all_choices() -> Vec<Choice> {
    let options = SpmmOptions::default();
    let own = Choice {
        name: OURS,
        options,
    };
    [own].into_iter().chain(sweep(options)).collect()
}

fn of_kernel(kernel: SpmmKernel, tuning: SpmmOptions) -> Choice {
    with(kernel.name(), kernel, tuning, |tuning| tuning)
}

/// A kernel with another choice.
fn with(
    name: &'static str,
    kernel: SpmmKernel,
    tuning: SpmmOptions,
    choice: impl FnOnce(SpmmTuning) -> SpmmTuning,
) -> Choice {
    let options = tuning.map_tuning(|tuning| choice(tuning.kernel(kernel)));
    Choice { name, options }
}

fn of_order(order: RowOrder, tuning: SpmmOptions) -> Choice {
    let options = tuning.map_tuning(|tuning| tuning.order(order));
    Choice {
        name: order.name(),
        options,
    }
}

/// Each thing that a plan chooses, as if the caller had chosen it and left the rest to the plan.
fn sweep(tuning: SpmmOptions) -> Vec<Choice> {
    use SpmmKernel::{InStep, Vector};
    let kernels = KERNELS.map(|kernel| of_kernel(kernel, tuning));
    let orders = ORDERS.map(|order| of_order(order, tuning));
    let lanes = LANES.map(|(name, lanes)| with(name, Vector, tuning, |tuning| tuning.lanes(lanes)));
    let in_step =
        LANES_IN_STEP.map(|(name, lanes)| with(name, InStep, tuning, |tuning| tuning.lanes(lanes)));
    let blocks = COLUMN_BLOCKS
        .map(|(name, blocks)| with(name, Vector, tuning, |tuning| tuning.column_blocks(blocks)));
    let sizes =
        TASK_SIZES.map(|(name, size)| with(name, Vector, tuning, |tuning| tuning.task_size(size)));
    let joined =
        JOINED.map(|(name, joined)| with(name, Vector, tuning, |tuning| tuning.join_tasks(joined)));
    let choices = kernels.into_iter().chain(orders).chain(lanes);
    let choices = choices.chain(in_step).chain(blocks);
    choices.chain(sizes).chain(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn names(arguments: &[&str]) -> Vec<&'static str> {
        let options = Options::try_parse_from([&["spmm"], arguments].concat()).unwrap();
        choices(&options).iter().map(|choice| choice.name).collect()
    }

    #[test]
    fn the_plans_own_comes_first_and_each_name_once() {
        assert_eq!(names(&[]), [OURS]);
        assert_eq!(
            names(&["--kernel", "vector", "--order", "given"]),
            [OURS, "vector", "given"]
        );
        let mut swept = names(&["--sweep", "--kernel", "vector", "--order", "given"]);
        assert_eq!(swept[..3], [OURS, "vector", "given"]);
        let count = swept.len();
        swept.sort_unstable();
        swept.dedup();
        assert_eq!((count, swept.len()), (25, 25));
    }
}
