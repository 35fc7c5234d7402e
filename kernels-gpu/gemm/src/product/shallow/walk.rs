//! A walk of a block over a matrix, element by element.

use super::BLOCK;
use cuda_std::prelude::*;

/// A thread's places in a matrix, in row-major order, [`BLOCK`] apart. It spares a division for each place.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    pub(super) row: u32,
    pub(super) column: u32,
    columns: u32,
    rows_apart: u32,
    columns_apart: u32,
}

impl Walk {
    #[inline(always)]
    pub(super) fn start(columns: u32) -> Self {
        // `max` spares the panic path of a division by zero.
        let columns = columns.max(1);
        let thread = thread::thread_idx_x();
        Self {
            row: thread / columns,
            column: thread % columns,
            columns,
            rows_apart: BLOCK / columns,
            columns_apart: BLOCK % columns,
        }
    }

    #[inline(always)]
    pub(super) fn next(&mut self) {
        self.row += self.rows_apart;
        self.column += self.columns_apart;
        if self.column >= self.columns {
            self.row += 1;
            self.column -= self.columns;
        }
    }
}
