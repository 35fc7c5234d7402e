//! How far neighbouring rows share their columns, measured on a sample: see [`reuse`].

use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::error::Error;
use cuda_std::memory::Global;
use warprow_kernels::spmm::reuse;

/// Windows of rows that are looked at, at most.
const WINDOWS: u32 = 1024;

/// The different columns of 64 neighbouring rows, as a part of their nonzeros: 1 where they share none, and for a matrix without
/// nonzeros. The rows are taken in `order`, if there is one. It waits for the device.
pub(super) fn distinct_share(
    a: &DevicePattern,
    order: Option<&DeviceBuffer<u32>>,
) -> Result<f64, Error> {
    if a.nonzeros() == 0 {
        return Ok(1.0);
    }
    let device = a.device();
    let mut counts = device.zeros::<u64>(2)?;
    let order = order.map_or(Global::from_address(0), DeviceBuffer::read_only);
    let (row_ptr, col_idx) = (a.row_ptr.read_only(), a.col_idx.read_only());
    let config = reuse::launch(a.rows.div_ceil(reuse::WINDOW).min(WINDOWS));
    let arguments = (a.rows, row_ptr, col_idx, order, counts.mutable());
    // SAFETY: the matrix's own, which has a row as it has a nonzero; columns are below their number, so none is `u32::MAX`; the
    // order is one of all rows.
    unsafe { device.launch(&reuse::count_distinct(), config, arguments)? };
    let counts = counts.download()?;
    Ok(if counts[0] == 0 {
        1.0
    } else {
        counts[1] as f64 / counts[0] as f64
    })
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

    #[test]
    fn a_sample_of_the_columns_of_long_rows_gives_their_share() {
        // 64 rows of 300 of 1000 columns, which are all met: 1000 of 19200.
        let a = generate::uniform::<f32>(64, 1000, 19_200, 1).unwrap();
        let found = share(&a, None);
        assert!((found - 1000.0 / 19_200.0).abs() < 0.01, "{found}");
    }
}
