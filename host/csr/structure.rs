//! Whether the parts of a sparse matrix of the host make a matrix.
//!
//! `sprs` checks its matrices, but safe code can break one: by a panic inside `modify` that is caught, or by a storage
//! that gives another slice each time. Kernels rely on the structure, so an upload checks what it uploads.

use super::DevicePattern;
use crate::device::DeviceBuffer;
use crate::operand::{OperandError, check_len};
use sprs::CsMatViewI;
use warprow_kernels::matrix::csr::check_structure::{self, Finding};

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

    /// The error for a line with wrong indices, the first of which is that of nonzero `start`.
    fn broken_indices(self, number: usize, start: usize, indices: &[u32]) -> OperandError {
        let is_outside = |place: usize| indices[place] as usize >= self.extent;
        let descends = |place: usize| place > 0 && indices[place - 1] >= indices[place];
        let mut places = 0..indices.len();
        let place = places.find(|&place| is_outside(place) || descends(place));
        let place = place.expect("one of the indices is wrong");
        let what = if self.line == "row" { "column" } else { "row" };
        let found = format!("{what} {} of nonzero {}", indices[place], start + place);
        let reason = if is_outside(place) {
            format!("{found} is not below {}", self.extent)
        } else {
            let before = indices[place - 1];
            format!("{found} does not ascend: {before} comes before it")
        };
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

    /// The error for row pointers that descend somewhere.
    fn descending(self, indptr: &[u32]) -> OperandError {
        let mut lines = indptr.windows(2);
        let number = lines.position(|ends| ends[0] > ends[1]);
        let number = number.expect("one of the lines ends before it starts");
        let (start, end) = (indptr[number], indptr[number + 1]);
        let reason = format!("it starts at nonzero {start} and ends before nonzero {end}");
        self.broken(number, reason)
    }

    /// Starts to check on the device that no line ends before it starts, and that the indices of each line ascend and
    /// are below the extent. The lengths of the lists are right, and the pattern is that of the lists.
    pub fn start_check(self, pattern: &DevicePattern) -> Result<StructureCheck, OperandError> {
        let device = &pattern.device;
        let mut findings = device.zeros(check_structure::FINDINGS)?;
        let arguments = (
            pattern.rows,
            pattern.cols,
            pattern.nonzeros(),
            pattern.row_ptr.read_only(),
            pattern.col_idx.read_only(),
            findings.mutable(),
        );
        let multiprocessors = device.properties().multiprocessors;
        let config = check_structure::launch(pattern.rows, pattern.nonzeros(), multiprocessors);
        // SAFETY: there are `rows + 1` row pointers, checked by `check_lists`; buffers are aligned to 16 bytes.
        unsafe { device.launch(&check_structure::check_structure(), config, arguments)? };
        Ok(StructureCheck { findings })
    }

    /// Checks a pattern of which the host has seen only how long its lists are, and waits for the device. Returns the
    /// nonzeros of the longest line.
    pub fn check_on_device(self, pattern: &DevicePattern) -> Result<u32, OperandError> {
        let check = self.start_check(pattern)?;
        let (mut first, mut last) = ([0], [0]);
        pattern.row_ptr.copy_part_to_slice(0, &mut first)?;
        pattern.row_ptr.copy_part_to_slice(self.lines, &mut last)?;
        let (first, last, nonzeros) = (first[0], last[0], pattern.nonzeros());
        if (first, last) != (0, nonzeros) {
            let last_line = self.lines.saturating_sub(1);
            let number = if first == 0 { last_line } else { 0 };
            let reason = format!(
                "the row pointers are from {first} to {last}, wanted are those from 0 to {nonzeros}"
            );
            return Err(self.broken(number, reason));
        }
        if let Some(longest) = check.longest_line()? {
            return Ok(longest);
        }
        let (row_ptr, col_idx) = (pattern.row_ptr.download()?, pattern.col_idx.download()?);
        let has_changed = || self.broken(0, "the lists change while they are checked".to_owned());
        Err(self
            .first_fault(&row_ptr, &col_idx)
            .unwrap_or_else(has_changed))
    }

    /// The first fault of lists whose lengths are right.
    fn first_fault(self, indptr: &[u32], indices: &[u32]) -> Option<OperandError> {
        if !indptr.is_sorted() {
            return Some(self.descending(indptr));
        }
        let nonzeros = |number: usize| {
            let place = |end: u32| (end - indptr[0]) as usize;
            place(indptr[number])..place(indptr[number + 1])
        };
        let is_broken = |number: usize| {
            let line = &indices[nonzeros(number)];
            let is_inside = line
                .last()
                .is_none_or(|&last| (last as usize) < self.extent);
            !is_inside || !line.is_sorted_by(|one, next| one < next)
        };
        let number = parallel::find_first(indptr.len().saturating_sub(1), &is_broken)?;
        let nonzeros = nonzeros(number);
        Some(self.broken_indices(number, nonzeros.start, &indices[nonzeros]))
    }
}

/// A check of a structure that the device may still be doing.
#[must_use]
pub(super) struct StructureCheck {
    findings: DeviceBuffer<u32>,
}

impl StructureCheck {
    /// Waits for the result: the nonzeros of the longest line. The lists are those that were uploaded; if the device
    /// has found a fault, the host looks for it there.
    pub fn finish(
        self,
        shape: Shape,
        indptr: &[u32],
        indices: &[u32],
    ) -> Result<u32, OperandError> {
        self.longest_line()?.ok_or_else(|| {
            (shape.first_fault(indptr, indices))
                .expect("the device and the host look for the same faults in the same lists")
        })
    }

    /// Waits for the result: the nonzeros of the longest line, or `None` for a fault.
    fn longest_line(self) -> Result<Option<u32>, OperandError> {
        let findings = self.findings.download()?;
        let finding = |finding: Finding| findings[finding as usize];
        let is_right = finding(Finding::OutOfOrder) == 0 && finding(Finding::OutOfRange) == 0;
        Ok(is_right.then(|| finding(Finding::LongestRow)))
    }
}

/// Checks a matrix on the host.
pub(crate) fn check<V>(a: &CsMatViewI<'_, V, u32, u32>) -> Result<(), OperandError> {
    let (shape, indptr, indices) = (Shape::of(a), a.indptr(), a.indices());
    let indptr = indptr.raw_storage();
    shape.check_lists(indptr, indices.len(), a.data().len())?;
    match shape.first_fault(indptr, indices) {
        None => Ok(()),
        Some(fault) => Err(fault),
    }
}
