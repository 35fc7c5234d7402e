//! Whether the parts of a sparse matrix of the host make a matrix.
//!
//! `sprs` checks its matrices, but safe code can break one: by a panic inside `modify` that is caught, or by a storage
//! that gives another slice each time. Kernels rely on the structure, so an upload checks what it uploads.

use super::DevicePattern;
use crate::device::DeviceBuffer;
use crate::operand::{OperandError, check_len};
use rayon::prelude::*;
use sprs::CsMatViewI;
use std::borrow::Cow;
use warprow_kernels::matrix::csr::{check_columns, check_rows};

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

    /// That of a matrix which is stored by rows.
    pub fn by_rows(rows: usize, cols: usize) -> Self {
        Self {
            line: "row",
            lines: rows,
            extent: cols,
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

    /// Checks the lengths of the lists: a row pointer for each line and one for the last line's end, and an index and a
    /// value for each nonzero.
    pub fn check_lists(
        self,
        indptr: &[u32],
        indices: usize,
        values: usize,
    ) -> Result<(), OperandError> {
        let wanted = self.lines as u64 + 1;
        check_len("the list of row pointers", indptr.len() as u64, wanted)?;
        // Those of a view of some lines start where the lines before end.
        let Some(nonzeros) = indptr[self.lines].checked_sub(indptr[0]) else {
            return Err(self.descending(indptr));
        };
        check_len("the list of indices", indices as u64, nonzeros.into())?;
        check_len("the list of values", values as u64, nonzeros.into())
    }

    /// Checks that no line ends before it starts. Returns the nonzeros of the longest line, if there are lines. The
    /// lengths of the lists are right.
    pub fn check_lines(self, indptr: &[u32]) -> Result<Option<u32>, OperandError> {
        let lengths = LineLengths::of(indptr);
        if lengths.all_ascend {
            Ok((self.lines > 0).then_some(lengths.longest))
        } else {
            Err(self.descending(indptr))
        }
    }

    /// The error for row pointers that descend somewhere.
    fn descending(self, indptr: &[u32]) -> OperandError {
        let mut lines = indptr.windows(2);
        let number = lines.position(|ends| ends[0] > ends[1]);
        let number = number.expect("one of the lines ends before it starts");
        let (start, end) = (indptr[number], indptr[number + 1]);
        let reason = format!("it starts at nonzero {start} and ends before nonzero {end}");
        self.broken(number, reason)
    }

    /// Checks a pattern whose row pointers the host does not have, and waits for the device. The lengths of the lists
    /// are right.
    pub fn check(self, pattern: &DevicePattern) -> Result<(), OperandError> {
        let (rows, nonzeros) = (pattern.rows, pattern.nonzeros());
        let mut fault = pattern.device.uninitialized::<u32>(1)?;
        fault.fill_bytes(0xff)?;
        let arguments = (rows, nonzeros, pattern.row_ptr.read_only(), fault.mutable());
        let config = check_rows::launch(rows);
        // SAFETY: there are `rows + 1` row pointers.
        unsafe { (pattern.device).launch(&check_rows::check_rows(), config, arguments)? };
        let check = self.start_check(pattern)?;
        let row = fault.download()?[0];
        if row != u32::MAX {
            let mut ends = [0; 2];
            let len = ends.len().min(pattern.row_ptr.len());
            pattern
                .row_ptr
                .copy_part_to_slice(row as usize, &mut ends[..len])?;
            let reason = format!(
                "it is from nonzero {} to nonzero {}; wanted are rows one after the other, from nonzero 0 to {nonzeros}",
                ends[0],
                ends[len - 1],
            );
            return Err(self.broken(row as usize, reason));
        }
        check.finish(|| Ok(pattern.row_ptr.download()?.into()))
    }

    /// Starts to check on the device that the indices of each line ascend and are below the extent. The lengths of the
    /// lists are right. The result counts only if [`check_lines`](Self::check_lines) accepts the row pointers, which
    /// the host can do meanwhile.
    pub fn start_check(self, pattern: &DevicePattern) -> Result<IndexCheck, OperandError> {
        let nonzeros = pattern.nonzeros();
        if nonzeros == 0 {
            return Ok(IndexCheck {
                shape: self,
                fault: None,
            });
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
        let config = check_columns::launch(nonzeros);
        // SAFETY: there are `rows + 1` row pointers, checked by `check_lists`; buffers are aligned to 16 bytes.
        unsafe { (pattern.device).launch(&check_columns::check_columns(), config, arguments)? };
        Ok(IndexCheck {
            shape: self,
            fault: Some(fault),
        })
    }
}

/// A check of indices that the device may still be doing.
#[must_use]
pub(super) struct IndexCheck {
    shape: Shape,
    /// The number of the first nonzero whose index is wrong; without nonzeros there is none.
    fault: Option<DeviceBuffer<u32>>,
}

impl IndexCheck {
    /// Waits for the result; `lines` gives the row pointers, which ascend.
    pub fn finish<'a>(
        self,
        lines: impl FnOnce() -> Result<Cow<'a, [u32]>, OperandError>,
    ) -> Result<(), OperandError> {
        let Some(fault) = self.fault else {
            return Ok(());
        };
        match fault.download()?[0] {
            u32::MAX => Ok(()),
            nonzero => {
                let lines_before = lines()?.partition_point(|&start| start <= nonzero);
                Err(self.shape.broken_indices(lines_before - 1))
            }
        }
    }
}

/// Row pointers that a thread of the host looks at together. Fewer are not worth a second thread.
const POINTERS_PER_THREAD: usize = 1 << 16;

/// The lengths of lines by their row pointers.
#[derive(Clone, Copy)]
struct LineLengths {
    all_ascend: bool,
    /// The greatest length, if all lines end where they start or after.
    longest: u32,
}

impl LineLengths {
    fn of(indptr: &[u32]) -> Self {
        let lines = indptr.len().saturating_sub(1);
        let of_part = |part: usize| {
            let first = part * POINTERS_PER_THREAD;
            let end = lines.min(first + POINTERS_PER_THREAD);
            Self::in_order(&indptr[first..=end])
        };
        match lines.div_ceil(POINTERS_PER_THREAD) {
            0 => Self::NO_LINES,
            1 => Self::in_order(indptr),
            parts => (0..parts)
                .into_par_iter()
                .map(of_part)
                .reduce(|| Self::NO_LINES, Self::join),
        }
    }

    const NO_LINES: Self = Self {
        all_ascend: true,
        longest: 0,
    };

    /// Those of a thread. It looks at all of them: without an early exit, the compiler vectorises the loop.
    fn in_order(indptr: &[u32]) -> Self {
        // The lengths as signed numbers: SSE2, which all x86-64 have, has no unsigned comparison.
        let ends = indptr.iter().zip(&indptr[1..]);
        let (bits, longest) = ends.fold((indptr[0], 0), |(bits, longest): (u32, i32), ends| {
            let length = ends.1.wrapping_sub(*ends.0);
            (bits | ends.1 | length, longest.max(length as i32))
        });
        if bits >> 31 == 0 {
            // All pointers are below 2^31, so a length below 2^31 is not that of a line which ends before it starts.
            return Self {
                all_ascend: true,
                longest: longest as u32,
            };
        }
        let ends = indptr.iter().zip(&indptr[1..]);
        ends.fold(Self::NO_LINES, |lengths, (&start, &end)| Self {
            all_ascend: lengths.all_ascend & (start <= end),
            longest: lengths.longest.max(end.wrapping_sub(start)),
        })
    }

    fn join(self, other: Self) -> Self {
        Self {
            all_ascend: self.all_ascend & other.all_ascend,
            longest: self.longest.max(other.longest),
        }
    }
}

/// Checks a matrix on the host.
pub(crate) fn check<V>(a: &CsMatViewI<'_, V, u32, u32>) -> Result<(), OperandError> {
    let (shape, indptr, indices) = (Shape::of(a), a.indptr(), a.indices());
    let indptr = indptr.raw_storage();
    shape.check_lists(indptr, indices.len(), a.data().len())?;
    shape.check_lines(indptr)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_descents_of_any_size_are_found() {
        for (indptr, longest) in [
            (&[0, 3, 3, u32::MAX][..], Some(u32::MAX - 3)),
            (&[0, 1 << 31, u32::MAX], Some(1 << 31)),
            (&[(1 << 31) - 1, 1 << 31, (1 << 31) + 7], Some(7)),
            (&[u32::MAX, u32::MAX], Some(0)),
            (&[0, u32::MAX, 0], None),
            (&[0, u32::MAX, 1 << 30], None),
            (&[1 << 31, 0], None),
            (&[(1 << 31) - 1, 0], None),
        ] {
            let lengths = LineLengths::of(indptr);
            assert_eq!(lengths.all_ascend, longest.is_some(), "{indptr:?}");
            if let Some(longest) = longest {
                assert_eq!(lengths.longest, longest, "{indptr:?}");
            }
        }
    }

    #[test]
    fn lengths_and_lines_that_descend_are_found_in_every_part() {
        assert_eq!(LineLengths::of(&[0]).longest, 0);
        for lines in [
            1,
            2,
            POINTERS_PER_THREAD - 1,
            POINTERS_PER_THREAD,
            POINTERS_PER_THREAD + 1,
            3 * POINTERS_PER_THREAD + 5,
        ] {
            for line in [0, lines / 2, lines.min(POINTERS_PER_THREAD) - 1, lines - 1] {
                // All lines but one have two nonzeros.
                let with = |length: u32| -> Vec<u32> {
                    let pointer = |k: usize| {
                        let before = 2 * k as u32 + 10;
                        if k > line {
                            before + length - 2
                        } else {
                            before
                        }
                    };
                    (0..=lines).map(pointer).collect()
                };
                let lengths = LineLengths::of(&with(7));
                assert!(
                    lengths.all_ascend && lengths.longest == 7,
                    "{line} of {lines}"
                );
                let mut descending = with(2);
                descending[line] = descending[line + 1] + 1;
                assert!(
                    !LineLengths::of(&descending).all_ascend,
                    "{line} of {lines}"
                );
            }
        }
    }
}
