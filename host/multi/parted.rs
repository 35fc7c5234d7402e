//! Dense matrices whose rows are on several devices, and the exchange of rows between them.

use super::devices::Devices;
use super::halo::Halo;
use crate::device::{Device, DeviceBuffer};
use crate::operand::{OperandError, buffer_len, check_device, elements, extent};
use crate::primitives::dense_rows::gather_rows;
use crate::scalar::Scalar;
use cuda_std::element::Element;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which rows each device has of a dense matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PartShapes {
    /// The number of rows on each device.
    pub rows: Vec<usize>,
    /// Where each device's own rows are among them.
    pub own: Vec<Range<usize>>,
}

/// A dense matrix whose rows are on several devices, row-major on each. A plan makes it, for its X or its Y.
#[derive(Debug)]
pub struct PartedDense<E: Element> {
    features: u32,
    /// For X a device has the rows of its halo and its own between them; for Y its own, and before them perhaps a
    /// piece of a row that another device owns.
    shapes: Arc<PartShapes>,
    parts: Vec<Mutex<DeviceBuffer<E>>>,
}

impl<E: Element> PartedDense<E> {
    /// Columns.
    pub fn features(&self) -> usize {
        self.features as usize
    }

    /// Rows of all devices together.
    pub fn rows(&self) -> usize {
        self.shapes.own.iter().map(ExactSizeIterator::len).sum()
    }

    /// Uninitialised parts.
    pub(super) fn new(
        devices: &Devices,
        features: usize,
        shapes: &Arc<PartShapes>,
    ) -> Result<Self, OperandError> {
        let features = extent("the number of features", features)?;
        let part = |number: usize| {
            let rows = shapes.rows[number];
            allocate_rows(devices.get(number), rows, features).map(Mutex::new)
        };
        Ok(Self {
            features,
            shapes: Arc::clone(shapes),
            parts: devices.each(part)?,
        })
    }

    /// Checks that it has these parts on these devices, and so many features.
    pub(super) fn check(
        &self,
        what: &'static str,
        devices: &Devices,
        shapes: &PartShapes,
        features: usize,
    ) -> Result<(), OperandError> {
        if self.features() != features {
            return Err(OperandError::Columns {
                what,
                columns: features,
                found: (self.rows(), self.features()),
            });
        }
        if *self.shapes != *shapes {
            return Err(OperandError::OtherParts { what });
        }
        (devices.iter().enumerate())
            .try_for_each(|(number, device)| check_device(device, what, &*self.part(number)))
    }

    pub(super) fn part(&self, number: usize) -> MutexGuard<'_, DeviceBuffer<E>> {
        // A panic cannot leave it half changed.
        self.parts[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the device's own elements start in its part.
    pub(super) fn own_start(&self, number: usize) -> usize {
        self.shapes.own[number].start * self.features()
    }

    /// Copies each device's own rows from another matrix of the same devices and owners: a product becomes the X of
    /// the next one. Nothing leaves its device.
    ///
    /// # Errors
    ///
    /// Another number of features or of own rows; the driver's.
    pub fn copy_own_rows(&mut self, from: &Self) -> Result<(), OperandError> {
        if self.features != from.features {
            return Err(OperandError::Columns {
                what: "the matrix to copy from",
                columns: self.features as usize,
                found: (from.rows(), from.features()),
            });
        }
        let lengths = |shapes: &PartShapes| Vec::from_iter(shapes.own.iter().map(Range::len));
        if lengths(&self.shapes) != lengths(&from.shapes) {
            let what = "the matrix to copy from";
            return Err(OperandError::OtherParts { what });
        }
        for (number, own) in from.shapes.own.iter().enumerate() {
            let features = from.features();
            let elements = own.start * features..own.end * features;
            let from = from.part(number);
            let start = self.own_start(number);
            let mut part = self.part(number);
            let mut target = part.slice_mut(start..start + elements.len())?;
            target.copy_from(from.slice(elements)?)?;
        }
        Ok(())
    }
}

/// Memory for so many rows, not initialised.
pub(super) fn allocate_rows<E: Element>(
    device: &Device,
    rows: usize,
    features: u32,
) -> Result<DeviceBuffer<E>, OperandError> {
    let len = elements(extent("the number of rows", rows)?, features);
    Ok(device.uninitialized(buffer_len("the number of elements of a part", len)?)?)
}

/// What each device sends to which other one, for products with the same halos.
#[derive(Debug)]
pub(super) struct Exchange {
    /// For each sender: the local numbers of its rows that others need, receiver by receiver.
    rows: Vec<DeviceBuffer<u32>>,
    /// For each receiver: what it is sent.
    messages: Vec<Vec<Message>>,
}

/// Rows that one device sends to another.
#[derive(Clone, Debug)]
struct Message {
    sender: usize,
    /// Where they are among the rows that the sender collects.
    collected: Range<usize>,
    /// Where the first one goes among the receiver's local rows.
    target: usize,
}

impl Exchange {
    pub fn plan(devices: &Devices, halos: &[Halo]) -> Result<Self, OperandError> {
        let mut messages = vec![Vec::new(); halos.len()];
        let mut rows = Vec::new();
        for (sender, sends) in halos.iter().enumerate() {
            let (own, local) = (sends.own().start, sends.local_own().start);
            let mut collected = Vec::new();
            for (receiver, halo) in halos.iter().enumerate() {
                let wanted = halo.rows_from(sender);
                if receiver == sender || wanted.is_empty() {
                    continue;
                }
                let start = collected.len();
                collected.extend(
                    wanted
                        .iter()
                        .map(|&row| (row as usize - own + local) as u32),
                );
                messages[receiver].push(Message {
                    sender,
                    collected: start..collected.len(),
                    target: halo.local_rows_from(sender).start,
                });
            }
            rows.push(collected);
        }
        let upload = |number: usize| devices.get(number).upload(&rows[number]);
        Ok(Self {
            rows: devices.each(upload)?,
            messages,
        })
    }

    /// Fills the halos of X from the rows' owners. Each sender collects the rows that others need, and each receiver
    /// copies from the senders. On GPUs it does not wait for them.
    pub fn run<E: Element + Scalar>(
        &self,
        devices: &Devices,
        x: &PartedDense<E>,
    ) -> Result<(), OperandError> {
        if self.messages.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let features = x.features;
        let collected = devices.each(|number| {
            let rows = &self.rows[number];
            let mut collected = allocate_rows(devices.get(number), rows.len(), features)?;
            // SAFETY: the rows are the device's own among its local rows.
            unsafe { gather_rows(rows, &x.part(number), features, &mut collected)? };
            Ok::<_, OperandError>(collected)
        })?;
        let features = features as usize;
        devices.each(|receiver| {
            let mut part = x.part(receiver);
            for message in &self.messages[receiver] {
                let Range { start, end } = message.collected;
                let collected = &collected[message.sender];
                let collected = collected.slice(start * features..end * features)?;
                let start = message.target * features;
                let mut target = part.slice_mut(start..start + collected.len())?;
                target.copy_from(collected)?;
            }
            Ok::<_, OperandError>(())
        })?;
        Ok(())
    }
}
