//! SpMM over several devices: `Y = A X`, the rows of A divided by work.

use super::devices::Devices;
use super::division::{Division, DivisionOptions, Layout};
use super::exchange::Exchange;
use super::parted::{PartRows, PartedDense};
use super::partition::RowCuts;
use super::row_pieces::RowPieces;
use super::spmm_part::SpmmPart;
use crate::operand::OperandError;
use crate::setters::setters;
use crate::spmm::{SpmmElement, SpmmError, SpmmOptions};
use cuda_std::element::Element;
use ndarray::{Array2, ArrayView2, ArrayViewMut1};
use sprs::CsMatViewI;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How a product over several devices is planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultiSpmmOptions {
    /// How each device plans its part.
    pub spmm: SpmmOptions,
    /// How A is divided.
    pub division: DivisionOptions,
}

impl MultiSpmmOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields { spmm: SpmmOptions, division: DivisionOptions }
        optional {}
    }
}

/// A matrix A whose rows are on several devices, and the plan of `Y = A X`.
///
/// Each device has the rows of X that its part selects, and no others. A long row may be cut between devices; its
/// sums are added on the host. Rows of 16-bit elements are never cut, since their pieces would be rounded. With
/// blocks of rows, [`RowCuts::Never`], [`RowOrder::Given`] and a kernel that sums each row in one order, such as
/// [`SpmmKernel::WarpPerRow`], the product has the bits of one device's. Else it differs by rounding.
///
/// [`RowOrder::Given`]: crate::spmm::RowOrder::Given
/// [`SpmmKernel::WarpPerRow`]: crate::spmm::SpmmKernel::WarpPerRow
///
/// ```
/// use warprow::device::EmulatorOptions;
/// use warprow::multi::{Devices, MultiSpmmOptions, Spmm};
/// use warprow::{generate, reference};
///
/// # fn main() -> Result<(), warprow::Error> {
/// let a = generate::uniform::<f32>(50, 40, 300, 1)?;
/// let x = generate::dense::<f32>(40, 8, 2)?;
/// let devices = Devices::emulators(3.try_into().unwrap(), EmulatorOptions::default())?;
/// let spmm = Spmm::plan(&devices, a.view(), MultiSpmmOptions::default())?;
/// let y = spmm.multiply(x.view())?;
/// assert!(reference::verify_spmm(a.view(), x.view(), y.view()).ok());
///
/// // X and Y stay on the devices.
/// let mut x = spmm.upload(x.view())?;
/// let mut y = spmm.result(8)?;
/// spmm.run(&mut x, &mut y)?;
/// assert_eq!(spmm.download(&y)?.nrows(), 50);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Spmm<E: SpmmElement> {
    devices: Devices,
    layout: Layout,
    plans: Vec<SpmmPart<E>>,
    exchange: Exchange,
    pieces: RowPieces,
    x_rows: Arc<PartRows>,
    y_rows: Arc<PartRows>,
}

impl<E: SpmmElement> Spmm<E> {
    /// Divides A, uploads each part to its device, and plans it there.
    ///
    /// # Errors
    ///
    /// Those of [`Spmm::plan`](crate::spmm::Spmm::plan), on any of the devices.
    pub fn plan(
        devices: &Devices,
        a: CsMatViewI<'_, E, u32, u32>,
        options: MultiSpmmOptions,
    ) -> Result<Self, SpmmError> {
        let a = match options.spmm.transpose {
            true => a.transpose_into(),
            false => a,
        };
        let mut division_options = options.division;
        if size_of::<E>() == 2 {
            division_options.cuts = RowCuts::Never;
        }
        let division = Division::plan(devices.first(), a, devices.count(), division_options, None)?;
        let of_part = SpmmOptions {
            transpose: false,
            ..options.spmm
        };
        let plans = devices.each(|number| {
            let own = division.layout().halos()[number].local_own();
            SpmmPart::plan(
                devices.get(number),
                &division.matrix_of(number),
                own,
                division_options.cuts == RowCuts::Never,
                of_part,
            )
        })?;
        let layout = division.layout().clone();
        Ok(Self {
            devices: devices.clone(),
            exchange: Exchange::plan(devices, layout.halos())?,
            pieces: RowPieces::plan(&layout, &division.row_ptr(), options.spmm.reduction),
            x_rows: Arc::new(PartRows::of_operand(&layout)),
            y_rows: Arc::new(PartRows::of_result(&layout)),
            layout,
            plans,
        })
    }

    /// Rows of Y.
    pub fn rows(&self) -> usize {
        let parts = self.layout.partition().parts();
        parts.iter().map(|part| part.owned.len()).sum()
    }

    /// Rows of X.
    pub fn cols(&self) -> usize {
        self.layout.owners().rows()
    }

    /// Which device has what.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The share of the nonzeros that are multiplied during the exchange, on the device where it is least: from 0 to 1.
    pub fn share_during_exchange(&self) -> f64 {
        let of_part = |part: &SpmmPart<E>| match part.interior_and_all_nonzeros() {
            (_, 0) => 1.0,
            (interior, all) => interior as f64 / all as f64,
        };
        self.plans.iter().map(of_part).fold(1.0, f64::min)
    }

    /// The devices.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Uploads X: to each device the rows that it owns. X may have any memory layout.
    ///
    /// # Errors
    ///
    /// An X that has not as many rows as A has columns; too little memory; the driver's.
    pub fn upload(&self, x: ArrayView2<'_, E>) -> Result<PartedDense<E>, SpmmError> {
        let parted = self.operand(x.ncols())?;
        self.check_x(&x)?;
        let halos = self.layout.halos().iter();
        let rows = halos.map(|halo| rows_of(&x, &self.layout, halo.own()));
        let rows: Vec<Cow<'_, [E]>> = rows.collect();
        self.devices.each_with(rows, |number, rows| {
            let start = parted.own_start(number);
            (parted.part(number).slice_mut(start..start + rows.len())?).copy_from_slice(&rows)
        })?;
        Ok(parted)
    }

    /// Room for an X, not initialised.
    ///
    /// # Errors
    ///
    /// 2^32 features or more; too little memory; the driver's.
    pub fn operand(&self, features: usize) -> Result<PartedDense<E>, SpmmError> {
        Ok(PartedDense::new(&self.devices, features, &self.x_rows)?)
    }

    /// Room for a Y, not initialised.
    ///
    /// # Errors
    ///
    /// 2^32 features or more; too little memory; the driver's.
    pub fn result(&self, features: usize) -> Result<PartedDense<E>, SpmmError> {
        Ok(PartedDense::new(&self.devices, features, &self.y_rows)?)
    }

    /// `y = A x`. Each device is sent the rows of x that it needs of the others; meanwhile it multiplies rows of A, or
    /// nonzeros, that need none of them, and then the others. It waits for the devices only if rows are cut.
    ///
    /// # Errors
    ///
    /// Another number of features in y than in x; matrices of another plan; a device that fails.
    pub fn run(&self, x: &mut PartedDense<E>, y: &mut PartedDense<E>) -> Result<(), SpmmError> {
        let features = x.features();
        x.check("x", &self.devices, &self.x_rows, features)?;
        y.check("y", &self.devices, &self.y_rows, features)?;
        if self.exchange.is_empty() {
            return self.compute(x, y);
        }
        let (x, y) = (&*x, &*y);
        self.exchange.run(&self.devices, x, |number, part| {
            // SAFETY: the exchange writes only rows of other devices. `run_boundary` follows; if a device fails before,
            // the exchange waits for all devices.
            unsafe { self.plans[number].run_interior(part, features, &mut *y.part(number)) }
        })?;
        self.devices.each(|number| {
            self.plans[number].run_boundary(&*x.part(number), features, &mut *y.part(number))
        })?;
        Ok(self.pieces.add(y)?)
    }

    /// Sends each device the rows of x that it needs of the others. From GPU to GPU they go directly where the
    /// hardware can, else through the host. It does not wait for GPUs.
    ///
    /// # Errors
    ///
    /// An x of another plan; a device that fails.
    pub fn exchange(&self, x: &mut PartedDense<E>) -> Result<(), SpmmError> {
        x.check("x", &self.devices, &self.x_rows, x.features())?;
        self.exchange.run(&self.devices, x, |_, _| Ok(()))
    }

    /// `y = A x` with the rows of x that the devices have. It waits for the devices only if rows are cut.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn compute(&self, x: &PartedDense<E>, y: &mut PartedDense<E>) -> Result<(), SpmmError> {
        x.check("x", &self.devices, &self.x_rows, x.features())?;
        y.check("y", &self.devices, &self.y_rows, x.features())?;
        let y = &*y;
        self.devices.each(|number| {
            self.plans[number].run(&*x.part(number), x.features(), &mut *y.part(number))
        })?;
        Ok(self.pieces.add(y)?)
    }

    /// The product on the host.
    ///
    /// # Errors
    ///
    /// A y of another plan; a device that failed before; a host without memory.
    pub fn download(&self, y: &PartedDense<E>) -> Result<Array2<E>, SpmmError> {
        y.check("y", &self.devices, &self.y_rows, y.features())?;
        let owned = self.layout.partition().parts().iter();
        let owned = Vec::from_iter(owned.map(|part| part.owned.clone()));
        Ok(y.download(&self.devices, self.layout.order(), &owned)?)
    }

    /// The product with a dense matrix of the host: uploads to each device the rows of X that it needs, runs, and
    /// downloads Y.
    ///
    /// # Errors
    ///
    /// Those of [`upload`](Self::upload) and [`run`](Self::run).
    pub fn multiply(&self, x: ArrayView2<'_, E>) -> Result<Array2<E>, SpmmError> {
        let parted = self.operand(x.ncols())?;
        self.check_x(&x)?;
        let rows = self.layout.halos().iter().map(|halo| {
            let rows: Vec<u32> = halo.global().collect();
            collected(&x, rows.len(), |row| {
                self.layout.original_x_row(rows[row] as usize)
            })
        });
        let rows: Vec<Vec<E>> = rows.collect();
        self.devices.each_with(rows, |number, rows| {
            parted.part(number).copy_from_slice(&rows)
        })?;
        let mut y = self.result(x.ncols())?;
        self.compute(&parted, &mut y)?;
        self.download(&y)
    }

    fn check_x(&self, x: &ArrayView2<'_, E>) -> Result<(), OperandError> {
        if x.nrows() == self.cols() {
            return Ok(());
        }
        Err(OperandError::Rows {
            what: "x",
            rows: self.cols(),
            found: x.dim(),
        })
    }
}

/// Neighbouring rows of X, in the layout's order: X's own memory if they are neighbours there.
pub(super) fn rows_of<'x, E: Element + Default>(
    x: &'x ArrayView2<'_, E>,
    layout: &Layout,
    rows: Range<usize>,
) -> Cow<'x, [E]> {
    if layout.has_given_x_rows()
        && let Some(elements) = x.to_slice()
    {
        return elements[rows.start * x.ncols()..rows.end * x.ncols()].into();
    }
    let original = |row| layout.original_x_row(rows.start + row);
    collected(x, rows.len(), original).into()
}

/// A matrix of `count` rows of X: its row i is row `row_of(i)` of X.
fn collected<E: Element + Default>(
    x: &ArrayView2<'_, E>,
    count: usize,
    row_of: impl Fn(usize) -> usize + Sync,
) -> Vec<E> {
    let mut elements = vec![E::default(); count * x.ncols()];
    parallel::each_row_mut(&mut elements, x.ncols().max(1), |row, target| {
        ArrayViewMut1::from(target).assign(&x.row(row_of(row)));
    });
    elements
}

impl<E: SpmmElement> fmt::Display for Spmm<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let volume = self.layout.volume();
        write!(
            f,
            "SpMM in {} of a {} x {} matrix on {} devices ({}): the largest part has {:.2} times the mean work, {} \
             rows are cut; {} rows of X travel, {:.0} % of a broadcast's",
            E::NAME,
            self.rows(),
            self.cols(),
            self.plans.len(),
            self.devices,
            self.layout.partition().imbalance(),
            self.pieces.count(),
            volume.received,
            100.0 * volume.fraction(),
        )?;
        for (number, plan) in self.plans.iter().enumerate() {
            write!(f, "\n  part {number}: {plan}")?;
        }
        Ok(())
    }
}
