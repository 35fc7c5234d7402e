//! Counters of SpMM's kernels on the emulator: those of a tiny matrix by hand, and what a report says of its launch.

use sprs::CsMatI;
use support::devices;
use warprow::device::{
    CounterOptions, Device, DeviceError, DeviceProfile, EmulatorOptions, LaunchReport,
};
use warprow::{CsrMatrix, Spmm, SpmmKernel, SpmmOptions, SpmmTuning, generate};

fn counting_emulator() -> Device {
    let options = EmulatorOptions::new().counters(CounterOptions::default());
    Device::emulator_of(&DeviceProfile::h200(), options)
}

/// Rows of three, no and one nonzeros.
fn tiny() -> CsrMatrix<f32> {
    CsMatI::new((3, 4), vec![0, 3, 3, 4], vec![0, 1, 3, 2], vec![1.0; 4])
}

/// The reports of a product's launches with 32 features, without those of its plan.
fn reports(device: &Device, kernel: SpmmKernel) -> Vec<LaunchReport> {
    let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel));
    let plan = Spmm::plan(device, tiny().view(), options).unwrap();
    device.launch_reports().unwrap();
    let x = generate::dense::<f32>(4, 32, 1).unwrap();
    plan.multiply(x.view()).unwrap();
    device.launch_reports().unwrap()
}

#[test]
fn a_warp_per_row_makes_the_requests_that_its_source_says() {
    let found = reports(&counting_emulator(), SpmmKernel::WarpPerRow);
    let [report] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(report.kernel, "spmm_warp_per_row_f32");
    assert_eq!((report.grid, report.block), ([1, 1, 1], [128, 1, 1]));
    let loads = report.total.global_loads;
    // Each row: the row pointer and the next one, by all lanes. Each row with nonzeros: columns and values, a lane a
    // nonzero. Each nonzero: 32 elements of X.
    assert_eq!(loads.requests, 3 * 2 + 2 * 2 + 4);
    assert_eq!(loads.sectors, 3 * 2 + 2 * 2 + 4 * 4);
    assert_eq!(loads.lanes, 6 * 32 + 2 * (3 + 1) + 4 * 32);
    assert_eq!(loads.bytes, 6 * 4 + 2 * (3 + 1) * 4 + 4 * 128);
    // Each row: 32 elements of Y.
    let stores = report.total.global_stores;
    assert_eq!((stores.requests, stores.sectors), (3, 3 * 4));
    // Each nonzero: its column and its value.
    let shuffles = report.total.shuffles;
    assert_eq!((shuffles.executed, shuffles.lanes), (8, 8 * 32));
    assert_eq!(report.total.global_reductions, Default::default());
    assert_eq!(report.total.atomic_repeats, 0);

    assert_eq!(report.blocks.len(), 1);
    assert_eq!(report.blocks[0].elements, 4, "columns of A");
    let of_row = |nonzeros: u64, chunks: u64| 2 + 2 * chunks + 3 * nonzeros + 1;
    assert_eq!(
        report.blocks[0].warps,
        [of_row(3, 1), of_row(0, 0), of_row(1, 1), 0]
    );
    let occupancy = report.occupancy.expect("the kernel is in the table");
    assert_eq!(occupancy.max_warps, 64);
    assert!(occupancy.warps > 0 && occupancy.registers > 0);
    assert!(report.memory.is_some(), "the profile has caches");
}

#[test]
fn contended_words_have_the_names_of_parameters() {
    let found = reports(&counting_emulator(), SpmmKernel::ThreadPerNonzero);
    let report = found.last().unwrap();
    assert_eq!(report.kernel, "spmm_thread_per_nonzero_f32");
    // One warp; each of its four lanes adds to 32 elements of its row.
    let reductions = report.total.global_reductions;
    assert_eq!((reductions.requests, reductions.lanes), (32, 4 * 32));
    // Two of the three lanes of row 0 come after another one.
    assert_eq!(report.total.atomic_repeats, 32 * 2);
    let first = &report.contended[0];
    assert_eq!(first.operations, 3);
    let element = first.element.as_deref().unwrap_or_default();
    assert!(element.starts_with("y.data["), "{element}");
}

#[test]
fn a_report_is_taken_once_and_the_last_one_stays() {
    let device = counting_emulator();
    assert_eq!(reports(&device, SpmmKernel::WarpPerRow).len(), 1);
    assert_eq!(device.launch_reports().unwrap(), []);
    assert_eq!(device.last_launch_report().unwrap(), None);
    let plan = Spmm::plan(&device, tiny().view(), SpmmOptions::default()).unwrap();
    let x = generate::dense::<f32>(4, 3, 1).unwrap();
    plan.multiply(x.view()).unwrap();
    let last = device.last_launch_report().unwrap();
    assert_eq!(device.launch_reports().unwrap().pop(), last);
}

#[test]
fn counters_can_be_switched_off_and_on() {
    let device = counting_emulator();
    device.set_counters(None).unwrap();
    let plan = Spmm::plan(&device, tiny().view(), SpmmOptions::default()).unwrap();
    let error = device.launch_reports().unwrap_err();
    assert!(matches!(error, DeviceError::NoCounters { .. }), "{error}");
    let counters = Some(CounterOptions::default());
    device.set_counters(counters).unwrap();
    assert_eq!(device.launch_reports().unwrap(), []);
    let x = generate::dense::<f32>(4, 3, 1).unwrap();
    plan.multiply(x.view()).unwrap();
    device.set_counters(None).unwrap();
    assert!(!device.launch_reports().unwrap().is_empty());
}

#[test]
fn a_device_that_does_not_count_says_so() {
    for device in devices() {
        for error in [
            device.launch_reports().unwrap_err(),
            device.last_launch_report().unwrap_err(),
        ] {
            assert!(matches!(error, DeviceError::NoCounters { .. }), "{error}");
            assert!(error.to_string().starts_with(device.name()), "{error}");
        }
        let counters = device.set_counters(Some(CounterOptions::default()));
        assert_eq!(counters.is_ok(), device.is_emulator());
    }
}
