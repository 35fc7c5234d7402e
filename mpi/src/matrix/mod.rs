//! A sparse matrix whose rows are on several ranks. The other files say how it gets there and how results come back.

pub mod cut_rows;
pub mod dense_rows;
pub mod gather_sparse;
pub mod output;
pub mod read_share;
pub mod scatter_sparse;
pub mod shared_file;
pub mod shares;

use crate::world::{Word, World};
use anyhow::{Context, Result};
use sprs::{CsMatI, CsMatViewI};
use std::num::NonZeroUsize;
use warprow::multi::{
    Division, DivisionOptions, Halo, OperandRows, Order, Owners, Part, Partition,
};
use warprow::{CsrMatrix, Device, Scalar};

/// This rank's rows of a matrix, and what all ranks know of each other's.
///
/// The ranks have blocks of rows of equal work, in the order that rank 0 has planned. The first and the last row of a
/// rank may be cut.
#[derive(Clone, Debug)]
pub struct DistributedCsr<T> {
    rank: usize,
    shape: (usize, usize),
    order: Order,
    partition: Partition,
    owners: Owners,
    operand: OperandRows,
    halo: Halo,
    local: CsrMatrix<T>,
}

impl<T: Scalar + Word> DistributedCsr<T> {
    /// Rank 0 divides its matrix and sends each rank its part. `device` looks for an order of the rows there. The work
    /// is that of SpMM; with the lengths of the rows of B it is that of SpGEMM.
    ///
    /// # Errors
    ///
    /// On rank 0 lists that are no matrix, or a device that fails; no matrix there.
    pub fn scatter(
        world: &World,
        device: &Device,
        a: Option<CsMatViewI<'_, T, u32, u32>>,
        b_lengths: Option<&[u32]>,
        options: DivisionOptions,
    ) -> Result<Self> {
        let division = match world.is_root() {
            false => None,
            true => {
                let a = a.context("rank 0 has no matrix to scatter")?;
                let parts =
                    NonZeroUsize::new(world.size()).context("a run has at least one rank")?;
                Some(Division::plan(device, a, parts, options, b_lengths)?)
            }
        };
        let shape = broadcast_shape(world, division.as_ref());
        let partition = broadcast_partition(world, division.as_ref())?;
        let order = broadcast_order(world, division.as_ref())?;
        let (row_ptr, columns, values) = match &division {
            None => (world.receive(0), world.receive(0), world.receive(0)),
            Some(division) => {
                for rank in 1..world.size() {
                    let (row_ptr, columns, values) = division.nonzeros_of(rank);
                    world.send(rank, &row_ptr);
                    world.send(rank, columns);
                    world.send(rank, values);
                }
                let (row_ptr, columns, values) = division.nonzeros_of(0);
                (row_ptr, columns.to_vec(), values.to_vec())
            }
        };
        let rows = CsMatI::new((row_ptr.len() - 1, shape.1), row_ptr, columns, values);
        Self::of_rows(world, shape, order, partition, options.operand, rows)
    }

    /// This rank's rows, with their columns in the whole matrix, and what all ranks know.
    pub(crate) fn of_rows(
        world: &World,
        shape: (usize, usize),
        order: Order,
        partition: Partition,
        operand: OperandRows,
        rows: CsrMatrix<T>,
    ) -> Result<Self> {
        let rank = world.rank();
        let owners = match shape.0 == shape.1 {
            true => partition.owners(),
            false => Owners::equal(
                shape.1,
                NonZeroUsize::new(world.size()).context("no ranks")?,
            ),
        };
        let halo = match operand {
            OperandRows::Needed => Halo::new(rank, &owners, rows.indices()),
            OperandRows::Replicated => Halo::replicated(rank, &owners),
        };
        let (row_ptr, columns, values) = rows.into_raw_storage();
        let local = |&column: &u32| halo.local(column).expect("the halo has all columns") as u32;
        let columns = columns.iter().map(local).collect();
        let local = CsMatI::new(
            (row_ptr.len() - 1, halo.local_len()),
            row_ptr,
            columns,
            values,
        );
        Ok(Self {
            rank,
            shape,
            order,
            partition,
            owners,
            operand,
            halo,
            local,
        })
    }
}

impl<T> DistributedCsr<T> {
    /// Rows and columns of the whole matrix.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// This rank's part.
    pub fn part(&self) -> &Part {
        &self.partition.parts()[self.rank]
    }

    /// All parts.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The owners of the rows of X or B.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// What the ranks are given of X or B.
    pub fn operand(&self) -> OperandRows {
        self.operand
    }

    /// The rows of X or B that this rank is given.
    pub fn halo(&self) -> &Halo {
        &self.halo
    }

    /// The order of the rows.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// This rank's rows, with a column for each row of X or B that they select.
    pub fn local(&self) -> &CsrMatrix<T> {
        &self.local
    }

    /// The caller's number of a row of X or B.
    pub fn original_x_row(&self, row: usize) -> usize {
        match self.shape.0 == self.shape.1 {
            true => self.order.original_row(row),
            false => row,
        }
    }
}

fn broadcast_shape<T>(world: &World, division: Option<&Division<T>>) -> (usize, usize)
where
    T: Scalar + Default,
{
    let shape = division.map_or(vec![], |division| {
        let (rows, columns) = division.shape();
        vec![rows as u64, columns as u64]
    });
    let shape = world.broadcast(shape);
    (shape[0] as usize, shape[1] as usize)
}

fn broadcast_partition<T>(world: &World, division: Option<&Division<T>>) -> Result<Partition>
where
    T: Scalar + Default,
{
    let parts = division.map_or(&[][..], |division| division.layout().partition().parts());
    let numbers = parts.iter().flat_map(|part| {
        let Part {
            rows,
            nonzeros,
            owned,
            work,
        } = part;
        let ranges = [rows, nonzeros, owned].map(|range| [range.start as u64, range.end as u64]);
        ranges.into_iter().flatten().chain([*work])
    });
    let numbers = world.broadcast(numbers.collect());
    let part = |numbers: &[u64]| {
        let range = |index: usize| numbers[index] as usize..numbers[index + 1] as usize;
        Part {
            rows: range(0),
            nonzeros: range(2),
            owned: range(4),
            work: numbers[6],
        }
    };
    Ok(Partition::of_parts(
        numbers.chunks_exact(7).map(part).collect(),
    )?)
}

fn broadcast_order<T>(world: &World, division: Option<&Division<T>>) -> Result<Order>
where
    T: Scalar + Default,
{
    let original = division.and_then(|division| division.layout().order().original());
    let is_given = world.broadcast(vec![u8::from(original.is_none())]);
    if is_given == [1] {
        return Ok(Order::given());
    }
    let original = world.broadcast(original.unwrap_or(&[]).to_vec());
    Ok(Order::of_rows(original)?)
}
