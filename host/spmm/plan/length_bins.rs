//! Histograms of the columns and of the rows of a matrix by the number of their nonzeros.

use crate::csr::DevicePattern;
use crate::device::{Device, DeviceBuffer, DeviceError};
use crate::operand::OperandError;
use cuda_std::launch::LaunchConfig;
use cuda_std::memory::GlobalMut;
use warprow_kernels::spmm::plan::columns::{self, BINS};

/// A histogram of the columns or of the rows of a matrix. Element `b`: the number of those that have `2^b` to
/// `2^(b+1) - 1` nonzeros, and the number of their nonzeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LengthBins {
    bins: [(u64, u64); BINS],
}

/// A histogram that the device counts. The host may launch more in the meantime.
#[derive(Debug)]
pub struct CountingBins {
    bins: DeviceBuffer<u64>,
}

impl CountingBins {
    /// Counts the rows of a matrix on its device.
    pub fn rows(a: &DevicePattern) -> Result<Self, OperandError> {
        let device = a.device();
        Self::launch(device, a.rows, |config, bins| {
            let arguments = (a.rows, a.row_ptr.read_only(), bins);
            // SAFETY: the matrix has `rows + 1` row pointers; the bins are zeroed.
            unsafe { device.launch(&columns::bin_rows(), config, arguments) }
        })
    }

    /// Counts the columns of a matrix on its device; of a large matrix by a sample of the nonzeros.
    pub fn columns(
        device: &Device,
        cols: u32,
        col_idx: &DeviceBuffer<u32>,
    ) -> Result<Self, OperandError> {
        // The number of nonzeros is a u32, as row pointers are.
        let one_in = columns::sampled_one_in(col_idx.len() as u32, cols);
        Self::columns_of_sample(device, cols, col_idx, one_in)
    }

    /// The same in a sample of one in so many, a power of two.
    fn columns_of_sample(
        device: &Device,
        cols: u32,
        col_idx: &DeviceBuffer<u32>,
        one_in: u32,
    ) -> Result<Self, OperandError> {
        let mut counts = device.zeros::<u32>(cols as usize)?;
        // Where all columns are counted in full, there is no other sample.
        let in_sample = if one_in == 1 { 0 } else { cols as usize };
        let mut sampled = device.zeros::<u32>(in_sample)?;
        if !col_idx.is_empty() {
            let nonzeros = col_idx.len() as u32;
            let col_idx = col_idx.read_only();
            // SAFETY: columns are below `cols`; each has a zeroed count and, if there is a sample, a number in it.
            unsafe {
                if one_in > 1 {
                    let arguments = (nonzeros, one_in, col_idx, sampled.mutable());
                    let config = columns::launch_sample(nonzeros, one_in);
                    device.launch(&columns::sample(), config, arguments)?;
                }
                let of_columns = (sampled.read_only(), counts.mutable());
                let arguments = (nonzeros, one_in, col_idx, of_columns.0, of_columns.1);
                device.launch(
                    &columns::count(),
                    columns::launch_count(nonzeros),
                    arguments,
                )?;
            }
        }
        Self::launch(device, cols, |config, bins| {
            let of_columns = (sampled.read_only(), counts.read_only());
            let arguments = (cols, one_in, of_columns.0, of_columns.1, bins);
            // SAFETY: the numbers of each column; the bins are zeroed.
            unsafe { device.launch(&columns::bin_columns(), config, arguments) }
        })
    }

    /// Zeroes the bins, and calls `launch` if there are columns or rows.
    fn launch(
        device: &Device,
        count: u32,
        launch: impl FnOnce(LaunchConfig, GlobalMut<u64>) -> Result<(), DeviceError>,
    ) -> Result<Self, OperandError> {
        let mut bins = device.zeros::<u64>(2 * BINS)?;
        if count > 0 {
            let config = columns::launch_bin(count, device.properties().multiprocessors);
            launch(config, bins.mutable())?;
        }
        Ok(Self { bins })
    }

    /// Waits for the device.
    pub fn wait(self) -> Result<LengthBins, OperandError> {
        let numbers = self.bins.download()?;
        let bins = std::array::from_fn(|bin| (numbers[2 * bin], numbers[2 * bin + 1]));
        Ok(LengthBins { bins })
    }
}

impl LengthBins {
    /// That of `nonzeros` nonzeros that are spread evenly over as many of `count` columns or rows as they can be.
    pub fn even(count: u32, nonzeros: u32) -> Self {
        let mut bins = [(0, 0); BINS];
        let used = count.min(nonzeros);
        if let Some(each) = nonzeros.checked_div(used) {
            bins[each.ilog2() as usize] = (used.into(), nonzeros.into());
        }
        Self { bins }
    }

    /// That of rows. Each pair is a number of rows and the sum of their nonzeros, at least one a row.
    #[cfg(test)]
    pub fn of(rows: &[(u32, u32)]) -> Self {
        let mut bins = [(0, 0); BINS];
        for &(rows, nonzeros) in rows {
            let bin = &mut bins[(nonzeros / rows).ilog2() as usize];
            *bin = (bin.0 + u64::from(rows), bin.1 + u64::from(nonzeros));
        }
        Self { bins }
    }

    /// An upper bound of the nonzeros of one row or column.
    pub fn longest(&self) -> u64 {
        let last = self.bins.iter().rposition(|(rows, _)| *rows > 0);
        last.map_or(0, |bin| (1 << (bin + 1)) - 1)
    }

    /// Each bin that has rows or columns: a power of two that is above their lengths, their number, and that of their
    /// nonzeros.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, f64, f64)> + Clone {
        let bins = self.bins.into_iter().enumerate();
        bins.filter(|(_, (rows, _))| *rows > 0)
            .map(|(log, (rows, nonzeros))| (2 << log, rows as f64, nonzeros as f64))
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

    /// The number of rows or columns that have nonzeros; that of columns is an estimate if the matrix is large.
    pub fn used(&self) -> f64 {
        let used: u64 = self.bins.iter().map(|(count, _)| count).sum();
        used as f64
    }

    /// The probability that two rows or columns at random, that have nonzeros, have lengths between the same powers of
    /// two; 1 if none have.
    pub fn same_octave(&self) -> f64 {
        let used = self.used();
        let squares = self.iter().map(|(_, number, _)| number * number);
        match used > 0.0 {
            true => squares.sum::<f64>() / (used * used),
            false => 1.0,
        }
    }

    /// The expected length of the longest of `drawn` rows that are drawn at random from `rows` rows, which include
    /// the empty ones that are in no bin. A row counts as the mean of its bin, and as `most` at most.
    pub fn expected_longest(&self, rows: f64, drawn: i32, most: f64) -> f64 {
        // The share of the rows that are at most as long as those of a bin: first, the empty ones.
        let mut share = (1.0 - self.used() / rows).max(0.0);
        let of_bins = self.iter().map(|(_, of_bin, nonzeros)| {
            let shorter = share;
            share = (share + of_bin / rows).min(1.0);
            (share.powi(drawn) - shorter.powi(drawn)) * (nonzeros / of_bin).min(most)
        });
        of_bins.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::DeviceCsr;
    use crate::device::EmulatorOptions;
    use crate::spmm::plan::columns::Columns;
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
            let found = CountingBins::rows(a.pattern()).unwrap().wait().unwrap();
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted);
            assert_eq!(found.longest(), longest);
        }
    }

    fn profile(device: &Device, cols: u32, col_idx: &[u32]) -> LengthBins {
        let col_idx = device.upload(col_idx).unwrap();
        let counting = CountingBins::columns(device, cols, &col_idx);
        counting.unwrap().wait().unwrap()
    }

    #[test]
    fn columns_are_counted_by_the_powers_of_two_of_their_nonzeros() {
        let device = Device::emulator(EmulatorOptions::default());
        // Column 3 has 600 nonzeros, columns 10 to 309 one each, the others none.
        let cols: Vec<u32> = (0..600).map(|_| 3).chain(10..310).collect();
        let profile = profile(&device, 701, &cols);
        let found: Vec<_> = profile.iter().collect();
        assert_eq!(found, [(2, 300.0, 300.0), (1024, 1.0, 600.0)]);
        assert_eq!(self::profile(&device, 0, &[]).used(), 0.0);
        assert_eq!(self::profile(&device, 5, &[]).used(), 0.0);
    }

    #[test]
    fn a_sample_tells_nearly_the_same_as_all_nonzeros() {
        let device = Device::emulator(EmulatorOptions::default());
        // 20 columns of 2000 nonzeros, 300 of 100, and 9000 of 1 to 4, in a mixed order.
        let few = (400..9400).flat_map(|col| (0..col % 4 + 1).map(move |_| col));
        let many = (0..20).flat_map(|col| (0..2000).map(move |_| col));
        let middle = (50..350).flat_map(|col| (0..100).map(move |_| col));
        let ordered: Vec<u32> = many.chain(middle).chain(few).collect();
        let len = ordered.len();
        let mixed: Vec<u32> = (0..len).map(|k| ordered[k * 7919 % len]).collect();
        let col_idx = device.upload(&mixed).unwrap();
        let of_sample = |one_in| {
            let counting = CountingBins::columns_of_sample(&device, 10_000, &col_idx, one_in);
            counting.unwrap().wait().unwrap()
        };
        let exact = of_sample(1);
        assert_eq!(exact, profile(&device, 10_000, &mixed));
        for one_in in [2, 4, 8] {
            let sample = of_sample(one_in);
            let is_near = |found: f64, wanted: f64, name: &str| {
                assert!(
                    (found / wanted - 1.0).abs() < 0.1,
                    "{name}, one in {one_in}: {found} instead of {wanted}"
                );
            };
            is_near(sample.used(), exact.used(), "used columns");
            for rows in [10.0, 20.0, 200.0, 2000.0] {
                let missed = |counts: &LengthBins| Columns::new(counts.clone()).missed(rows, 1);
                is_near(missed(&sample), missed(&exact), "missed");
            }
            for nonzeros in [100.0, 10_000.0, 100_000.0] {
                let distinct = |profile: &LengthBins| profile.expected_distinct(nonzeros);
                is_near(distinct(&sample), distinct(&exact), "distinct columns");
            }
        }
    }

    #[test]
    fn few_nonzeros_are_in_different_columns_and_many_in_all() {
        let device = Device::emulator(EmulatorOptions::default());
        let cols: Vec<u32> = (0..4000).map(|k| k % 1000).collect();
        let profile = profile(&device, 2000, &cols);
        assert!((profile.expected_distinct(10.0) - 10.0).abs() < 0.1);
        let half = 1000.0 * (1.0 - (-1.0_f64).exp());
        assert!((profile.expected_distinct(1000.0) - half).abs() < 1e-6);
        assert!((profile.expected_distinct(1e6) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn the_longest_of_some_rows_is_likely_to_be_a_long_one() {
        let bins = LengthBins::of(&[(50, 50), (25, 250)]);
        let close = |found: f64, wanted: f64| {
            assert!((found - wanted).abs() < 1e-9, "{found} instead of {wanted}");
        };
        // Of 100 rows, 25 are empty, and each of four has 10 nonzeros with a probability of 1/4.
        let none_is_long = 0.75_f64.powi(4);
        let all_are_empty = 0.25_f64.powi(4);
        let of_short = none_is_long - all_are_empty;
        close(bins.expected_longest(100.0, 1, 99.0), 3.0);
        close(
            bins.expected_longest(100.0, 4, 99.0),
            10.0 * (1.0 - none_is_long) + of_short,
        );
        close(
            bins.expected_longest(100.0, 4, 2.0),
            2.0 * (1.0 - none_is_long) + of_short,
        );
        close(LengthBins::even(7, 70).expected_longest(7.0, 4, 99.0), 10.0);
        close(LengthBins::even(7, 0).expected_longest(7.0, 4, 99.0), 0.0);
    }
}
