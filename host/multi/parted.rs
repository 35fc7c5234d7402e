//! Dense matrices whose rows are on several devices.

use super::devices::Devices;
use super::order::Order;
use crate::device::{Device, DeviceBuffer, DeviceError};
use crate::operand::{OperandError, buffer_len, check_device, elements, extent};
use cuda_std::element::Element;
use ndarray::Array2;
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

    /// The matrix with these parts, which have the shapes' rows.
    pub(super) fn of_parts(
        features: u32,
        shapes: &Arc<PartShapes>,
        parts: Vec<DeviceBuffer<E>>,
    ) -> Self {
        Self {
            features,
            shapes: Arc::clone(shapes),
            parts: parts.into_iter().map(Mutex::new).collect(),
        }
    }

    /// The parts.
    pub(super) fn into_parts(self) -> Vec<DeviceBuffer<E>> {
        let part = |part: Mutex<_>| part.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.parts.into_iter().map(part).collect()
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

impl<E: Element + Default> PartedDense<E> {
    /// All rows on the host, in the caller's order. `owned` are the rows of each device, in `order`.
    pub(super) fn download(
        &self,
        devices: &Devices,
        order: &Order,
        owned: &[Range<usize>],
    ) -> Result<Array2<E>, DeviceError> {
        let features = self.features();
        let rows = owned.iter().map(ExactSizeIterator::len).sum();
        let mut whole = Array2::from_elem((rows, features), E::default());
        let mut rest = whole.as_slice_mut().expect("a new array is contiguous");
        let Some(original) = order.original() else {
            // Each device writes its rows to their place.
            let mut targets = Vec::new();
            for rows in owned {
                let (target, behind) = rest.split_at_mut(rows.len() * features);
                targets.push(target);
                rest = behind;
            }
            devices.each_with(targets, |number, target| {
                let start = self.own_start(number);
                self.part(number).copy_part_to_slice(start, target)
            })?;
            return Ok(whole);
        };
        // Rows are fewer than 2^32.
        let mut places = vec![0_u32; rows];
        for (place, &row) in (0..).zip(original) {
            places[row as usize] = place;
        }
        // One part after the other, so that there is no second copy of the whole.
        for (number, rows) in owned.iter().enumerate() {
            let mut part = vec![E::default(); rows.len() * features];
            let start = self.own_start(number);
            self.part(number).copy_part_to_slice(start, &mut part)?;
            parallel::each_row_mut(rest, features.max(1), |row, target| {
                let place = places[row] as usize;
                if rows.contains(&place) {
                    target.copy_from_slice(&part[(place - rows.start) * features..][..features]);
                }
            });
        }
        Ok(whole)
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
