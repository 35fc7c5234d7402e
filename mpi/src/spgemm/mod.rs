//! SpGEMM over ranks: the rows of B travel on demand, in rounds that bound their memory.

mod cut_rows;
mod rounds;
mod rows_of_b;
pub mod structure;

use crate::matrix::DistributedCsr;
use crate::matrix::scatter_sparse::scatter_b;
use crate::matrix::shares::rows_of_shares;
use crate::world::{Word, World};
use anyhow::{Context, Result, ensure};
use sprs::{CsMatI, CsMatViewI};
use std::time::{Duration, Instant};
use warprow::multi::{Distribution, DivisionOptions, OperandRows, RowCuts};
use warprow::spgemm::multiply;
use warprow::{CsrMatrix, Device, DeviceCsr, RowOrder, SpgemmElement, SpgemmOptions};

/// A and B on rank 0.
pub type Operands<'a, T> = (CsMatViewI<'a, T, u32, u32>, CsMatViewI<'a, T, u32, u32>);

/// This rank's rows of A and B.
#[derive(Debug)]
pub struct Spgemm<T: SpgemmElement> {
    a: DistributedCsr<T>,
    /// The rows of B that this rank owns.
    own_b: CsrMatrix<T>,
    device: Device,
    options: SpgemmOptions,
    /// Bytes of rows of B that a rank receives in a round, at least those of one row of A; not if B is replicated.
    round_bytes: u64,
}

/// This rank's rows of C.
#[derive(Clone, Debug)]
pub struct SpgemmResult<T> {
    /// The rows that it owns.
    pub c: CsrMatrix<T>,
    /// Products of its rows: multiplications of a nonzero of A with one of B.
    pub products: u64,
    /// Rounds in which rows of B travelled, the same on all ranks.
    pub rounds: usize,
    /// Rows of B that it received.
    pub received: u64,
    /// The most bytes of rows of B that it received in a round.
    pub largest_round_bytes: u64,
    /// Seconds for rows of B that travelled, and for pieces of rows of C.
    pub exchange_seconds: f64,
    /// Seconds for uploads, products and downloads.
    pub computation_seconds: f64,
}

impl<T: SpgemmElement + Word> Spgemm<T> {
    /// Rank 0 sends each rank its rows of A, divided by products, and its rows of B. With a deterministic product the
    /// rows stay in the caller's order, and none is cut.
    ///
    /// # Errors
    ///
    /// On rank 0 operands that do not fit or are missing; a device that fails.
    pub fn scatter(
        world: &World,
        device: &Device,
        operands: Option<Operands<'_, T>>,
        options: SpgemmOptions,
        division: DivisionOptions,
        round_bytes: u64,
    ) -> Result<Self> {
        let mut division = division;
        if options.deterministic {
            division.order = Some(RowOrder::Given);
            division.distribution = Distribution::Blocks;
        }
        if options.deterministic || options.drop_zeros {
            division.cuts = RowCuts::Never;
        }
        let mut lengths = None;
        if let Some((a, b)) = &operands {
            ensure!(b.is_csr(), "B is not stored by rows");
            fits((a.rows(), a.cols()), (b.rows(), b.cols()))?;
            lengths = Some(
                b.outer_iterator()
                    .map(|row| row.nnz() as u32)
                    .collect::<Vec<u32>>(),
            );
        }
        let a = operands.as_ref().map(|(a, _)| *a);
        let a = DistributedCsr::scatter(world, device, a, lengths.as_deref(), division)?;
        let b = operands.as_ref().map(|(_, b)| *b);
        Ok(Self {
            own_b: scatter_b(world, &a, b)?,
            device: device.clone(),
            options,
            round_bytes,
            a,
        })
    }

    /// A and B of which each rank has read a share; without B it is A. Rows stay in their order and are not cut.
    ///
    /// # Errors
    ///
    /// Operands that do not fit; 2^32 nonzeros or more on one rank.
    pub fn of_shares(
        world: &World,
        device: &Device,
        (a, b): (&CsrMatrix<T>, Option<&CsrMatrix<T>>),
        options: SpgemmOptions,
        operand: OperandRows,
        round_bytes: u64,
    ) -> Result<Self> {
        let b = b.unwrap_or(a);
        fits((a.rows(), a.cols()), (b.rows(), b.cols()))?;
        let lengths = b.outer_iterator().map(|row| row.nnz() as u64);
        let lengths = world.sum(lengths.collect());
        let a = DistributedCsr::of_shares(world, a, Some(&lengths), operand)?;
        let owned: Vec<_> = (0..world.size())
            .map(|rank| a.owners().rows_of(rank))
            .collect();
        Ok(Self {
            own_b: rows_of_shares(world, b, &owned)?,
            device: device.clone(),
            options,
            round_bytes,
            a,
        })
    }

    /// The matrix A.
    pub fn matrix(&self) -> &DistributedCsr<T> {
        &self.a
    }

    /// The rows of B that this rank owns.
    pub fn own_b(&self) -> &CsrMatrix<T> {
        &self.own_b
    }

    /// Computes the rows of C that this rank owns. Pieces of cut rows travel to their owner.
    ///
    /// # Errors
    ///
    /// 2^32 entries or more on one rank; a device that fails.
    pub fn multiply(&self, world: &World) -> Result<SpgemmResult<T>> {
        let started = Instant::now();
        let lengths = self.lengths_of_halo(world);
        let mut exchange = started.elapsed();
        let chunks = self.chunks(&lengths);
        let rounds = (world.all(chunks.len() as u64).into_iter().max()).unwrap_or(0) as usize;
        let mut result = SpgemmResult {
            c: CsrMatrix::zero((0, self.own_b.cols())),
            products: 0,
            rounds,
            received: 0,
            largest_round_bytes: 0,
            exchange_seconds: 0.0,
            computation_seconds: 0.0,
        };
        let mut computation = Duration::ZERO;
        let (mut row_ptr, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for round in 0..rounds {
            // A rank that has done its rows still sends what others ask for.
            let rows = chunks.get(round).cloned().unwrap_or(0..0);
            let used = self.used_columns(rows.clone());
            let started = Instant::now();
            let of_b = self.rows_of_b(world, &used)?;
            exchange += started.elapsed();
            result.received += of_b.received;
            result.largest_round_bytes = result.largest_round_bytes.max(of_b.received_bytes);
            if rows.is_empty() {
                continue;
            }
            let started = Instant::now();
            let a = DeviceCsr::upload(&self.device, self.chunk_of_a(rows, &used)?.view())?;
            let b = DeviceCsr::upload(&self.device, of_b.b.view())?;
            let product = multiply(&a, &b, self.options)?;
            result.products += product.products;
            let c = product.c.download()?;
            let before = columns.len() as u64;
            for end in &c.indptr().to_proper()[1..] {
                let end = u32::try_from(before + u64::from(*end));
                row_ptr
                    .push(end.context("too large: a rank's part of C has 2^32 entries or more")?);
            }
            columns.extend_from_slice(c.indices());
            values.extend_from_slice(c.data());
            computation += started.elapsed();
        }
        let shape = (row_ptr.len() - 1, self.own_b.cols());
        let local = CsMatI::new(shape, row_ptr, columns, values);
        let started = Instant::now();
        result.c = self.with_pieces(world, &local)?;
        exchange += started.elapsed();
        result.exchange_seconds = exchange.as_secs_f64();
        result.computation_seconds = computation.as_secs_f64();
        Ok(result)
    }
}

/// Checks the shapes of A and B.
fn fits((_, columns): (usize, usize), b: (usize, usize)) -> Result<()> {
    let (rows, b_columns) = b;
    ensure!(
        columns == rows,
        "wrong shape: B is {rows} x {b_columns}, wanted are {columns} rows"
    );
    Ok(())
}
