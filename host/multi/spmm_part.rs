//! One device's rows of an SpMM: those that need no halo, which run during the exchange, and the others.

use crate::csr::CsrMatrix;
use crate::device::{Device, DeviceBuffer, DeviceError, DeviceSlice};
use crate::spmm::{Spmm, SpmmElement, SpmmError, SpmmOptions};
use std::fmt;
use std::ops::Range;

/// Interior rows run by themselves if they have at least one nonzero in so many: each launch costs time, too.
const LEAST_SHARE: usize = 4;

/// Ranges of rows begin at multiples of so many rows. Then each begins in Y at a multiple of 16 bytes, as kernels want.
const ROW_ALIGNMENT: usize = 8;

/// The plans of a device's rows.
#[derive(Debug)]
pub(super) struct SpmmPart<E: SpmmElement> {
    /// Rows whose nonzeros select only rows of X that the device owns.
    interior: Option<RowRange<E>>,
    /// All other rows: before and behind.
    boundary: Vec<RowRange<E>>,
}

/// Neighbouring rows.
#[derive(Debug)]
struct RowRange<E: SpmmElement> {
    rows: Range<usize>,
    plan: Spmm<E>,
}

impl<E: SpmmElement> SpmmPart<E> {
    /// Plans the rows of a device. `own` are the columns of the rows of X that it owns.
    ///
    /// # Errors
    ///
    /// Those of [`Spmm::plan`].
    pub fn plan(
        device: &Device,
        a: &CsrMatrix<E>,
        own: Range<usize>,
        options: SpmmOptions,
    ) -> Result<Self, SpmmError> {
        let plan = |rows: Range<usize>| {
            let all = rows.len() == a.rows();
            let part;
            let view = match all {
                true => a.view(),
                false => {
                    part = a.slice_outer(rows.clone()).to_owned();
                    part.view()
                }
            };
            let plan = Spmm::plan(device, view, options)?;
            Ok::<_, SpmmError>(RowRange { rows, plan })
        };
        let Some(interior) = interior_rows(a, &own) else {
            return Ok(Self {
                interior: None,
                boundary: vec![plan(0..a.rows())?],
            });
        };
        let boundary = [0..interior.start, interior.end..a.rows()];
        let boundary = boundary.into_iter().filter(|rows| !rows.is_empty());
        Ok(Self {
            boundary: boundary.map(plan).collect::<Result<_, _>>()?,
            interior: Some(plan(interior)?),
        })
    }

    /// Multiplies the interior rows, while another stream may write rows of `x` that the device does not own.
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

    /// Multiplies all other rows, after all that has written `x`.
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
        let rows = self.boundary.iter().chain(&self.interior);
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
        if self.rows.len() * features == y.len() {
            return self.plan.run(x, features, y);
        }
        let y: Result<_, DeviceError> =
            y.slice_mut(self.rows.start * features..self.rows.end * features);
        self.plan.run(x, features, y?)
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
        if let Some(interior) = &self.interior {
            let Range { start, end } = interior.rows;
            write!(
                f,
                "rows {start} to {end}, during the exchange: {}",
                interior.plan
            )?;
            for rows in &self.boundary {
                let Range { start, end } = rows.rows;
                write!(f, "\n    rows {start} to {end}: {}", rows.plan)?;
            }
            return Ok(());
        }
        self.boundary
            .iter()
            .try_for_each(|rows| write!(f, "{}", rows.plan))
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
