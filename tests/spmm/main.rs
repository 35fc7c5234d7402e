//! SpMM on every device, against the reference: plans, kernels, row orders, and every element type.

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
mod small;
mod teams;
mod types;
