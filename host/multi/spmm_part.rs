//! One device's part of an SpMM: what needs no halo, which runs during the exchange, and the rest.
//!
//! What needs no halo are whole rows, if many such rows are neighbours. Else it is the nonzeros in own columns, if a
//! [`ColumnSplit`] pays.

use super::column_split::ColumnSplit;
use crate::csr::CsrMatrix;
use crate::device::{Device, DeviceBuffer, DeviceError, DeviceSlice};
use crate::spmm::{Spmm, SpmmElement, SpmmError, SpmmOptions};

use cuda_std::float::Real;
use std::fmt;
use std::ops::Range;

/// Interior rows run by themselves if they have at least one nonzero in so many: each launch costs time, too.
const LEAST_SHARE: usize = 4;

/// Ranges of rows begin at multiples of so many rows. Then each begins in X and Y at a multiple of 16 bytes, as kernels
/// want.
const ROW_ALIGNMENT: usize = 8;

/// The plans of a device's rows.
#[derive(Debug)]
pub(super) struct SpmmPart<E: SpmmElement> {
    /// Rows whose nonzeros select only rows of X that the device owns, or these nonzeros of all rows.
    interior: Option<RowRange<E>>,
    /// The other rows, before and behind, or the other nonzeros of all rows.
    boundary: Vec<RowRange<E>>,
}

/// Neighbouring rows, or some of their nonzeros.
#[derive(Debug)]
struct RowRange<E: SpmmElement> {
    rows: Range<usize>,
    /// The rows of X that the plan is given: its columns.
    columns: Range<usize>,
    plan: Spmm<E>,
    /// Whether Y has sums of these rows already, to which the product is added.
    is_added: bool,
}

impl<E: SpmmElement> SpmmPart<E> {
    /// Plans the rows of a device. `own` are the columns of the rows of X that it owns. If `whole_rows`, each row is
    /// the work of one launch.
    ///
    /// # Errors
    ///
    /// Those of [`Spmm::plan`].
    pub fn plan(
        device: &Device,
        a: &CsrMatrix<E>,
        own: Range<usize>,
        whole_rows: bool,
        options: SpmmOptions,
    ) -> Result<Self, SpmmError> {
        let plan = |a: &CsrMatrix<E>, rows: Range<usize>, columns: Range<usize>, is_added| {
            let plan = Spmm::plan(device, a.view(), options)?;
            Ok::<_, SpmmError>(RowRange {
                rows,
                columns,
                plan,
                is_added,
            })
        };
        let all = 0..a.rows();
        if let Some(interior) = interior_rows(a, &own) {
            let of_rows = |rows: Range<usize>| {
                let part = a.slice_outer(rows.clone()).to_owned();
                plan(&part, rows, 0..a.cols(), false)
            };
            let boundary = [0..interior.start, interior.end..a.rows()];
            let boundary = boundary.into_iter().filter(|rows| !rows.is_empty());
            return Ok(Self {
                boundary: boundary.map(of_rows).collect::<Result<_, _>>()?,
                interior: Some(of_rows(interior)?),
            });
        }
        // Where the rows of X begin that the plan of own columns is given.
        let first = own.start - own.start % ROW_ALIGNMENT;
        let split = match whole_rows {
            true => None,
            false => ColumnSplit::if_it_pays(a, own, first, ROW_ALIGNMENT, options),
        };
        if let Some(ColumnSplit { own, halo }) = split {
            return Ok(Self {
                interior: Some(plan(&own.a, all.clone(), own.columns, false)?),
                boundary: vec![plan(&halo.a, all, halo.columns, true)?],
            });
        }
        Ok(Self {
            interior: None,
            boundary: vec![plan(a, all, 0..a.cols(), false)?],
        })
    }

    /// The nonzeros that need no halo and run by themselves, and all.
    pub fn interior_and_all_nonzeros(&self) -> (usize, usize) {
        let of = |rows: &RowRange<E>| rows.plan.nnz();
        let interior = self.interior.as_ref().map_or(0, of);
        let boundary: usize = self.boundary.iter().map(of).sum();
        (interior, interior + boundary)
    }

    /// Multiplies what needs no halo, while another stream may write rows of `x` that the device does not own.
    ///
    /// # Errors
    ///
    /// A launch that fails; no device memory.
    ///
    /// # Safety
    ///
    /// The device's own rows of `x` are written already in the order of this thread's stream. Before `x` is freed or
    /// these rows are written again, [`run_boundary`](Self::run_boundary) is called on this stream.
    pub unsafe fn run_interior(
        &self,
        x: &DeviceBuffer<E>,
        features: usize,
        y: &mut DeviceBuffer<E>,
    ) -> Result<(), SpmmError> {
        let Some(interior) = &self.interior else {
            return Ok(());
        };
        // SAFETY: the memory is that of `x`. The kernels read only rows that nonzeros select, which the device owns; it
        // is the caller who guarantees that nobody writes these meanwhile.
        let x = unsafe { x.device().slice_from_raw(x.as_slice().address(), x.len())? };
        interior.run(x, features, y)
    }

    /// Multiplies all else, after all that has written `x`.
    ///
    /// # Errors
    ///
    /// A launch that fails; no device memory.
    pub fn run_boundary(
        &self,
        x: &DeviceBuffer<E>,
        features: usize,
        y: &mut DeviceBuffer<E>,
    ) -> Result<(), SpmmError> {
        // Notes that this stream has read `x`: whoever writes or frees it waits for the interior rows, too.
        x.read_only();
        (self.boundary.iter()).try_for_each(|rows| rows.run(x.as_slice(), features, y))
    }

    /// Multiplies all rows.
    ///
    /// # Errors
    ///
    /// A launch that fails; no device memory.
    pub fn run(
        &self,
        x: &DeviceBuffer<E>,
        features: usize,
        y: &mut DeviceBuffer<E>,
    ) -> Result<(), SpmmError> {
        let rows = self.interior.iter().chain(&self.boundary);
        rows.into_iter()
            .try_for_each(|rows| rows.run(x.as_slice(), features, y))
    }
}

impl<E: SpmmElement> RowRange<E> {
    fn run(
        &self,
        x: DeviceSlice<'_, E>,
        features: usize,
        y: &mut DeviceBuffer<E>,
    ) -> Result<(), SpmmError> {
        let (one, zero) = (<E::Sum as Real>::ONE, E::Sum::ZERO);
        let x = x.slice(self.columns.start * features..self.columns.end * features)?;
        let beta = if self.is_added { one } else { zero };
        if self.rows.len() * features == y.len() {
            return self.plan.run_scaled(one, x, features, beta, y);
        }
        let y: Result<_, DeviceError> =
            y.slice_mut(self.rows.start * features..self.rows.end * features);
        self.plan.run_scaled(one, x, features, beta, y?)
    }
}

/// The longest run of rows whose nonzeros are all in columns of `own`, if it pays to run them by themselves. `None`
/// also if no row has another column, because then there is nothing to wait for.
fn interior_rows<E: SpmmElement>(a: &CsrMatrix<E>, own: &Range<usize>) -> Option<Range<usize>> {
    let is_own = |&column: &u32| own.contains(&(column as usize));
    let (mut longest, mut start) = (0..0, 0);
    for (row, nonzeros) in a.outer_iterator().enumerate() {
        if !nonzeros.indices().iter().all(is_own) {
            start = row + 1;
        } else if row + 1 - start > longest.len() {
            longest = start..row + 1;
        }
    }
    if longest.len() == a.rows() {
        return None;
    }
    let first = longest.start.next_multiple_of(ROW_ALIGNMENT);
    let end = match longest.end == a.rows() {
        true => longest.end,
        false => longest.end - longest.end % ROW_ALIGNMENT,
    };
    if first >= end {
        return None;
    }
    let rows = first..end;
    let nonzeros = a.slice_outer(rows.clone()).nnz();
    (nonzeros > 0 && nonzeros * LEAST_SHARE >= a.nnz()).then_some(rows)
}

impl<E: SpmmElement> fmt::Display for SpmmPart<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(interior) = &self.interior else {
            return (self.boundary.iter()).try_for_each(|rows| write!(f, "{}", rows.plan));
        };
        let what = match self.boundary.iter().any(|rows| rows.is_added) {
            true => "own columns of ",
            false => "",
        };
        let Range { start, end } = interior.rows;
        let plan = &interior.plan;
        write!(
            f,
            "{what}rows {start} to {end}, during the exchange: {plan}"
        )?;
        for RowRange {
            rows,
            plan,
            is_added,
            ..
        } in &self.boundary
        {
            let what = if *is_added { "halo columns of " } else { "" };
            write!(f, "\n    {what}rows {} to {}: {plan}", rows.start, rows.end)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    fn banded(rows: usize, width: usize) -> CsrMatrix<f32> {
        let (mut row_ptr, mut columns) = (vec![0], Vec::new());
        for row in 0..rows {
            columns
                .extend((row.saturating_sub(width)..(row + width + 1).min(rows)).map(|k| k as u32));
            row_ptr.push(columns.len() as u32);
        }
        let values = vec![1.0; columns.len()];
        CsrMatrix::new((rows, rows), row_ptr, columns, values)
    }

    #[test]
    fn the_interior_of_a_band_is_all_but_its_ends_at_aligned_rows() {
        let a = banded(100, 2);
        // Rows 12 to 77 select columns 10 to 79 alone.
        assert_eq!(interior_rows(&a, &(10..80)), Some(16..72));
        assert_eq!(interior_rows(&a, &(0..80)), Some(0..72));
        assert_eq!(interior_rows(&a, &(10..100)), Some(16..100));
    }

    #[test]
    fn few_interior_rows_and_matrices_without_a_halo_are_one_range() {
        let a = banded(100, 2);
        assert_eq!(interior_rows(&a, &(0..100)), None, "nothing to wait for");
        assert_eq!(
            interior_rows(&a, &(10..30)),
            None,
            "less than a quarter of the nonzeros"
        );
        assert_eq!(interior_rows(&a, &(0..0)), None);
        let shift = CsrMatrix::new(
            (9, 9),
            (0..=9).collect(),
            (1..=9).map(|k| k % 9).collect(),
            vec![1.0; 9],
        );
        assert_eq!(
            interior_rows(&shift, &(1..5)),
            None,
            "rows 0 to 3 have no aligned end"
        );
        assert_eq!(
            interior_rows(&shift, &(3..4)),
            None,
            "row 2 has no aligned start"
        );
        let uniform = generate::uniform::<f32>(64, 64, 640, 1).unwrap();
        assert_eq!(interior_rows(&uniform, &(0..32)), None);
        assert_eq!(
            interior_rows(&CsrMatrix::<f32>::zero((0, 4)), &(0..4)),
            None
        );
        assert_eq!(
            interior_rows(&CsrMatrix::<f32>::zero((9, 4)), &(0..4)),
            None
        );
    }
}
