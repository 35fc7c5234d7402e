//! A walk of some threads over a matrix, element by element.

/// A thread's places in a matrix, in row-major order, as far apart as threads walk together. It spares a division for
/// each place.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    pub(crate) row: u32,
    pub(crate) column: u32,
    columns: u32,
    rows_apart: u32,
    columns_apart: u32,
}

impl Walk {
    #[inline(always)]
    pub(crate) fn start(columns: u32, (thread, threads): (u32, u32)) -> Self {
        // `max` spares the panic path of a division by zero.
        let columns = columns.max(1);
        Self {
            row: thread / columns,
            column: thread % columns,
            columns,
            rows_apart: threads / columns,
            columns_apart: threads % columns,
        }
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) {
        self.row += self.rows_apart;
        self.column += self.columns_apart;
        if self.column >= self.columns {
            self.row += 1;
            self.column -= self.columns;
        }
    }
}
