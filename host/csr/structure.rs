//! Whether the parts of a sparse matrix of the host make a matrix.
//!
//! `sprs` checks its matrices, but safe code can break one: by a panic inside `modify` that is caught, or by a storage
//! that gives another slice each time. Kernels rely on the structure, so an upload checks what it uploads.

use super::DevicePattern;
use crate::operand::{OperandError, check_len};
use rayon::prelude::*;
use sprs::CsMatViewI;
use warprow_kernels::matrix::csr::{check_columns, rows};

/// What the structure of a matrix is checked against.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// How the matrix is stored: `row` by row, or `column` by column.
    line: &'static str,
    lines: usize,
    /// The indices of a line are below it.
    extent: usize,
}

impl Shape {
    pub fn of<V>(a: &CsMatViewI<'_, V, u32, u32>) -> Self {
        Self {
            line: if a.is_csc() { "column" } else { "row" },
            lines: a.outer_dims(),
            extent: a.inner_dims(),
        }
    }

    fn broken(self, number: usize, reason: String) -> OperandError {
        OperandError::Structure {
            line: self.line,
            number,
            reason,
        }
    }

    fn broken_indices(self, number: usize) -> OperandError {
        let Self { extent, .. } = self;
        let reason = format!("its indices do not ascend, or one of them is not below {extent}");
        self.broken(number, reason)
    }

    /// Checks that each line ends where the next one starts, that the last one ends with the last of `nonzeros`
    /// indices, and that there are as many values. Returns the nonzeros of the longest line, if there are lines.
    pub fn check_lines(
        self,
        indptr: &[u32],
        nonzeros: usize,
        values: usize,
    ) -> Result<Option<u32>, OperandError> {
        let wanted = self.lines as u64 + 1;
        check_len("the list of row pointers", indptr.len() as u64, wanted)?;
        let lines = || indptr.windows(2);
        if let Some(number) = lines().position(|ends| ends[0] > ends[1]) {
            let (start, end) = (indptr[number], indptr[number + 1]);
            let reason = format!("it starts at nonzero {start} and ends before nonzero {end}");
            return Err(self.broken(number, reason));
        }
        // Those of a view of some lines start where the lines before end.
        let wanted = u64::from(indptr[self.lines] - indptr[0]);
        check_len("the list of indices", nonzeros as u64, wanted)?;
        check_len("the list of values", values as u64, wanted)?;
        Ok(lines().map(|ends| ends[1] - ends[0]).max())
    }

    /// Checks on the device that the indices of each line ascend and are below the extent; `lines` are the row pointers
    /// that were uploaded, which [`check_lines`](Self::check_lines) has checked.
    pub fn check_indices(self, pattern: &DevicePattern, lines: &[u32]) -> Result<(), OperandError> {
        let nonzeros = pattern.nonzeros();
        if nonzeros == 0 {
            return Ok(());
        }
        let mut fault = pattern.device.uninitialized::<u32>(1)?;
        fault.fill_bytes(0xff)?;
        let arguments = (
            pattern.rows,
            pattern.cols,
            nonzeros,
            pattern.row_ptr.read_only(),
            pattern.col_idx.read_only(),
            fault.mutable(),
        );
        let config = rows::launch(nonzeros);
        // SAFETY: the row pointers ascend from 0 to the number of nonzeros, checked before.
        unsafe { (pattern.device).launch(&check_columns::check_columns(), config, arguments)? };
        match fault.download()?[0] {
            u32::MAX => Ok(()),
            nonzero => {
                let lines_before = lines.partition_point(|&start| start <= nonzero);
                Err(self.broken_indices(lines_before - 1))
            }
        }
    }
}

/// Checks a matrix on the host.
pub(crate) fn check<V>(a: &CsMatViewI<'_, V, u32, u32>) -> Result<(), OperandError> {
    let (shape, indptr, indices) = (Shape::of(a), a.indptr(), a.indices());
    let indptr = indptr.raw_storage();
    shape.check_lines(indptr, indices.len(), a.data().len())?;
    let is_broken = |ends: &[u32]| {
        let line = &indices[(ends[0] - indptr[0]) as usize..(ends[1] - indptr[0]) as usize];
        let is_inside = line
            .last()
            .is_none_or(|&last| (last as usize) < shape.extent);
        !is_inside || !line.is_sorted_by(|one, next| one < next)
    };
    match indptr.par_windows(2).position_first(is_broken) {
        None => Ok(()),
        Some(number) => Err(shape.broken_indices(number)),
    }
}
