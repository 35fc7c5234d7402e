//! The emulator's counters against those of an NVIDIA H200, request by request.
//!
//! The figures of the H200 are Nsight Compute's, of `l1tex__t_requests_pipe_lsu_mem_global_op_{ld,st,red}.sum` and
//! `l1tex__t_sectors_…`: the dependency graph of Debian's packages, 32 features, f32.

use ndarray::Array2;
use warprow::device::{Checks, Device, DeviceProfile, EmulatorOptions, LaunchReport};
use warprow::matrix_market::read_matrix_market;
use warprow::{CsrMatrix, Spmm, SpmmKernel, SpmmOptions, SpmmTuning};

/// Requests and sectors of loads, sectors of stores, requests and sectors of reductions.
type Figures = [u64; 5];

/// What an NVIDIA H200 counted for these rungs, measured with Nsight Compute. `in_step` has changed since it was
/// measured.
const MEASURED: [(SpmmKernel, Figures); 10] = [
    (
        SpmmKernel::ThreadPerNonzero,
        [305_375, 6_746_457, 0, 279_200, 8_934_144],
    ),
    (
        SpmmKernel::WarpPerNonzero,
        [1_116_768, 1_954_344, 0, 279_192, 1_116_768],
    ),
    (
        SpmmKernel::ColumnMajor,
        [305_375, 1_406_393, 0, 279_200, 8_934_144],
    ),
    (
        SpmmKernel::WarpPerRowCached,
        [518_884, 1_412_072, 253_744, 0, 0],
    ),
    (SpmmKernel::BlockPerRow, [645_756, 1_538_944, 253_744, 0, 0]),
    (SpmmKernel::WarpPerRow, [518_884, 1_412_072, 253_744, 0, 0]),
    (SpmmKernel::Coarsened, [798_076, 1_691_264, 253_744, 0, 0]),
    (
        SpmmKernel::Sliced,
        [648_004, 1_541_192, 251_884, 1_027, 4_108],
    ),
    (
        SpmmKernel::SlicedTwoPass,
        [648_004, 1_541_192, 255_992, 0, 0],
    ),
    (SpmmKernel::Reordered, [582_320, 1_475_462, 253_744, 0, 0]),
];

fn figures(report: &LaunchReport) -> Figures {
    let counters = &report.total;
    [
        counters.global_loads.requests,
        counters.global_loads.sectors,
        counters.global_stores.sectors,
        counters.global_reductions.requests,
        counters.global_reductions.sectors,
    ]
}

fn debian() -> CsrMatrix<f32> {
    read_matrix_market("../data/debian-bookworm-depends.mtx.gz").unwrap()
}

/// The report of the launch with the most work among those of a product on an emulator of an H200.
fn main_launch(a: &CsrMatrix<f32>, kernel: SpmmKernel) -> LaunchReport {
    let options = EmulatorOptions::new().checks(Checks::BoundsOnly);
    let device = Device::emulator_of(&DeviceProfile::h200(), options);
    let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel));
    let plan = Spmm::plan(&device, a.view(), options).unwrap();
    device.set_counters(Some(Default::default())).unwrap();
    plan.multiply(Array2::ones((a.cols(), 32)).view()).unwrap();
    let reports = device.launch_reports().unwrap();
    let work = |report: &LaunchReport| report.total.global_loads.requests;
    reports.into_iter().max_by_key(work).unwrap()
}

#[test]
fn rungs_make_the_requests_that_an_h200_counts() {
    let a = debian();
    for (kernel, measured) in MEASURED {
        let report = main_launch(&a, kernel);
        assert_eq!(figures(&report), measured, "{}", report.kernel);
    }
}

/// The compiler has unrolled the loop over a row, first by two and then by four: an odd nonzero comes first, then
/// eights, a four and a two. Lanes with rows of different lengths execute these parts one after the other. The emulator
/// counts the loop as it is written.
#[test]
fn the_rolled_loop_of_a_thread_for_a_row_makes_fewer_requests_than_the_unrolled_one_of_an_h200() {
    let a = debian();
    let report = main_launch(&a, SpmmKernel::ThreadPerRow);
    let lengths: Vec<_> = a.outer_iterator().map(|row| row.nnz() as u64).collect();
    let warps = || lengths.chunks(32);
    let longest = |warp: &[u64]| warp.iter().copied().max().unwrap_or(0);
    let any = |warp: &[u64], part| u64::from(warp.iter().any(|length| length & part != 0)) * part;
    let unrolled = |warp: &[u64]| {
        [1, 2, 4].map(|part| any(warp, part)).iter().sum::<u64>() + longest(warp) / 8 * 8
    };
    // For each warp, two row pointers; for each feature and nonzero, a column, a value and an element of X.
    let requests = |nonzeros: u64| 2 * warps().count() as u64 + 32 * 3 * nonzeros;
    assert_eq!(
        report.total.global_loads.requests,
        requests(warps().map(longest).sum())
    );
    assert_eq!(report.total.global_stores.sectors, 2_029_952);
    const H200: u64 = 4_650_174;
    assert_eq!(requests(warps().map(unrolled).sum()), H200);
}
