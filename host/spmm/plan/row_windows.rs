//! Windows: consecutive rows of a matrix, whose nonzeros and distinct columns are counted on the device. See
//! [the kernels](warprow_kernels::spmm::plan::windows).

use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, optional_pointer};
use crate::operand::OperandError;
use warprow_kernels::spmm::plan::distinct;
use warprow_kernels::spmm::plan::windows::{self, WindowSize, Windows};

/// Consecutive rows, and what was counted of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowWindow {
    /// The nonzeros.
    pub nonzeros: u32,
    /// The nonzeros in the sample of the columns.
    pub counted: u32,
    /// The distinct columns in the sample.
    pub distinct: u32,
}

/// Windows whose numbers the device counts. The host may launch more in the meantime.
#[derive(Debug)]
pub struct CountingWindows {
    counts: [u32; 3],
    found: DeviceBuffer<u32>,
}

impl CountingWindows {
    /// Launches the counting of windows of up to three sizes, each a number of rows and a maximum number of windows.
    /// The rows of the matrix are in `order`, or in the matrix's own.
    pub fn count(
        a: &DevicePattern,
        sizes: &[(u32, u32)],
        order: Option<&DeviceBuffer<u32>>,
    ) -> Result<Self, OperandError> {
        Self::count_after(a, sizes, order, 0)
    }

    /// The same without the first nonzero of each row.
    pub fn count_without_first(
        a: &DevicePattern,
        sizes: &[(u32, u32)],
        order: &DeviceBuffer<u32>,
    ) -> Result<Self, OperandError> {
        Self::count_after(a, sizes, Some(order), 1)
    }

    /// The same without the first `skipped` nonzeros of each row. Without an order none are skipped.
    fn count_after(
        a: &DevicePattern,
        sizes: &[(u32, u32)],
        order: Option<&DeviceBuffer<u32>>,
        skipped: u32,
    ) -> Result<Self, OperandError> {
        debug_assert!(order.is_some() || skipped == 0, "{skipped} skipped");
        let device = a.device();
        // A matrix without nonzeros may have no rows, either.
        let sizes = if a.nonzeros() == 0 { &[] } else { sizes };
        let [first, second, third] = std::array::from_fn(|size| match sizes.get(size) {
            Some(&(rows, most)) => WindowSize::new(rows, most, a.rows),
            None => WindowSize::NONE,
        });
        let counts = [first, second, third].map(|size| size.count);
        let (mut max_parts, mut max_tables) = (0_u32, 0_usize);
        for (parts, tables) in counts.map(|count| windows::max_parts(count, a.nonzeros())) {
            max_parts = max_parts.saturating_add(parts);
            max_tables += tables as usize;
        }
        let windows = Windows {
            row_ptr: a.row_ptr.read_only(),
            order: optional_pointer(order),
            skipped,
            rows: a.rows,
            first,
            second,
            third,
        };
        let mut found = device.uninitialized::<u32>(4 * windows.count() as usize)?;
        if windows.count() == 0 {
            return Ok(Self { counts, found });
        }
        let mut parts = device.uninitialized::<u32>(4 * max_parts as usize)?;
        let mut part_counts = device.zeros::<u32>(2)?;
        let mut tables = device.uninitialized::<u32>(max_tables * windows::TABLE_SLOTS)?;
        let arguments = (
            windows,
            part_counts.mutable(),
            found.mutable(),
            parts.mutable(),
            tables.mutable(),
        );
        let config = windows::launch_divide(windows.count());
        // SAFETY: row pointers are those of the matrix, which has a nonzero and so a row; `order` is a permutation of
        // the rows, and nothing is skipped without one; `found` has four numbers for each window, `parts` and `tables`
        // have theirs for the maximum numbers.
        unsafe { device.launch(&windows::divide(), config, arguments)? };
        let arguments = (
            windows.row_ptr,
            a.col_idx.read_only(),
            windows.order,
            windows.skipped,
            part_counts.read_only(),
            parts.read_only(),
            tables.mutable(),
            found.mutable(),
        );
        let config = distinct::launch_count(max_parts, device.properties().multiprocessors);
        // SAFETY: the launch before has written windows, parts and tables of the matrix's rows in `order`, and skipped
        // as many nonzeros; columns are below `a.cols`, so none is `u32::MAX`.
        unsafe { device.launch(&distinct::count_distinct(), config, arguments)? };
        Ok(Self { counts, found })
    }

    /// Waits for the device. The windows of each size.
    pub fn wait(self) -> Result<[Vec<RowWindow>; 3], OperandError> {
        let numbers = self.found.download()?;
        let mut windows = numbers.chunks_exact(4).map(|window| RowWindow {
            nonzeros: window[0],
            counted: window[1],
            distinct: window[2],
        });
        let of_size = |count: u32| windows.by_ref().take(count as usize).collect();
        Ok(self.counts.map(of_size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::DeviceCsr;
    use crate::device::{Device, EmulatorOptions};
    use crate::generate;
    use sprs::CsMatI;
    use std::collections::HashSet;

    /// The windows of `window_rows` rows, of which the first has the number `first`, without the first `skipped`
    /// nonzeros of each row.
    fn on_the_host(
        a: &CsMatI<f32, u32, u32>,
        window_rows: usize,
        first: usize,
        order: &[u32],
        skipped: usize,
    ) -> Vec<RowWindow> {
        let window = |(number, rows): (usize, &[u32])| {
            let columns = rows.iter().flat_map(|&row| -> Vec<u32> {
                let row = a.outer_view(row as usize).unwrap();
                row.indices().iter().copied().skip(skipped).collect()
            });
            let columns: Vec<u32> = columns.collect();
            let nonzeros = columns.len() as u32;
            let one_in = windows::sampled_one_in(nonzeros);
            let is_sampled = |&column: &u32| distinct::is_sampled(column, number as u32, one_in);
            let sampled: Vec<u32> = columns.into_iter().filter(is_sampled).collect();
            RowWindow {
                nonzeros,
                counted: sampled.len() as u32,
                distinct: HashSet::<u32>::from_iter(sampled).len() as u32,
            }
        };
        let windows = (first..).zip(order.chunks(window_rows));
        windows.map(window).collect()
    }

    #[test]
    fn windows_in_several_parts_are_counted_like_windows_in_one() {
        // 70,000 nonzeros in 301 rows: a window of all has nine parts, one of 64 rows one part; with two rows of
        // 20,000 nonzeros some of them have three to six.
        let few = generate::uniform::<f32>(299, 50_000, 30_000, 1).unwrap();
        let hubs = generate::uniform::<f32>(2, 50_000, 40_000, 2).unwrap();
        let a = sprs::vstack(&[few.view(), hubs.view()]);
        let device = Device::emulator(EmulatorOptions::default());
        let there = DeviceCsr::upload(&device, a.view()).unwrap();
        let given: Vec<u32> = (0..301).collect();
        let other: Vec<u32> = (0..301).map(|place| place * 97 % 301).collect();
        let uploaded = device.upload(&other).unwrap();
        let cases = [
            (&given, None, 0),
            (&other, Some(&uploaded), 0),
            (&other, Some(&uploaded), 1),
        ];
        for (order, uploaded, skipped) in cases {
            let kinds = [(8, 1000), (64, 1000), (1024, 128)];
            let counting = CountingWindows::count_after(there.pattern(), &kinds, uploaded, skipped);
            let found = counting.unwrap().wait().unwrap();
            let mut first = 0;
            for (kind, found) in kinds.iter().zip(found) {
                let wanted = on_the_host(&a, kind.0 as usize, first, order, skipped as usize);
                assert_eq!(found, wanted, "{} rows, {skipped} skipped", kind.0);
                first += found.len();
            }
        }
    }

    #[test]
    fn few_samples_have_a_certain_column() {
        for column in [0, 1, 77, 1 << 20] {
            let windows = (0..1024).filter(|&window| distinct::is_sampled(column, window, 64));
            let count = windows.count();
            assert!((4..40).contains(&count), "column {column}: {count}");
        }
    }

    #[test]
    fn a_matrix_without_nonzeros_has_no_windows() {
        let device = Device::emulator(EmulatorOptions::default());
        for shape in [(0, 0), (0, 5), (5, 0), (5, 5)] {
            let a = DeviceCsr::upload(&device, CsMatI::<f32, u32, u32>::zero(shape).view());
            let counting = CountingWindows::count(a.unwrap().pattern(), &[(8, 4)], None);
            let found = counting.unwrap().wait().unwrap();
            assert_eq!(found.concat(), [], "{shape:?}");
        }
    }
}
