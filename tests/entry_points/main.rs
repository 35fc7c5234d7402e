//! Every entry point runs at least once, on a small case with many blocks, and its results are right.
//!
//! A test for each family runs its cases on the GPU, or on the emulator if there is none. It prints the entry points
//! that were launched, and fails if one of the family was not. `scripts/sanitize` runs the tests under NVIDIA's
//! compute-sanitizer, one family after the other.

mod gather_limit;
mod gcn;
mod gemm;
mod log_softmax;
mod matrix;
mod operands;
mod spgemm;
mod spgemm_ladder;
mod spmm;
mod spmm_ladder;
mod spmm_plan;

use std::collections::BTreeSet;
use warprow::Device;

/// The families, and what the names of their entry points begin with. The longest beginning counts.
const FAMILIES: [(&str, &[&str]); 10] = [
    ("gather_limit", &["spmm_gather_limit_"]),
    ("gcn", &["gcn_"]),
    ("gemm", &["gemm_"]),
    ("log_softmax", &["log_softmax_"]),
    ("matrix", &["csr_", "dense_", "scan_", "sort_"]),
    ("spgemm", &["spgemm_"]),
    (
        "spgemm_ladder",
        &[
            "spgemm_device_count",
            "spgemm_dynamic_",
            "spgemm_fitted_",
            "spgemm_fixed_",
            "spgemm_split_",
        ],
    ),
    ("spmm", &["spmm_"]),
    (
        "spmm_ladder",
        &[
            "spmm_block_per_row",
            "spmm_clear_cut_rows",
            "spmm_coarsened",
            "spmm_column_major",
            "spmm_combine_slices",
            "spmm_find_cut_rows",
            "spmm_slice",
            "spmm_thread_per_",
            "spmm_warp_per_",
        ],
    ),
    (
        "spmm_plan",
        &[
            "order_",
            "spmm_bin_columns",
            "spmm_bin_rows",
            "spmm_count_columns",
            "spmm_count_distinct",
            "spmm_divide_windows",
            "spmm_sample_columns",
        ],
    ),
];

/// The family of an entry point.
fn family_of(name: &str) -> Option<&'static str> {
    let beginnings = FAMILIES
        .iter()
        .flat_map(|(family, all)| all.iter().map(move |beginning| (*family, *beginning)));
    let of_name = beginnings.filter(|(_, beginning)| name.starts_with(beginning));
    let longest = of_name.max_by_key(|(_, beginning)| beginning.len());
    longest.map(|(family, _)| family)
}

/// Runs the cases of a family, and checks that they have launched each of its entry points.
fn assert_all_run(family: &str, run: impl FnOnce(&Device)) {
    let device = Device::open().unwrap();
    let log = device.log_launches();
    run(&device);
    // Reports what has failed since.
    device.synchronize().unwrap();
    let launches = log.launches();
    let of_family: BTreeSet<&str> = cuda_std::kernel::instances()
        .map(|instance| instance.name())
        .filter(|name| family_of(name) == Some(family))
        .collect();
    let (ran, left): (Vec<&str>, Vec<&str>) =
        (of_family.iter().copied()).partition(|name| launches.contains_key(name));
    println!(
        "{family}: {} of {} entry points, {} launches on {device}",
        ran.len(),
        of_family.len(),
        launches.values().sum::<u64>()
    );
    for name in ran {
        println!("    {name}: {}", launches[name]);
    }
    assert!(!of_family.is_empty(), "{family} has no entry points");
    assert!(left.is_empty(), "{family}: no case launches {left:#?}");
}

#[test]
fn every_entry_point_is_of_a_family_that_has_a_test() {
    let names = cuda_std::kernel::instances().map(|instance| instance.name());
    // The kernels of the bench `counters` have tests of their own, beside the bench.
    let others = names.filter(|name| !name.starts_with("counters_"));
    let of_none: Vec<&str> = others.filter(|name| family_of(name).is_none()).collect();
    assert!(of_none.is_empty(), "no test runs {of_none:#?}");
}
