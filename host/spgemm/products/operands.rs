//! The operands of a product: their checks, and how kernels get them.

use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::operand::{OperandError, check_device};
use cuda_std::memory::GlobalMut;
use warprow_kernels::spgemm::{CsrPattern, OperandPatterns, OutputPattern};

/// Maximum number of nonzeros of A, B and C: positions plus a block's stride stay below 2^32.
pub const MAX_NONZEROS: u32 = u32::MAX - (1 << 16);

impl DevicePattern {
    pub(crate) fn as_argument(&self) -> CsrPattern {
        CsrPattern {
            rows: self.rows,
            cols: self.cols,
            row_ptr: self.row_ptr.read_only(),
            col_idx: self.col_idx.read_only(),
        }
    }

    /// The pattern of a product whose columns are known.
    pub(crate) fn structure(&self) -> OutputPattern {
        OutputPattern {
            row_ptr: self.row_ptr.read_only(),
            starts: self.row_ptr.read_only(),
            columns: self.col_idx.read_only(),
            col_idx: GlobalMut::from_address(0),
        }
    }
}

/// A and B as kernels get them, with the extents of the rows of B.
pub fn operands(
    a: &DevicePattern,
    b: &DevicePattern,
    extents: &DeviceBuffer<u32>,
) -> OperandPatterns {
    OperandPatterns {
        a: a.as_argument(),
        b: b.as_argument(),
        extents: extents.read_only(),
    }
}

/// Checks that the kernels can multiply A and B.
pub fn check_operands(a: &DevicePattern, b: &DevicePattern) -> Result<(), OperandError> {
    check_device(&a.device, "B", &b.col_idx)?;
    check_shapes((a.rows(), a.cols()), (b.rows(), b.cols()))?;
    check_nonzeros("the number of nonzeros of A", a.nonzeros().into())?;
    check_nonzeros("the number of nonzeros of B", b.nonzeros().into())?;
    Ok(())
}

/// The number of nonzeros of A, B or C, if kernels can count them.
pub fn check_nonzeros(what: &'static str, found: u64) -> Result<u32, OperandError> {
    match u32::try_from(found) {
        Ok(nonzeros) if nonzeros <= MAX_NONZEROS => Ok(nonzeros),
        _ => Err(OperandError::TooLarge {
            what,
            found: found.into(),
            most: MAX_NONZEROS.into(),
        }),
    }
}

/// Checks that B has as many rows as A has columns.
pub fn check_shapes(a: (usize, usize), b: (usize, usize)) -> Result<(), OperandError> {
    if a.1 == b.0 {
        return Ok(());
    }
    Err(OperandError::Rows {
        what: "B",
        rows: a.1,
        found: b,
    })
}
