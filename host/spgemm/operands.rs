//! The operands of a product: what they must be, and how kernels get them.

use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::error::Error;
use cuda_std::memory::GlobalMut;
use warprow_kernels::spgemm::{CsrPattern, OperandPatterns, OutputPattern};

/// Nonzeros of an operand, at most: positions stay below 2^32 when a block's stride is added.
const MOST_NONZEROS: u32 = u32::MAX - (1 << 16);

impl DevicePattern {
    pub(super) fn as_argument(&self) -> CsrPattern {
        CsrPattern {
            rows: self.rows,
            cols: self.cols,
            row_ptr: self.row_ptr.read_only(),
            col_idx: self.col_idx.read_only(),
        }
    }

    /// The pattern of a product whose columns are there.
    pub(super) fn structure(&self) -> OutputPattern {
        OutputPattern {
            row_ptr: self.row_ptr.read_only(),
            starts: self.row_ptr.read_only(),
            columns: self.col_idx.read_only(),
            col_idx: GlobalMut::from_address(0),
        }
    }
}

/// A and B as kernels get them, with the extents of the rows of B.
pub(super) fn operands(
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

/// That A and B can be multiplied by the kernels.
pub(super) fn check_operands(a: &DevicePattern, b: &DevicePattern) -> Result<(), Error> {
    if a.device != b.device {
        return Err(Error::OtherDevice {
            what: "B",
            wanted: a.device.to_string(),
            found: b.device.to_string(),
        });
    }
    check_shapes((a.rows(), a.cols()), (b.rows(), b.cols()))?;
    for (what, nonzeros) in [
        ("the number of nonzeros of A", a.nonzeros()),
        ("the number of nonzeros of B", b.nonzeros()),
    ] {
        if nonzeros > MOST_NONZEROS {
            return Err(Error::TooLarge {
                what,
                found: nonzeros.into(),
                most: MOST_NONZEROS.into(),
            });
        }
    }
    Ok(())
}

/// That B has as many rows as A has columns.
pub(super) fn check_shapes(a: (usize, usize), b: (usize, usize)) -> Result<(), Error> {
    if a.1 == b.0 {
        return Ok(());
    }
    Err(Error::Rows {
        what: "B",
        rows: a.1,
        found: b,
    })
}
