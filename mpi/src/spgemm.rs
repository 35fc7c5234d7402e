//! SpGEMM over ranks: the rows of B travel on demand, in rounds that bound their memory.

use crate::pieces::{owner_of_piece, ranks_with_pieces};
use crate::scatter_sparse::scatter_b;
use crate::shares::rows_of_shares;
use crate::{DistributedCsr, Word, World};
use anyhow::{Context, Result, ensure};
use sprs::{CsMatI, CsMatViewI};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};
use warprow::multi::{Distribution, DivisionOptions, OperandRows, RowCuts};
use warprow::spgemm::multiply;
use warprow::{CsrMatrix, Device, DeviceCsr, RowOrder, SpgemmElement, SpgemmOptions};

/// A and B on rank 0.
pub type Operands<'a, T> = (CsMatViewI<'a, T, u32, u32>, CsMatViewI<'a, T, u32, u32>);

/// For each rank, the nonzeros of this rank's rows of B that it has asked for.
pub(crate) type Replies = Vec<Vec<Range<usize>>>;

/// This rank's rows of A and B.
#[derive(Debug)]
pub struct Spgemm<T: SpgemmElement> {
    a: DistributedCsr<T>,
    /// The rows of B that this rank owns.
    own_b: CsrMatrix<T>,
    device: Device,
    options: SpgemmOptions,
    /// Bytes of rows of B that a rank receives in a round, at least those of one row of A.
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

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn options(&self) -> SpgemmOptions {
        self.options
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
            let (b, _) = self.rows_of_b(world, &used, &mut result.received)?;
            exchange += started.elapsed();
            if rows.is_empty() {
                continue;
            }
            let started = Instant::now();
            let a = DeviceCsr::upload(&self.device, self.chunk_of_a(rows, &used)?.view())?;
            let b = DeviceCsr::upload(&self.device, b.view())?;
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

    /// The lengths of the rows of B in the halo, from their owners.
    fn lengths_of_halo(&self, world: &World) -> Vec<u32> {
        let halo = self.a.halo();
        let wanted: Vec<Vec<u32>> = (0..world.size())
            .map(|rank| halo.rows_from(rank).to_vec())
            .collect();
        let asked = world.exchange(&wanted);
        let length = |&row: &u32| self.own_row(row).len() as u32;
        let lengths: Vec<Vec<u32>> = asked
            .iter()
            .map(|rows| rows.iter().map(length).collect())
            .collect();
        world.exchange(&lengths).concat()
    }

    /// The nonzeros of an own row of B, by its global number.
    pub(crate) fn own_row(&self, row: u32) -> Range<usize> {
        let row = row as usize - self.a.halo().own().start;
        self.own_b.indptr().outer_inds_sz(row)
    }

    /// Ranges of this rank's rows whose rows of B, those of other ranks, have at most the bytes of a round.
    fn chunks(&self, lengths: &[u32]) -> Vec<Range<usize>> {
        let own = self.a.halo().local_own();
        let bytes = |local: usize| {
            let number = if local < own.start {
                local
            } else {
                local - own.len()
            };
            8 + u64::from(lengths[number]) * (4 + size_of::<T>() as u64)
        };
        let mut last_used = vec![usize::MAX; self.a.halo().local_len()];
        let (mut chunks, mut start, mut total) = (Vec::new(), 0, 0);
        for (row, columns) in self.a.local().outer_iterator().enumerate() {
            let is_foreign = |column: &&u32| !own.contains(&(**column as usize));
            let foreign = || {
                columns
                    .indices()
                    .iter()
                    .filter(is_foreign)
                    .map(|&k| k as usize)
            };
            let new: u64 = foreign()
                .filter(|&k| last_used[k] != start)
                .map(bytes)
                .sum();
            if total > 0 && total + new > self.round_bytes {
                chunks.push(start..row);
                (start, total) = (row, 0);
            }
            for column in foreign() {
                if last_used[column] != start {
                    last_used[column] = start;
                    total += bytes(column);
                }
            }
        }
        chunks.push(start..self.a.local().rows());
        chunks.retain(|rows| !rows.is_empty());
        chunks
    }

    /// The columns of some of this rank's rows, ascending.
    pub(crate) fn used_columns(&self, rows: Range<usize>) -> Vec<u32> {
        let local = self.a.local();
        let rows = local.slice_outer(rows);
        let mut used = rows.indices().to_vec();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Rows of A with their columns numbered among those that they use.
    pub(crate) fn chunk_of_a(&self, rows: Range<usize>, used: &[u32]) -> Result<CsrMatrix<T>> {
        let rows = self.a.local().slice_outer(rows);
        let number = |column| used.binary_search(column).expect("they are all used") as u32;
        let columns = rows.indices().iter().map(number).collect();
        let row_ptr = rows.indptr().to_proper().into_owned();
        let shape = (rows.rows(), used.len());
        Ok(CsMatI::new(shape, row_ptr, columns, rows.data().to_vec()))
    }

    /// The rows of B with these local numbers, from this rank and the others; and this rank's nonzeros of B that each
    /// of the others has asked for.
    pub(crate) fn rows_of_b(
        &self,
        world: &World,
        used: &[u32],
        received: &mut u64,
    ) -> Result<(CsrMatrix<T>, Replies)> {
        let halo = self.a.halo();
        let global: Vec<u32> = halo.global().collect();
        let mut wanted = vec![Vec::new(); world.size()];
        for &local in used {
            let row = global[local as usize];
            if !halo.local_own().contains(&(local as usize)) {
                wanted[self.a.owners().owner(row as usize)].push(row);
            }
        }
        *received += wanted.iter().map(|rows| rows.len() as u64).sum::<u64>();
        let asked = world.exchange(&wanted);
        let reply = |rows: &Vec<u32>| rows.iter().map(|&row| self.own_row(row)).collect();
        let replies: Vec<Vec<Range<usize>>> = asked.iter().map(reply).collect();
        let of = |list: &Range<usize>| list.len() as u32;
        let lengths = world.exchange(&replies_of(&replies, |ranges| {
            ranges.iter().map(of).collect()
        }));
        let indices = |range: &Range<usize>| self.own_b.indices()[range.clone()].to_vec();
        let columns = world.exchange(&replies_of(&replies, |ranges| {
            ranges.iter().flat_map(indices).collect()
        }));
        let data = |range: &Range<usize>| self.own_b.data()[range.clone()].to_vec();
        let values = world.exchange(&replies_of(&replies, |ranges| {
            ranges.iter().flat_map(data).collect()
        }));
        // Other ranks' rows come in their global order, which is that of `used`.
        let (lengths, columns, values) = (lengths.concat(), columns.concat(), values.concat());
        let (mut next, mut start) = (0, 0);
        let (mut row_ptr, mut col_idx, mut data) = (vec![0], Vec::new(), Vec::new());
        for &local in used {
            if halo.local_own().contains(&(local as usize)) {
                let row = self.own_row(global[local as usize]);
                col_idx.extend_from_slice(&self.own_b.indices()[row.clone()]);
                data.extend_from_slice(&self.own_b.data()[row]);
            } else {
                let end = start + lengths[next] as usize;
                col_idx.extend_from_slice(&columns[start..end]);
                data.extend_from_slice(&values[start..end]);
                (next, start) = (next + 1, end);
            }
            row_ptr.push(u32::try_from(col_idx.len()).context("a round has 2^32 nonzeros of B")?);
        }
        let shape = (used.len(), self.own_b.cols());
        Ok((CsMatI::new(shape, row_ptr, col_idx, data), replies))
    }

    /// The owned rows, with the pieces of the last one that other ranks have.
    pub(crate) fn with_pieces(&self, world: &World, c: &CsrMatrix<T>) -> Result<CsrMatrix<T>> {
        let partition = self.a.partition();
        let mut first = 0;
        if let Some(owner) = owner_of_piece(partition, world.rank()) {
            let piece = c.outer_view(0).context("a rank with a piece has a row")?;
            world.send(owner, piece.indices());
            world.send(owner, piece.data());
            first = 1;
        }
        let owned = c.slice_outer(first..c.rows()).to_owned();
        let ranks = ranks_with_pieces(partition, world.rank());
        if ranks.is_empty() {
            return Ok(owned);
        }
        let whole = owned.slice_outer(0..owned.rows() - 1);
        let last = owned
            .outer_view(owned.rows() - 1)
            .context("an owner has the row")?;
        let mut sums: BTreeMap<u32, T> = (last.iter())
            .map(|(column, &value)| (column as u32, value))
            .collect();
        for rank in ranks {
            let columns = world.receive::<u32>(rank);
            let values = world.receive::<T>(rank);
            for (column, value) in columns.into_iter().zip(values) {
                let sum = sums.get(&column).map_or(value, |&sum| sum + value);
                sums.insert(column, sum);
            }
        }
        let mut row_ptr = whole.indptr().to_proper().into_owned();
        let mut columns = whole.indices().to_vec();
        let mut values = whole.data().to_vec();
        for (column, value) in sums {
            columns.push(column);
            values.push(value);
        }
        row_ptr.push(u32::try_from(columns.len()).context("a rank has 2^32 entries of C")?);
        Ok(CsMatI::new(
            (owned.rows(), owned.cols()),
            row_ptr,
            columns,
            values,
        ))
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

fn replies_of<W>(
    replies: &[Vec<Range<usize>>],
    list: impl Fn(&[Range<usize>]) -> Vec<W>,
) -> Vec<Vec<W>> {
    replies.iter().map(|ranges| list(ranges)).collect()
}
