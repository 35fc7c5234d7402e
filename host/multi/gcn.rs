//! GCN inference over several devices: each has some nodes, and the halo of their features before each product.

use super::devices::Devices;
use super::division::{Division, DivisionOptions, Layout};
use super::exchange::Exchange;
use super::halo::Halo;
use super::parted::{PartRows, PartedDense, allocate_rows};
use super::partition::RowCuts;
use super::spmm::rows_of;
use crate::csr::DeviceCsr;
use crate::device::{Device, DeviceBuffer};
use crate::gcn::{
    GcnElement, GcnError, GcnLayer, GcnOptions, OperatorKind, Step, normalized_adjacency, steps,
    widths,
};
use crate::operand::{OperandError, check_operand, elements, extent};
use crate::spmm::{Spmm, SpmmOptions};
use ndarray::{Array2, ArrayView2};
use sprs::CsMatViewI;
use std::fmt;
use std::sync::Arc;

/// A network whose nodes are on several devices. No node's row of the graph is cut.
///
/// Each layer has one exchange, before its product with the graph. The result differs from one device's by rounding,
/// because tasks of the kernels begin at other rows.
#[derive(Debug)]
pub struct Gcn<T: GcnElement> {
    devices: Devices,
    layout: Layout,
    parts: Vec<GcnPart<T>>,
    exchange: Exchange,
    /// Of a device's nodes alone, and with their halo.
    own_rows: Arc<PartRows>,
    local_rows: Arc<PartRows>,
    features: usize,
    classes: usize,
}

/// The network on one device, for the nodes that it has: the rows of the normalised graph, with a column for each node
/// that these rows select.
#[derive(Debug)]
pub struct GcnPart<T: GcnElement> {
    spmm: Spmm<T>,
    steps: Vec<Step<T>>,
}

impl<T: GcnElement> GcnPart<T> {
    /// Plans the network for these rows of the normalised graph.
    ///
    /// # Errors
    ///
    /// Those of [`Gcn::plan`](crate::gcn::Gcn::plan), except that the rows need not be a square matrix.
    pub fn plan(
        device: &Device,
        rows: CsMatViewI<'_, T, u32, u32>,
        layers: &[GcnLayer<T>],
        options: GcnOptions,
    ) -> Result<Self, GcnError> {
        widths(layers)?;
        let rows = DeviceCsr::upload(device, rows)?;
        let spmm = Spmm::plan_device(&rows, SpmmOptions::new().tuning(options.tuning))?;
        let steps = steps(&spmm, layers, options, None)?;
        Ok(Self { spmm, steps })
    }

    /// The number of operators, which run one after the other.
    pub fn operators(&self) -> usize {
        self.steps.len()
    }

    /// Whether an operator reads the features of all nodes that the rows select, and not only of the device's own.
    ///
    /// # Panics
    ///
    /// If there is no such operator.
    pub fn reads_halo(&self, operator: usize) -> bool {
        self.steps[operator].operator.kind == OperatorKind::Spmm
    }

    /// The columns of an operator's result; its rows are the device's own nodes.
    ///
    /// # Panics
    ///
    /// If there is no such operator.
    pub fn columns(&self, operator: usize) -> usize {
        self.steps[operator].cols
    }

    /// Runs an operator. If it works in place, `input` becomes its result; else it makes one.
    ///
    /// # Errors
    ///
    /// An input of another length or device; too little device memory; a launch that fails.
    ///
    /// # Panics
    ///
    /// If there is no such operator.
    pub fn run(
        &self,
        operator: usize,
        mut input: DeviceBuffer<T>,
    ) -> Result<DeviceBuffer<T>, GcnError> {
        let step = &self.steps[operator];
        let nodes = extent("the number of nodes", self.spmm.rows())?;
        let columns = extent("the width of a layer", step.cols)?;
        if step.in_place() {
            let wanted = elements(nodes, columns);
            check_operand(self.spmm.device(), "the features", &input, wanted)?;
            step.activate_in_place(nodes, &mut input)?;
            return Ok(input);
        }
        let mut output = allocate_rows(self.spmm.device(), self.spmm.rows(), columns)?;
        step.run(
            &self.spmm,
            self.spmm.rows(),
            input.as_slice().into(),
            output.as_mut_slice().into(),
        )?;
        Ok(output)
    }
}

impl<T: GcnElement> Gcn<T> {
    /// Normalises the graph on the first device, divides its nodes, and plans the network on each device.
    ///
    /// # Errors
    ///
    /// Those of [`Gcn::plan`](crate::gcn::Gcn::plan), on any of the devices.
    pub fn plan(
        devices: &Devices,
        graph: CsMatViewI<'_, T, u32, u32>,
        layers: &[GcnLayer<T>],
        options: GcnOptions,
        division: DivisionOptions,
    ) -> Result<Self, GcnError> {
        let (features, classes) = widths(layers)?;
        let adjacency = normalized_adjacency(&DeviceCsr::upload(devices.first(), graph)?)?;
        let adjacency = adjacency.download()?;
        let division = DivisionOptions {
            cuts: RowCuts::Never,
            ..division
        };
        let view = adjacency.view();
        let division = Division::plan(devices.first(), view, devices.count(), division, None)?;
        drop(adjacency);
        let parts = devices.each(|number| {
            let local = division.matrix_of(number);
            GcnPart::plan(devices.get(number), local.view(), layers, options)
        })?;
        let layout = division.into_layout();
        Ok(Self {
            exchange: Exchange::plan(devices, layout.halos())?,
            own_rows: Arc::new(PartRows::owned_of_operand(&layout)),
            local_rows: Arc::new(PartRows::of_operand(&layout)),
            devices: devices.clone(),
            layout,
            parts,
            features,
            classes,
        })
    }

    /// Nodes of the graph.
    pub fn nodes(&self) -> usize {
        self.layout.owners().rows()
    }

    /// Which device has what.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The logarithms of the classes' probabilities, a row for each node.
    ///
    /// # Errors
    ///
    /// Features of another shape; too little memory; a device that fails.
    pub fn classify(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>, GcnError> {
        self.download(&self.run(self.upload(x)?)?)
    }

    /// Uploads X: to each device the features of its nodes. X may have any memory layout.
    ///
    /// # Errors
    ///
    /// Features of another shape; too little memory; the driver's.
    pub fn upload(&self, x: ArrayView2<'_, T>) -> Result<PartedDense<T>, GcnError> {
        if x.nrows() != self.nodes() {
            return Err(GcnError::Operand(OperandError::Rows {
                what: "x",
                rows: self.nodes(),
                found: x.dim(),
            }));
        }
        if x.ncols() != self.features {
            return Err(GcnError::Operand(OperandError::Columns {
                what: "x",
                columns: self.features,
                found: x.dim(),
            }));
        }
        let input = PartedDense::new(&self.devices, self.features, &self.own_rows)?;
        let halos = self.layout.halos().iter();
        let rows = halos.map(|halo| rows_of(&x, &self.layout, halo.own()));
        let rows: Vec<_> = rows.collect();
        self.devices.each_with(rows, |number, rows| {
            input.part(number).copy_from_slice(&rows)
        })?;
        Ok(input)
    }

    /// Runs the network on the features that [`upload`](Self::upload) has put on the devices, and frees them. The
    /// result stays on the devices. It does not wait for GPUs.
    ///
    /// # Errors
    ///
    /// Features of another plan; too little device memory; a device that fails.
    pub fn run(&self, x: PartedDense<T>) -> Result<PartedDense<T>, GcnError> {
        x.check("x", &self.devices, &self.own_rows, self.features)?;
        (0..self.parts[0].operators()).try_fold(x, |input, index| self.run_one(index, input))
    }

    /// The result of [`run`](Self::run) on the host, a row for each node.
    ///
    /// # Errors
    ///
    /// A result of another plan; a device that failed before; a host without memory.
    pub fn download(&self, y: &PartedDense<T>) -> Result<Array2<T>, GcnError> {
        y.check("y", &self.devices, &self.own_rows, self.classes)?;
        let own = Vec::from_iter(self.layout.halos().iter().map(Halo::own));
        Ok(y.download(&self.devices, self.layout.order(), &own)?)
    }

    /// Runs an operator on all devices.
    fn run_one(&self, index: usize, input: PartedDense<T>) -> Result<PartedDense<T>, GcnError> {
        let part = &self.parts[0];
        let input = match part.reads_halo(index) {
            true => self.with_halo(input)?,
            false => input,
        };
        let columns = part.columns(index);
        let inputs = input.into_parts();
        let outputs = self
            .devices
            .each_with(inputs, |number, input| self.parts[number].run(index, input))?;
        Ok(PartedDense::of_parts(
            columns as u32,
            &self.own_rows,
            outputs,
        ))
    }

    /// The features of the devices' nodes, with those of their halos.
    fn with_halo(&self, own: PartedDense<T>) -> Result<PartedDense<T>, GcnError> {
        // Without a halo it has the same rows.
        if self
            .layout
            .halos()
            .iter()
            .all(|halo| halo.rows().is_empty())
        {
            return Ok(own);
        }
        let mut local = PartedDense::new(&self.devices, own.features(), &self.local_rows)?;
        local.copy_own_rows(&own)?;
        self.exchange
            .run(&self.devices, &local, |_, _| Ok::<_, GcnError>(()))?;
        Ok(local)
    }
}

impl<T: GcnElement> fmt::Display for Gcn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let volume = self.layout.volume();
        write!(
            f,
            "GCN in {} of {} nodes, {} features and {} classes on {} devices ({}): the largest part has {:.2} times \
             the mean work; {:.0} % of a broadcast's rows travel for each layer",
            T::NAME,
            self.nodes(),
            self.features,
            self.classes,
            self.parts.len(),
            self.devices,
            self.layout.partition().imbalance(),
            100.0 * volume.fraction(),
        )
    }
}
