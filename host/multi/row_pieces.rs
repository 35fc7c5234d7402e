//! Rows of Y of which several devices have a piece: the owner's device gets the sum, on the way through the host.

use super::division::Layout;
use super::merged_rows::CutRows;
use super::parted::PartedDense;
use super::partition::Part;
use crate::device::DeviceError;
use crate::spmm::{Reduction, SpmmElement};

/// The rows of Y that are cut between devices.
#[derive(Debug)]
pub(super) struct RowPieces {
    rows: CutRows,
    /// The nonzeros of each piece of each row.
    nonzeros: Vec<Vec<usize>>,
    reduction: Reduction,
}

impl RowPieces {
    /// `row_ptr` are the row pointers of the whole matrix.
    pub fn plan(layout: &Layout, row_ptr: &[u32], reduction: Reduction) -> Self {
        let rows = CutRows::of(layout);
        let parts = layout.partition().parts();
        let of_piece = |row: usize, part: &Part| {
            let start = part.nonzeros.start.max(row_ptr[row] as usize);
            part.nonzeros.end.min(row_ptr[row + 1] as usize) - start
        };
        let nonzeros = rows.iter().map(|(row, pieces)| {
            let pieces = pieces.iter().map(|piece| of_piece(row, &parts[piece.part]));
            pieces.collect()
        });
        Self {
            nonzeros: nonzeros.collect(),
            rows,
            reduction,
        }
    }

    /// The number of rows that are cut.
    pub fn count(&self) -> usize {
        self.rows.count()
    }

    /// Adds the pieces, or takes their maximum or minimum, where the owner has its piece.
    ///
    /// # Errors
    ///
    /// A device that failed before.
    pub fn add<E: SpmmElement>(&self, y: &PartedDense<E>) -> Result<(), DeviceError> {
        let features = y.features();
        for ((_, pieces), nonzeros) in self.rows.iter().zip(&self.nonzeros) {
            let of_row: usize = nonzeros.iter().sum();
            let mut sums: Vec<E> = Vec::new();
            for (piece, &nonzeros) in pieces.iter().zip(nonzeros) {
                let mut values = vec![E::default(); features];
                y.part(piece.part)
                    .copy_part_to_slice(piece.local_row * features, &mut values)?;
                if self.reduction == Reduction::Mean {
                    // A piece's mean is of its own nonzeros.
                    let share = nonzeros as f64 / of_row as f64;
                    for value in &mut values {
                        *value = E::from_f64(value.to_f64() * share);
                    }
                }
                if sums.is_empty() {
                    sums = values;
                    continue;
                }
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = match self.reduction {
                        Reduction::Min => -larger(-*sum, -value),
                        extremum if extremum.is_extremum() => larger(*sum, value),
                        _ => *sum + value,
                    };
                }
            }
            let owner = pieces[0];
            let start = owner.local_row * features;
            let mut part = y.part(owner.part);
            part.slice_mut(start..start + features)?
                .copy_from_slice(&sums)?;
        }
        Ok(())
    }
}

/// The larger number; NaN if one is.
fn larger<E: SpmmElement>(a: E, b: E) -> E {
    let (x, y) = (a.to_f64(), b.to_f64());
    if x.is_nan() || x >= y { a } else { b }
}
