//! How far rows that are near each other share their columns, measured on a sample: see [`reuse`].

use super::columns::ColumnProfile;
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::error::Error;
use cuda_std::memory::Global;
use warprow_kernels::spmm::plan::reuse;

/// Rows of a window of neighbours: those that a multiprocessor works on at a time.
pub(super) const NEIGHBOURS: u32 = 64;

/// Windows of neighbours that are looked at, at most.
const WINDOWS: u32 = 1024;

/// Rows of a window for what comes from the L2 cache, and the nonzeros that they have on average, at most.
const WIDE: [u32; 2] = [512, 16_384];

/// Windows of them that are looked at, at most: one for each multiprocessor.
const WIDE_WINDOWS: u32 = 128;

/// Windows of so many times as many nonzeros as they have on average are left out: where hubs are, there are millions.
const LONGEST: f64 = 2.0;

/// The different columns of 64 neighbouring rows, as a part of their nonzeros: 1 where they share none, and for a matrix without
/// nonzeros. The rows are taken in `order`, if there is one. It waits for the device.
pub(super) fn distinct_share(
    a: &DevicePattern,
    order: Option<&DeviceBuffer<u32>>,
) -> Result<f64, Error> {
    let (mut counted, mut distinct) = (0_u64, 0_u64);
    for window in windows(a, NEIGHBOURS, u32::MAX, WINDOWS, order)? {
        counted += u64::from(window.counted);
        distinct += u64::from(window.distinct);
    }
    Ok(if counted == 0 {
        1.0
    } else {
        distinct as f64 / counted as f64
    })
}

/// The different columns of hundreds of rows that come one after the other, as a part of those that as many nonzeros would have if chance put them into
/// the columns, the hot ones more often: 1 if the order of the rows is as good as any, and for a matrix without nonzeros. R-MAT graphs have .96 to
/// 1, graphs of communities that lie together .2 to .4. The rows are taken in `order`, if there is one. It waits for the device.
pub(super) fn locality(
    a: &DevicePattern,
    profile: &ColumnProfile,
    order: Option<&DeviceBuffer<u32>>,
) -> Result<f64, Error> {
    let (mut expected, mut found) = (0.0, 0.0);
    let [rows, nonzeros] = WIDE;
    let mean_row = f64::from(a.nonzeros()) / f64::from(a.rows.max(1));
    let rows = ((f64::from(nonzeros) / mean_row) as u32).clamp(NEIGHBOURS, rows);
    let longest = (LONGEST * mean_row * f64::from(rows)) as u32;
    for window in windows(a, rows, longest, WIDE_WINDOWS, order)? {
        let one_of = f64::from(reuse::one_of(window.nonzeros));
        expected += profile.expected_distinct(f64::from(window.nonzeros)) / one_of;
        found += f64::from(window.distinct);
    }
    Ok(if expected == 0.0 {
        1.0
    } else {
        f64::min(found / expected, 1.0)
    })
}

/// What a window has: its nonzeros, those whose columns were counted, and the different columns of these.
struct Window {
    nonzeros: u32,
    counted: u32,
    distinct: u32,
}

/// Windows of so many rows of `order`, or of the order in which they are; those of more than `longest` nonzeros are empty.
fn windows(
    a: &DevicePattern,
    rows: u32,
    longest: u32,
    most: u32,
    order: Option<&DeviceBuffer<u32>>,
) -> Result<Vec<Window>, Error> {
    if a.nonzeros() == 0 {
        return Ok(vec![]);
    }
    let count = a.rows.div_ceil(rows).min(most);
    let mut counts = a.device().uninitialized::<u32>(3 * count as usize)?;
    let order = order.map_or(Global::from_address(0), DeviceBuffer::read_only);
    let (row_ptr, col_idx) = (a.row_ptr.read_only(), a.col_idx.read_only());
    let arguments = (
        a.rows,
        rows,
        longest,
        row_ptr,
        col_idx,
        order,
        counts.mutable(),
    );
    // SAFETY: the matrix's own, which has a row as it has a nonzero; columns are below their number, so none is `u32::MAX`; the
    // order is one of all rows; three numbers for each window.
    unsafe {
        a.device()
            .launch(&reuse::count_distinct(), reuse::launch(count), arguments)?
    };
    let windows = counts.download()?;
    Ok(windows
        .chunks_exact(3)
        .map(|window| Window {
            nonzeros: window[0],
            counted: window[1],
            distinct: window[2],
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::DeviceCsr;
    use crate::device::{Device, EmulatorOptions};
    use crate::generate;
    use sprs::CsMatI;

    fn share(a: &CsMatI<f32, u32, u32>, order: Option<&[u32]>) -> f64 {
        let device = Device::emulator(EmulatorOptions::default());
        let a = DeviceCsr::upload(&device, a.view()).unwrap();
        let order = order.map(|order| device.upload(order).unwrap());
        distinct_share(a.pattern(), order.as_ref()).unwrap()
    }

    /// 640 rows of ten nonzeros each, whose columns are those of the row's number modulo 10.
    fn ten_kinds() -> CsMatI<f32, u32, u32> {
        let row_ptr = (0..=640).map(|row| 10 * row).collect();
        let columns = (0..640).flat_map(|row| (0..10).map(move |k| 10 * (row % 10) + k));
        CsMatI::new((640, 100), row_ptr, columns.collect(), vec![1.0; 6400])
    }

    #[test]
    fn a_window_of_equal_rows_has_the_columns_of_one() {
        let by_kind: Vec<u32> = (0..10)
            .flat_map(|kind| (0..64).map(move |k| 10 * k + kind))
            .collect();
        assert_eq!(share(&ten_kinds(), Some(&by_kind)), 10.0 / 640.0);
        assert_eq!(share(&ten_kinds(), None), 100.0 / 640.0);
    }

    #[test]
    fn rows_that_share_nothing_have_as_many_columns_as_nonzeros() {
        assert_eq!(share(&CsMatI::eye(700), None), 1.0);
        assert_eq!(share(&CsMatI::zero((5, 5)), None), 1.0);
        assert_eq!(share(&CsMatI::zero((0, 5)), None), 1.0);
    }

    fn locality_of(a: &CsMatI<f32, u32, u32>) -> f64 {
        let device = Device::emulator(EmulatorOptions::default());
        let a = DeviceCsr::upload(&device, a.view()).unwrap();
        let pattern = a.pattern();
        let profile = ColumnProfile::measure(&device, pattern.cols, &pattern.col_idx).unwrap();
        locality(pattern, &profile, None).unwrap()
    }

    #[test]
    fn communities_that_lie_together_are_local_and_others_are_not() {
        let communities = |shuffled| generate::Communities {
            sizes: 60..=600,
            inside: 0.85,
            shuffled,
        };
        let graph = |shuffled| {
            generate::communities::<f32>(20_000, 160_000, &communities(shuffled), 1).unwrap()
        };
        let (together, shuffled) = (locality_of(&graph(false)), locality_of(&graph(true)));
        assert!((0.2..0.45).contains(&together), "{together}");
        assert!(shuffled > 0.95, "{shuffled}");
    }

    #[test]
    fn hubs_alone_make_no_locality() {
        let a = generate::rmat::<f32>(20_000, 160_000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
        let found = locality_of(&a);
        assert!(found > 0.95, "{found}");
        assert_eq!(locality_of(&CsMatI::zero((5, 5))), 1.0);
        assert_eq!(locality_of(&CsMatI::zero((0, 5))), 1.0);
    }

    #[test]
    fn a_sample_of_the_columns_of_long_rows_gives_their_share() {
        // 64 rows of 300 of 1000 columns, which are all met: 1000 of 19200.
        let a = generate::uniform::<f32>(64, 1000, 19_200, 1).unwrap();
        let found = share(&a, None);
        assert!((found - 1000.0 / 19_200.0).abs() < 0.01, "{found}");
    }
}
