//! SpMM over ranks: halos travel while the rows that need none, and the own columns of the others, are multiplied.

use crate::exchange::{HaloExchange, Traffic};
use crate::matrix::DistributedCsr;
use crate::matrix::cut_rows::{owner_of_piece, ranks_with_pieces};
use crate::matrix::dense_rows::scatter_rows;
use crate::transport::Transport;
use crate::world::{Word, World};
use anyhow::{Context, Result, ensure};
use cuda_std::float::Real;
use ndarray::{Array2, ArrayView2};
use sprs::CsMatI;
use std::ops::Range;
use std::rc::Rc;
use warprow::multi::{ColumnSplit, Part};
use warprow::{CsrMatrix, Device, DeviceBuffer, Reduction, SpmmElement, SpmmOptions};

/// The rows of X that a plan is given begin at a multiple of so many: with any number of features at a multiple of 16
/// bytes then, as kernels want.
const ROW_ALIGNMENT: usize = 8;

/// This rank's part of `Y = A X`, planned once and run many times.
#[derive(Debug)]
pub struct Spmm<T: SpmmElement> {
    a: DistributedCsr<T>,
    exchange: HaloExchange<T>,
    /// Rows that select only own rows of X.
    interior: Rows<T>,
    /// Rows that select rows of other ranks, too. With a [`ColumnSplit`], their nonzeros in the halo's columns.
    boundary: Rows<T>,
    /// Their other nonzeros.
    boundary_own: Option<warprow::Spmm<T>>,
    /// The rows of X among the rank's local ones that `boundary` is given.
    boundary_columns: Range<usize>,
    device: Device,
}

/// Some of a rank's rows, and their product's plan.
#[derive(Debug)]
struct Rows<T: SpmmElement> {
    /// Their numbers among the rank's rows.
    numbers: Vec<usize>,
    plan: warprow::Spmm<T>,
}

/// These rows of a matrix, with the columns in a range, which are all that they have.
fn rows_of<T: SpmmElement>(
    a: &CsrMatrix<T>,
    numbers: &[usize],
    columns: Range<usize>,
) -> Result<CsrMatrix<T>> {
    let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
    for &row in numbers {
        let row = a
            .outer_view(row)
            .context("a row is not one of the matrix")?;
        let of_range = |&column: &u32| column - columns.start as u32;
        col_idx.extend(row.indices().iter().map(of_range));
        values.extend_from_slice(row.data());
        row_ptr.push(col_idx.len() as u32);
    }
    let shape = (numbers.len(), columns.len());
    Ok(CsMatI::new(shape, row_ptr, col_idx, values))
}

/// A product that is still on the rank's device.
#[derive(Debug)]
pub struct LocalProduct<T: SpmmElement> {
    interior: DeviceBuffer<T>,
    boundary: DeviceBuffer<T>,
    features: usize,
}

impl<T: SpmmElement + Word> Spmm<T> {
    /// Plans the rank's rows on its device, and agrees with the other ranks on what travels.
    ///
    /// # Errors
    ///
    /// A kernel that cannot do what the options say; another reduction than the sum, if rows
    /// are cut; a device without memory; the driver's.
    pub fn plan(
        world: &World,
        device: &Device,
        a: DistributedCsr<T>,
        options: SpmmOptions,
        transport: &Rc<dyn Transport<T>>,
    ) -> Result<Self> {
        ensure!(!options.transpose, "a distributed matrix is not transposed");
        let is_cut = |part: &Part| part.rows.start < part.owned.start;
        ensure!(
            options.reduction == Reduction::Sum || !a.partition().parts().iter().any(is_cut),
            "rows that are cut between ranks can only be summed: plan with `RowCuts::Never` for {:?}",
            options.reduction
        );
        let own = a.halo().local_own();
        let is_interior = |&row: &usize| {
            let row = a.local().outer_view(row);
            row.is_none_or(|row| row.indices().iter().all(|&k| own.contains(&(k as usize))))
        };
        let (interior, boundary): (Vec<usize>, Vec<usize>) =
            (0..a.local().rows()).partition(is_interior);
        let plan = |a: &CsrMatrix<T>| warprow::Spmm::plan(device, a.view(), options);
        let interior = Rows {
            plan: plan(&rows_of(a.local(), &interior, own.clone())?)?,
            numbers: interior,
        };
        let all = 0..a.halo().local_len();
        let rows = rows_of(a.local(), &boundary, all.clone())?;
        let first = own.start;
        let split = ColumnSplit::if_it_pays(&rows, own, first, ROW_ALIGNMENT, options);
        let (boundary_own, boundary_plan, boundary_columns) = match split {
            None => (None, plan(&rows)?, all),
            Some(split) => (
                Some(plan(&split.own.a)?),
                plan(&split.halo.a)?,
                split.halo.columns,
            ),
        };
        Ok(Self {
            exchange: HaloExchange::plan(world, device, a.halo(), transport)?,
            interior,
            boundary: Rows {
                numbers: boundary,
                plan: boundary_plan,
            },
            boundary_own,
            boundary_columns,
            device: device.clone(),
            a,
        })
    }

    /// The matrix.
    pub fn matrix(&self) -> &DistributedCsr<T> {
        &self.a
    }

    /// Uploads this rank's rows of an X that rank 0 has.
    ///
    /// # Errors
    ///
    /// On rank 0 no X, or one of another number of rows; a device without memory; the driver's.
    pub fn scatter_x(
        &self,
        world: &World,
        x: Option<ArrayView2<'_, T>>,
    ) -> Result<(DeviceBuffer<T>, usize)> {
        let (rows, features) = scatter_rows(world, &self.a, x)?;
        Ok((self.device.upload(&rows)?, features))
    }

    /// What this rank sends and receives in a product.
    pub fn traffic(&self) -> Traffic {
        self.exchange.traffic()
    }

    /// Multiplies: sends halos, multiplies the rows that need none, and then the others. It does not wait for the
    /// device's last launches.
    ///
    /// # Errors
    ///
    /// An X of another length; a device that fails.
    pub fn run(
        &self,
        world: &World,
        own_x: &DeviceBuffer<T>,
        features: usize,
    ) -> Result<LocalProduct<T>> {
        let mut product = None;
        let local_x = self.exchange.run(world, own_x, features, || {
            product = Some(self.multiply_own(own_x, features)?);
            Ok(())
        })?;
        let mut product = product.context("what needs no halo has not run")?;
        self.add_halo(&local_x, &mut product)?;
        Ok(product)
    }

    /// The exchange alone: this rank's rows of X, and those of its halo.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub fn exchange(
        &self,
        world: &World,
        own_x: &DeviceBuffer<T>,
        features: usize,
    ) -> Result<DeviceBuffer<T>> {
        self.exchange.run(world, own_x, features, || Ok(()))
    }

    /// What needs no halo: the interior rows, and the sums of the others' own columns.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub fn multiply_own(
        &self,
        own_x: &DeviceBuffer<T>,
        features: usize,
    ) -> Result<LocalProduct<T>> {
        let room = |rows: &Rows<T>| self.device.uninitialized(rows.numbers.len() * features);
        let (mut interior, mut boundary) = (room(&self.interior)?, room(&self.boundary)?);
        self.interior.plan.run(own_x, features, &mut interior)?;
        if let Some(plan) = &self.boundary_own {
            plan.run(own_x, features, &mut boundary)?;
        }
        Ok(LocalProduct {
            interior,
            boundary,
            features,
        })
    }

    /// All else: completes what [`multiply_own`](Self::multiply_own) has returned, with the rows of X that
    /// [`exchange`](Self::exchange) has.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub fn add_halo(&self, local_x: &DeviceBuffer<T>, y: &mut LocalProduct<T>) -> Result<()> {
        let (one, zero) = (<T::Sum as Real>::ONE, T::Sum::ZERO);
        let beta = if self.boundary_own.is_some() {
            one
        } else {
            zero
        };
        let Range { start, end } = self.boundary_columns;
        let x = local_x.slice(start * y.features..end * y.features)?;
        (self.boundary.plan).run_scaled(one, x, y.features, beta, &mut y.boundary)?;
        Ok(())
    }

    /// The rows of Y that this rank owns, on the host. Pieces of cut rows travel to their owner, which adds them.
    ///
    /// # Errors
    ///
    /// A device that failed before.
    pub fn download(&self, world: &World, y: &LocalProduct<T>) -> Result<Array2<T>> {
        let part = self.a.part();
        let mut rows = Array2::from_elem((part.rows.len(), y.features), T::default());
        for (subset, values) in [(&self.interior, &y.interior), (&self.boundary, &y.boundary)] {
            let values = values.download()?;
            let values = ArrayView2::from_shape((subset.numbers.len(), y.features), &values)?;
            for (&row, values) in subset.numbers.iter().zip(values.rows()) {
                rows.row_mut(row).assign(&values);
            }
        }
        let partition = self.a.partition();
        let first_owned = part.owned.start - part.rows.start;
        if let Some(owner) = owner_of_piece(partition, world.rank()) {
            world.send(owner, &rows.row(0).to_vec());
        }
        for rank in ranks_with_pieces(partition, world.rank()) {
            let mut last = rows.row_mut(part.rows.len() - 1);
            for (sum, piece) in last.iter_mut().zip(world.receive::<T>(rank)) {
                *sum = *sum + piece;
            }
        }
        Ok(rows.slice_move(ndarray::s![first_owned.., ..]))
    }
}
