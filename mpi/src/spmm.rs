//! SpMM over ranks: halos travel while the rows that need none are multiplied.

use crate::exchange::{HaloExchange, Traffic};
use crate::matrix::DistributedCsr;
use crate::matrix::cut_rows::{owner_of_piece, ranks_with_pieces};
use crate::matrix::dense_rows::scatter_rows;
use crate::transport::Transport;
use crate::world::{Word, World};
use anyhow::{Context, Result, ensure};
use ndarray::{Array2, ArrayView2};
use sprs::CsMatI;
use std::ops::Range;
use std::rc::Rc;
use warprow::multi::Part;
use warprow::{CsrMatrix, Device, DeviceBuffer, Reduction, SpmmElement, SpmmOptions};

/// This rank's part of `Y = A X`, planned once and run many times.
#[derive(Debug)]
pub struct Spmm<T: SpmmElement> {
    a: DistributedCsr<T>,
    exchange: HaloExchange<T>,
    /// Rows that select only own rows of X.
    interior: Rows<T>,
    /// Rows that select rows of other ranks, too.
    boundary: Rows<T>,
    device: Device,
}

/// Some of a rank's rows, and their product's plan.
#[derive(Debug)]
struct Rows<T: SpmmElement> {
    /// Their numbers among the rank's rows.
    numbers: Vec<usize>,
    plan: warprow::Spmm<T>,
}

impl<T: SpmmElement> Rows<T> {
    /// Plans the product of these rows with the columns in a range, which are all that they have.
    fn plan(
        device: &Device,
        a: &CsrMatrix<T>,
        numbers: Vec<usize>,
        columns: Range<usize>,
        options: SpmmOptions,
    ) -> Result<Self> {
        let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
        for &row in &numbers {
            let row = a
                .outer_view(row)
                .context("a row is not one of the matrix")?;
            let of_range = |&column: &u32| column - columns.start as u32;
            col_idx.extend(row.indices().iter().map(of_range));
            values.extend_from_slice(row.data());
            row_ptr.push(col_idx.len() as u32);
        }
        let rows = CsMatI::new((numbers.len(), columns.len()), row_ptr, col_idx, values);
        let plan = warprow::Spmm::plan(device, rows.view(), options)?;
        Ok(Self { numbers, plan })
    }

    fn run(&self, x: &DeviceBuffer<T>, features: usize) -> Result<DeviceBuffer<T>> {
        let mut y = self
            .plan
            .device()
            .uninitialized(self.numbers.len() * features)?;
        self.plan.run(x, features, &mut y)?;
        Ok(y)
    }
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
        let (interior, boundary) = (0..a.local().rows()).partition(is_interior);
        let all = 0..a.halo().local_len();
        Ok(Self {
            exchange: HaloExchange::plan(world, device, a.halo(), transport)?,
            interior: Rows::plan(device, a.local(), interior, own.clone(), options)?,
            boundary: Rows::plan(device, a.local(), boundary, all, options)?,
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
        let mut interior = None;
        let local_x = self.exchange.run(world, own_x, features, || {
            interior = Some(self.interior.run(own_x, features)?);
            Ok(())
        })?;
        Ok(LocalProduct {
            interior: interior.context("the interior rows have not run")?,
            boundary: self.boundary.run(&local_x, features)?,
            features,
        })
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

    /// The product alone of the rows that need no halo: the first half of a [`LocalProduct`].
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub fn multiply_interior(
        &self,
        own_x: &DeviceBuffer<T>,
        features: usize,
    ) -> Result<DeviceBuffer<T>> {
        self.interior.run(own_x, features)
    }

    /// The product alone of the other rows, with what [`exchange`](Self::exchange) has returned.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub fn multiply_boundary(
        &self,
        local_x: &DeviceBuffer<T>,
        features: usize,
    ) -> Result<DeviceBuffer<T>> {
        self.boundary.run(local_x, features)
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
