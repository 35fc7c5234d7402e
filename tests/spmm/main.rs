//! SpMM on every device, against the reference: plans, kernels, row orders, and every element type.

mod chains;
mod depth;
mod device_plans;
mod even_rows;
mod few_features;
mod h200_counters;
mod kernels;
mod launch_reports;
mod order;
mod plan;
mod profiles;
mod recordings;
mod row_bins;
mod row_groups;
mod shared_x;
mod small;
mod split_rows;
mod teams;
mod types;

use warprow::SpmmKernel;
use warprow_kernels::spmm::ItemKind;

/// Whether a plan's size of tasks means something to the kernel.
fn has_sized_items(kernel: SpmmKernel) -> bool {
    let sized = [
        ItemKind::Tasks,
        ItemKind::RowBins,
        ItemKind::BlockTasks,
        ItemKind::Slices,
        ItemKind::SlicesWithSums,
        ItemKind::Teams,
    ];
    sized.contains(&kernel.items())
}
