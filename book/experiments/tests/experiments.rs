//! Every experiment of the book on every device: right kernels with odd sizes, wrong ones with their fault.

use support::devices;
use warprow::Device;
use warprow_book::{
    Experiment, axpy, copies, faults, hello, parts, plans, scans, spgemm, spmm, spmv, sums,
    together, transpose, xw,
};

/// Runs the experiment; what it prints, or its error.
fn run(device: &Device, experiment: Experiment) -> Result<String, String> {
    warprow_book::load_kernels(device).unwrap();
    let mut out = Vec::new();
    match experiment.run(device, &mut out) {
        Ok(_) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// Runs an experiment that must succeed on each device. It compares its result with the host's.
fn succeeds(experiment: &Experiment) {
    for device in devices() {
        if let Err(error) = run(&device, experiment.clone()) {
            panic!("{experiment:?} on {device}: {error}");
        }
    }
}

/// Runs an experiment that the emulator must refuse with an error that has all `parts`.
fn fails(experiment: &Experiment, parts: &[&str]) {
    let device = Device::emulator(warprow::device::EmulatorOptions::default());
    match run(&device, experiment.clone()) {
        Ok(text) => panic!("{experiment:?} succeeded: {text}"),
        Err(error) => {
            for part in parts {
                assert!(error.contains(part), "wanted `{part}`, found: {error}");
            }
        }
    }
}

#[test]
fn threads_know_their_block_warp_and_lane() {
    for (elements, block) in [(1, 1), (31, 32), (100, 48), (1000, 1024), (2049, 33)] {
        succeeds(&Experiment::Hello(hello::Options { elements, block }));
    }
}

#[test]
fn axpy_takes_any_number_of_elements_and_needs_its_guard() {
    for elements in [1, 127, 128, 129, 1000] {
        succeeds(&Experiment::Axpy(axpy::Options {
            elements,
            without_guard: false,
        }));
    }
    let without_guard = Experiment::Axpy(axpy::Options {
        elements: 1000,
        without_guard: true,
    });
    fails(
        &without_guard,
        &["out of bounds", "hello.rs", "of 1000 f32"],
    );
}

#[test]
fn copies_are_those_of_their_originals() {
    for (elements, stride, by_four) in [
        (1, 1, false),
        (129, 3, false),
        (1000, 32, false),
        (4, 1, true),
        (1028, 1, true),
    ] {
        succeeds(&Experiment::Copy(copies::Options {
            elements,
            stride,
            by_four,
        }));
    }
}

#[test]
fn matrices_of_all_shapes_are_transposed() {
    use transpose::Kernel::{Directly, PaddedTiles, Tiles};
    for kernel in [Directly, Tiles, PaddedTiles] {
        for (rows, cols) in [(1, 1), (1, 100), (33, 31), (64, 64), (100, 7)] {
            succeeds(&Experiment::Transpose(transpose::Options {
                rows,
                cols,
                kernel,
            }));
        }
    }
}

#[test]
fn reversing_needs_its_barrier() {
    let reverse = |groups, without_barrier| {
        Experiment::Reverse(together::Reverse {
            groups,
            without_barrier,
        })
    };
    succeeds(&reverse(1, false));
    succeeds(&reverse(5, false));
    fails(&reverse(1, true), &["shared memory", "together.rs"]);
}

#[test]
fn differences_and_kept_elements_are_those_of_the_host() {
    use together::{Counting, Differences, Keep};
    for elements in [1, 31, 32, 33, 1000] {
        succeeds(&Experiment::Differences(Differences { elements }));
        for by in [Counting::Threads, Counting::Warps] {
            succeeds(&Experiment::Keep(Keep { elements, by }));
        }
    }
}

#[test]
fn a_message_needs_its_fences() {
    let message = |without_fences| Experiment::Message(together::Message { without_fences });
    succeeds(&message(false));
    fails(&message(true), &["race", "together.rs"]);
}

#[test]
fn sums_are_those_of_the_host() {
    use sums::Kernel::{Blocks, Threads, Warps};
    for by in [Threads, Warps, Blocks] {
        for elements in [1, 33, 255, 256, 257, 5000] {
            succeeds(&Experiment::Sum(sums::Options { elements, by }));
        }
    }
}

#[test]
fn a_scan_adds_up_all_elements_before_each_in_many_tiles() {
    for elements in [1, 255, 256, 257, 20_000] {
        succeeds(&Experiment::Scan(scans::Options {
            elements,
            without_tickets: false,
        }));
    }
}

#[test]
fn a_product_with_a_vector_takes_rows_of_all_lengths() {
    let matrix = |name: &str| spmv::Matrix {
        matrix: Some(format!("{}/../../data/{name}", env!("CARGO_MANIFEST_DIR")).into()),
    };
    for row_by in [spmv::Kernel::Thread, spmv::Kernel::Warp] {
        for name in ["small.mtx", "symmetric.mtx", "pattern.mtx"] {
            succeeds(&Experiment::Spmv(spmv::Options {
                matrix: matrix(name),
                row_by,
            }));
        }
    }
    succeeds(&Experiment::Rows(matrix("skew.mtx")));
    succeeds(&Experiment::Rows(spmv::Matrix {
        matrix: Some("hubs".into()),
    }));
}

#[test]
fn products_with_a_dense_matrix_are_right_by_each_step_and_by_rungs() {
    use spmm::{Kernel, Step};
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/");
    let rungs = ["warp_per_row", "sliced", "vector"].map(|name| name.parse().unwrap());
    let steps = [Step::SubWarpPerRow, Step::EqualTasks, Step::OrderedTasks].map(Kernel::Step);
    for name in ["small.mtx", "symmetric.mtx", "pattern.mtx", "skew.mtx"] {
        succeeds(&Experiment::Spmm(spmm::Options {
            kernels: rungs.into_iter().chain(steps).collect(),
            matrix: spmv::Matrix {
                matrix: Some(format!("{data}{name}").into()),
            },
        }));
    }
    assert!("no_such_kernel".parse::<Kernel>().is_err());
}

#[test]
fn rows_of_many_tasks_are_joined() {
    use spmm::{Kernel, Step};
    // The longest row has 333 nonzeros, which are more than ten tasks.
    succeeds(&Experiment::Spmm(spmm::Options {
        kernels: vec![
            Kernel::Step(Step::EqualTasks),
            Kernel::Step(Step::OrderedTasks),
        ],
        matrix: spmv::Matrix::default(),
    }));
}

#[test]
fn products_of_dense_matrices_are_right_by_rungs() {
    let names = ["global_sum", "row_in_registers", "wide_loads", "staged"];
    for (rows, depth, cols) in [(1, 1, 1), (33, 20, 17), (200, 128, 16)] {
        succeeds(&Experiment::Xw(xw::Options {
            kernels: names.iter().map(|name| name.parse().unwrap()).collect(),
            rows,
            depth,
            cols,
        }));
    }
    assert!("no_such_kernel".parse::<xw::Rung>().is_err());
}

#[test]
fn a_graph_times_itself_is_right_by_each_rung_until_rows_are_too_long() {
    use spgemm::Rung::{Default, DynamicTable, FittedTable, FixedTable, SplitTable};
    succeeds(&Experiment::Spgemm(spgemm::Options {
        rungs: vec![FixedTable, DynamicTable, FittedTable, SplitTable, Default],
        rows: 300,
    }));
    let too_long = Experiment::Spgemm(spgemm::Options {
        rungs: vec![FixedTable],
        rows: 4000,
    });
    fails(&too_long, &["2049", "at most 2048"]);
}

#[test]
fn plans_are_made_for_each_kind_of_matrix() {
    use plans::Kind::{Communities, LongRows, Packages};
    for kind in [Packages, LongRows, Communities] {
        succeeds(&Experiment::Plan(plans::Options { kind, features: 32 }));
    }
}

#[test]
fn products_over_several_devices_are_right_for_each_kind_of_matrix_and_order() {
    use parts::Kind::{Communities, Hubs, LongRow};
    use parts::Order::{Clustered, Given};
    let cases = [
        (LongRow, 1, None),
        (LongRow, 5, Some(Given)),
        (Hubs, 3, None),
        (Communities, 4, Some(Clustered)),
    ];
    for (kind, parts, order) in cases {
        succeeds(&Experiment::Parts(parts::Options {
            kind,
            parts: parts.try_into().unwrap(),
            order,
            features: 5,
        }));
    }
}

#[test]
fn each_wrong_kernel_gets_its_fault() {
    use faults::Fault;
    let expected = [
        (Fault::AddToNothing, "never written"),
        (Fault::AddWithoutAtomics, "race"),
        (Fault::BarrierForSome, "barrier"),
        (Fault::ShuffleForSome, "lane"),
        (Fault::UnalignedLoad, "multiple of 16"),
        (Fault::CopyWithoutWait, "asynchronous copy"),
        (Fault::WaitForNobody, "waits for a change"),
    ];
    for (fault, part) in expected {
        let experiment = Experiment::Fault(faults::Options { fault });
        fails(&experiment, &[part, "faults.rs"]);
    }
}
