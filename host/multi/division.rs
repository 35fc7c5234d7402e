//! A matrix divided among parts: its order, the parts, and the halo of each, computed once for many products.

use super::halo::{Halo, Volume};
use super::order::Order;
use super::partition::{Owners, Part, Partition, RowCuts, Work};
use crate::csr::CsrMatrix;
use crate::device::Device;
use crate::scalar::Scalar;
use crate::setters::setters;
use crate::spmm::{RowOrder, SpmmError};
use sprs::{CsMatI, CsMatViewI};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Clusters are taken if the parts then receive less than this fraction of the rows, or if less than this fraction of
/// their nonzeros select these: they compute more during the exchange then, and use rows in their caches more often.
const MIN_GAIN: f64 = 0.9;

/// How rows are divided among parts, and what each part is given of the other operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Distribution {
    /// Contiguous rows of equal work, in an order in which the parts receive few rows of X.
    #[default]
    Blocks,
    /// Row i goes to part i modulo the number of parts.
    Cyclic,
}

/// What a part is given of X, or of B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    clippy::exhaustive_enums,
    reason = "a part has the rows that it needs, or all"
)]
pub enum OperandRows {
    /// The rows that its nonzeros select.
    #[default]
    Needed,
    /// All rows.
    Replicated,
}

/// How a matrix is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DivisionOptions {
    /// How rows are divided.
    pub distribution: Distribution,
    /// What each part is given of the other operand.
    pub operand: OperandRows,
    /// Whether long rows may be cut; never with a cyclic distribution.
    pub cuts: RowCuts,
    /// The order of the rows, for blocks. Default: clusters if the parts then receive fewer rows of X, or use them
    /// less.
    pub order: Option<RowOrder>,
}

impl DivisionOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields { distribution: Distribution, operand: OperandRows, cuts: RowCuts }
        optional { order: RowOrder }
    }
}

/// A matrix divided among parts.
#[derive(Clone, Debug)]
pub struct Division<T> {
    /// The matrix in its order.
    a: CsrMatrix<T>,
    layout: Layout,
}

/// Which part has what of a matrix, and what it is given of X: all of a [`Division`] but the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    order: Order,
    is_square: bool,
    partition: Partition,
    owners: Owners,
    /// Shared by clones.
    halos: Arc<Vec<Halo>>,
}

impl<T: Scalar + Default> Division<T> {
    /// Divides a matrix, stored by rows or columns. `device` looks for an order of the rows. The work is that of a
    /// product with a dense X; with `b_lengths`, the lengths of the rows of B, that of `A B`.
    ///
    /// # Errors
    ///
    /// Lists that are no matrix; too little device memory; the driver's.
    pub fn plan(
        device: &Device,
        a: CsMatViewI<'_, T, u32, u32>,
        parts: NonZeroUsize,
        options: DivisionOptions,
        b_lengths: Option<&[u32]>,
    ) -> Result<Self, SpmmError> {
        crate::csr::check(&a)?;
        let by_rows;
        let a = match a.is_csr() {
            true => a,
            false => {
                by_rows = a.to_csr();
                by_rows.view()
            }
        };
        if options.distribution == Distribution::Cyclic {
            return Ok(Self::cyclic(a, parts, options));
        }
        if let Some(order) = options.order {
            let order = Order::find(device, a, order)?;
            return Ok(Self::in_order(order, a, parts, options, b_lengths));
        }
        let given = Self::in_order(Order::given(), a, parts, options, b_lengths);
        if given.layout.volume().received == 0 || options.operand == OperandRows::Replicated {
            return Ok(given);
        }
        let clustered = Order::find(device, a, RowOrder::Clustered)?;
        let clustered = Self::in_order(clustered, a, parts, options, b_lengths);
        let fewer = |clustered: u64, given: u64| (clustered as f64) < MIN_GAIN * given as f64;
        let received = |division: &Self| division.layout.volume().received;
        let pays = fewer(received(&clustered), received(&given))
            || fewer(clustered.halo_nonzeros(), given.halo_nonzeros());
        Ok(if pays { clustered } else { given })
    }

    /// Divides a matrix that is stored by rows, in an order that is known. The options' order and distribution are
    /// ignored.
    ///
    /// # Panics
    ///
    /// If the order is not one of so many rows, the lists are no matrix, or B has not as many rows as A has columns.
    pub fn in_order(
        order: Order,
        a: CsMatViewI<'_, T, u32, u32>,
        parts: NonZeroUsize,
        options: DivisionOptions,
        b_lengths: Option<&[u32]>,
    ) -> Self {
        let is_square = a.rows() == a.cols();
        let a = order.apply(a);
        let row_ptr = a.indptr();
        let row_ptr = row_ptr.to_proper();
        let lengths: Vec<u32>;
        let work = match b_lengths {
            None => Work::Nonzeros,
            Some(of_rows) => {
                assert_eq!(of_rows.len(), a.cols());
                let original = |row| {
                    if is_square {
                        order.original_row(row)
                    } else {
                        row
                    }
                };
                lengths = (0..a.cols()).map(|row| of_rows[original(row)]).collect();
                Work::Products {
                    col_idx: a.indices(),
                    b_lengths: &lengths,
                }
            }
        };
        let partition = Partition::by_work(&row_ptr, work, parts, options.cuts);
        Self::of_partition(a, order, partition, parts, options.operand)
    }

    fn cyclic(
        a: CsMatViewI<'_, T, u32, u32>,
        parts: NonZeroUsize,
        options: DivisionOptions,
    ) -> Self {
        // `check` has found fewer than 2^32 rows.
        let (order, counts) = Order::cyclic(a.rows() as u32, parts.get() as u32);
        let a = order.apply(a);
        let partition = Partition::by_row_counts(&a.indptr().to_proper(), &counts);
        Self::of_partition(a, order, partition, parts, options.operand)
    }

    fn of_partition(
        a: CsrMatrix<T>,
        order: Order,
        partition: Partition,
        parts: NonZeroUsize,
        operand: OperandRows,
    ) -> Self {
        let owners = match a.rows() == a.cols() {
            true => partition.owners(),
            false => Owners::equal(a.cols(), parts),
        };
        let halo = |number: usize| match operand {
            OperandRows::Needed => {
                let nonzeros = partition.parts()[number].nonzeros.clone();
                Halo::new(number, &owners, &a.indices()[nonzeros])
            }
            OperandRows::Replicated => Halo::replicated(number, &owners),
        };
        let halos = parallel::map(partition.parts().len(), halo);
        let layout = Layout {
            is_square: a.rows() == a.cols(),
            halos: Arc::new(halos),
            order,
            partition,
            owners,
        };
        Self { a, layout }
    }

    /// The nonzeros that select rows of other parts.
    fn halo_nonzeros(&self) -> u64 {
        let parts = self.layout.partition.parts();
        let of_part = |number: usize| {
            let own = self.layout.halos[number].own();
            let columns = &self.a.indices()[parts[number].nonzeros.clone()];
            let elsewhere = |column: &&u32| !own.contains(&(**column as usize));
            columns.iter().filter(elsewhere).count() as u64
        };
        parallel::map(parts.len(), of_part).into_iter().sum()
    }

    /// Which part has what.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Which part has what, without the matrix.
    pub fn into_layout(self) -> Layout {
        self.layout
    }

    /// Rows and columns of the matrix.
    pub fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    /// Where each row starts in the matrix in its order, and where the last one ends.
    pub fn row_ptr(&self) -> Vec<u32> {
        self.a.indptr().to_proper().into_owned()
    }

    /// A part's nonzeros: where each of its rows starts among them, and where the last one ends; the column of each in
    /// the matrix's order; and the values. Its first and last row may be cut.
    pub fn nonzeros_of(&self, part: usize) -> (Vec<u32>, &[u32], &[T]) {
        let Part { rows, nonzeros, .. } = &self.layout.partition.parts()[part];
        let (start, end) = (nonzeros.start as u32, nonzeros.end as u32);
        let row_ptr = self.row_ptr();
        let within = |&pointer: &u32| pointer.clamp(start, end) - start;
        let row_ptr = row_ptr[rows.start..=rows.end].iter().map(within);
        (
            row_ptr.collect(),
            &self.a.indices()[nonzeros.clone()],
            &self.a.data()[nonzeros.clone()],
        )
    }

    /// A part's matrix: its rows, or pieces of rows, and a column for each row of X that it uses.
    pub fn matrix_of(&self, part: usize) -> CsrMatrix<T> {
        let halo = &self.layout.halos[part];
        let (row_ptr, columns, values) = self.nonzeros_of(part);
        // The entries of columns that the part does not select are never read.
        let mut numbers = vec![0; self.layout.owners.rows()];
        for (local, global) in (0..).zip(halo.global()) {
            numbers[global as usize] = local;
        }
        let mut local_columns = vec![0; columns.len()];
        parallel::fill(&mut local_columns, |place| numbers[columns[place] as usize]);
        let shape = (row_ptr.len() - 1, halo.local_len());
        CsMatI::new(shape, row_ptr, local_columns, values.to_vec())
    }
}

impl Layout {
    /// The order of the rows.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The parts.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The owners of the rows of X, in the order of A's rows if A is square.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// The halo of each part.
    pub fn halos(&self) -> &[Halo] {
        &self.halos
    }

    /// The halo of each part, shared.
    pub(super) fn shared_halos(&self) -> &Arc<Vec<Halo>> {
        &self.halos
    }

    /// The order of the rows of X.
    pub(super) fn x_order(&self) -> Order {
        match self.is_square {
            true => self.order.clone(),
            false => Order::given(),
        }
    }

    /// The caller's number of a row of X.
    pub fn original_x_row(&self, row: usize) -> usize {
        match self.is_square {
            true => self.order.original_row(row),
            false => row,
        }
    }

    /// Whether the rows of X are in the caller's order.
    pub(super) fn has_given_x_rows(&self) -> bool {
        !self.is_square || self.order.original().is_none()
    }

    /// The rows of X that travel.
    pub fn volume(&self) -> Volume {
        Volume::of(&self.halos, &self.owners)
    }
}
