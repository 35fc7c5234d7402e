//! Histograms of the columns and of the rows of a matrix by the number of their nonzeros.

use crate::csr::DevicePattern;
use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use warprow_kernels::spmm::plan::columns::{self, BINS};

/// Element `b`: the number of columns or rows that have `2^b` to `2^(b+1) - 1` nonzeros, and the number of their
/// nonzeros.
type LengthBins = [(u64, u64); BINS];

/// Those of the columns of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnProfile {
    bins: LengthBins,
}

/// The histogram of so many columns or rows, whose nonzeros have been counted.
fn binned(
    device: &Device,
    count: u32,
    counts: &DeviceBuffer<u32>,
) -> Result<LengthBins, OperandError> {
    let mut bins = device.zeros::<u64>(2 * BINS)?;
    if count > 0 {
        let arguments = (count, counts.read_only(), bins.mutable());
        // SAFETY: a count for each of them; the bins are zeroed.
        unsafe { device.launch(&columns::bin(), columns::launch_bin(count), arguments)? };
    }
    let numbers = bins.download()?;
    Ok(std::array::from_fn(|bin| {
        (numbers[2 * bin], numbers[2 * bin + 1])
    }))
}

/// The histogram of `nonzeros` nonzeros that are spread evenly over as many of `count` columns or rows as they can be.
fn even_bins(count: u32, nonzeros: u32) -> LengthBins {
    let mut bins = [(0, 0); BINS];
    let used = count.min(nonzeros);
    if let Some(each) = nonzeros.checked_div(used) {
        bins[each.ilog2() as usize] = (used.into(), nonzeros.into());
    }
    bins
}

/// Those of the rows of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLengths {
    bins: LengthBins,
}

impl RowLengths {
    /// Counts those of a matrix on its device, and waits for the device.
    pub fn measure(a: &DevicePattern) -> Result<Self, OperandError> {
        let device = a.device();
        let mut counts = device.uninitialized::<u32>(a.rows as usize)?;
        if a.rows > 0 {
            let arguments = (a.rows, a.row_ptr.read_only(), counts.mutable());
            // SAFETY: the matrix has `rows + 1` row pointers; a count for each row.
            unsafe { device.launch(&columns::lengths(), columns::launch_bin(a.rows), arguments)? };
        }
        let bins = binned(device, a.rows, &counts)?;
        Ok(Self { bins })
    }

    /// Those of `nonzeros` nonzeros that are spread evenly over `rows` rows.
    pub fn even(rows: u32, nonzeros: u32) -> Self {
        Self {
            bins: even_bins(rows, nonzeros),
        }
    }

    /// Those of so many rows each with so many nonzeros.
    #[cfg(test)]
    pub fn of(rows: &[(u32, u32)]) -> Self {
        let mut bins = [(0, 0); BINS];
        for &(rows, nonzeros) in rows {
            let bin = &mut bins[(nonzeros / rows).ilog2() as usize];
            *bin = (bin.0 + u64::from(rows), bin.1 + u64::from(nonzeros));
        }
        Self { bins }
    }

    /// An upper bound of the nonzeros of a row.
    pub fn longest(&self) -> u64 {
        let last = self.bins.iter().rposition(|(rows, _)| *rows > 0);
        last.map_or(0, |bin| (1 << (bin + 1)) - 1)
    }

    /// Each bin that has rows: a power of two that is above their lengths, their number, and that of their nonzeros.
    pub fn iter(&self) -> impl Iterator<Item = (u64, f64, f64)> + Clone {
        let bins = (1..).map(|log| 1 << log).zip(self.bins);
        bins.filter(|(_, (rows, _))| *rows > 0)
            .map(|(above, (rows, nonzeros))| (above, rows as f64, nonzeros as f64))
    }
}

impl ColumnProfile {
    /// Counts the nonzeros of each column of a matrix on its device, and waits for the device.
    pub fn measure(
        device: &Device,
        cols: u32,
        col_idx: &DeviceBuffer<u32>,
    ) -> Result<Self, OperandError> {
        let mut counts = device.zeros::<u32>(cols as usize)?;
        if !col_idx.is_empty() {
            // Row pointers are u32.
            let nonzeros = col_idx.len() as u32;
            // SAFETY: columns are below `cols`, each has a zeroed count.
            unsafe {
                let arguments = (nonzeros, col_idx.read_only(), counts.mutable());
                device.launch(
                    &columns::count(),
                    columns::launch_count(nonzeros),
                    arguments,
                )?;
            }
        }
        let bins = binned(device, cols, &counts)?;
        Ok(Self { bins })
    }

    /// The expected number of distinct columns of `nonzeros` nonzeros that are drawn at random from the matrix.
    pub fn expected_distinct(&self, nonzeros: f64) -> f64 {
        let all: u64 = self.bins.iter().map(|(_, nonzeros)| nonzeros).sum();
        self.bins
            .iter()
            .filter(|(columns, _)| *columns > 0)
            .map(|&(columns, of_bin)| {
                let (columns, of_bin) = (columns as f64, of_bin as f64);
                // The number of draws of one column nearly has a Poisson distribution.
                let mean = nonzeros * of_bin / (all as f64 * columns);
                columns * -(-mean).exp_m1()
            })
            .sum()
    }

    /// That of `nonzeros` nonzeros that are spread evenly over as many of `columns` columns as they can be.
    pub fn even(columns: u32, nonzeros: u32) -> Self {
        Self {
            bins: even_bins(columns, nonzeros),
        }
    }

    /// The number of columns that have nonzeros.
    pub fn used(&self) -> f64 {
        let columns: u64 = self.bins.iter().map(|(columns, _)| columns).sum();
        columns as f64
    }

    /// The share of the nonzeros that lie in the `columns` columns with the most nonzeros, from 0 to 1. Columns of
    /// one bin count alike.
    pub fn covered(&self, columns: f64) -> f64 {
        let all: u64 = self.bins.iter().map(|(_, nonzeros)| nonzeros).sum();
        let (mut left, mut covered) = (columns, 0.0);
        for &(columns, nonzeros) in self.bins.iter().rev() {
            let taken = left.min(columns as f64);
            if taken <= 0.0 {
                continue;
            }
            covered += nonzeros as f64 * (taken / columns as f64);
            left -= taken;
        }
        if all == 0 { 1.0 } else { covered / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::DeviceCsr;
    use crate::device::EmulatorOptions;
    use sprs::CsMatI;

    #[test]
    fn rows_are_counted_by_the_powers_of_two_of_their_lengths() {
        let device = Device::emulator(EmulatorOptions::default());
        for (lengths, wanted, longest) in [
            (
                &[0, 1, 3, 0, 2, 8, 7, 5][..],
                &[(2, 1.0, 1.0), (4, 2.0, 5.0), (8, 2.0, 12.0), (16, 1.0, 8.0)][..],
                15,
            ),
            (&[0, 0], &[], 0),
            (&[], &[], 0),
        ] {
            let mut indptr = vec![0_u32];
            let mut indices = vec![];
            for &length in lengths {
                indices.extend(0..length);
                indptr.push(indices.len() as u32);
            }
            let values = vec![1.0_f32; indices.len()];
            let a = CsMatI::new((lengths.len(), 9), indptr, indices, values);
            let a = DeviceCsr::upload(&device, a.view()).unwrap();
            let found = RowLengths::measure(a.pattern()).unwrap();
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted);
            assert_eq!(found.longest(), longest);
        }
    }

    #[test]
    fn hot_columns_cover_their_share_of_the_nonzeros() {
        let device = Device::emulator(EmulatorOptions::default());
        // Column 3 has 600 nonzeros, columns 10 to 309 one each, the others none.
        let cols: Vec<u32> = (0..600).map(|_| 3).chain(10..310).collect();
        let profile = ColumnProfile::measure(&device, 701, &device.upload(&cols).unwrap()).unwrap();
        assert_eq!(profile.covered(0.0), 0.0);
        assert_eq!(profile.covered(1.0), 600.0 / 900.0);
        assert_eq!(profile.covered(151.0), 750.0 / 900.0);
        assert_eq!(profile.covered(301.0), 1.0);
        assert_eq!(profile.covered(1e9), 1.0);
    }

    #[test]
    fn few_nonzeros_are_in_different_columns_and_many_in_all() {
        let device = Device::emulator(EmulatorOptions::default());
        let cols: Vec<u32> = (0..4000).map(|k| k % 1000).collect();
        let profile =
            ColumnProfile::measure(&device, 2000, &device.upload(&cols).unwrap()).unwrap();
        assert!((profile.expected_distinct(10.0) - 10.0).abs() < 0.1);
        let half = 1000.0 * (1.0 - (-1.0_f64).exp());
        assert!((profile.expected_distinct(1000.0) - half).abs() < 1e-6);
        assert!((profile.expected_distinct(1e6) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn a_matrix_without_nonzeros_is_covered_by_any_cache() {
        let device = Device::emulator(EmulatorOptions::default());
        for cols in [0, 5] {
            let empty = device.upload::<u32>(&[]).unwrap();
            let profile = ColumnProfile::measure(&device, cols, &empty).unwrap();
            assert_eq!(profile.covered(0.0), 1.0);
        }
    }
}
