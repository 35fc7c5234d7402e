//! Dense matrices whose rows are on several devices.

use super::devices::Devices;
use super::division::Layout;
use super::halo::Halo;
use super::order::Order;
use super::partition::Part;
use crate::device::{Device, DeviceBuffer, DeviceError};
use crate::operand::{OperandError, buffer_len, check_device, elements, extent};
use cuda_std::element::Element;
use ndarray::Array2;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which rows each device has of a matrix. Equal values are the same rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PartRows {
    /// The order in which the devices' own rows follow each other.
    pub order: Order,
    /// The number of rows on each device.
    pub counts: Vec<usize>,
    /// Where each device's own rows are among them.
    pub own: Vec<Range<usize>>,
    /// The rows of other devices, for an X with them; else empty.
    pub halos: Arc<Vec<Halo>>,
}

impl PartRows {
    /// The rows of X on each device, with its halo.
    pub fn of_operand(layout: &Layout) -> Self {
        let halos = layout.shared_halos();
        Self {
            order: layout.x_order(),
            counts: halos.iter().map(|halo| halo.local_len()).collect(),
            own: halos.iter().map(|halo| halo.local_own()).collect(),
            halos: Arc::clone(halos),
        }
    }

    /// The rows of X on each device that it owns.
    pub fn owned_of_operand(layout: &Layout) -> Self {
        let own = layout.halos().iter().map(|halo| halo.own().len());
        Self {
            order: layout.x_order(),
            counts: own.clone().collect(),
            own: own.map(|rows| 0..rows).collect(),
            halos: Arc::default(),
        }
    }

    /// The rows of Y on each device.
    pub fn of_result(layout: &Layout) -> Self {
        let parts = layout.partition().parts();
        let own = |part: &Part| part.owned.start - part.rows.start..part.rows.len();
        Self {
            order: layout.order().clone(),
            counts: parts.iter().map(|part| part.rows.len()).collect(),
            own: parts.iter().map(own).collect(),
            halos: Arc::default(),
        }
    }

    /// Checks that a matrix has these rows, which is quick if the same plan has made it.
    pub fn check(&self, what: &'static str, found: &Self) -> Result<(), OperandError> {
        if std::ptr::eq(self, found) || self == found {
            return Ok(());
        }
        Err(OperandError::OtherParts { what })
    }
}

/// A dense matrix whose rows are on several devices, row-major on each. A plan makes it, for its X or its Y. Another
/// plan takes it if it has the same rows on the same devices, in the same order.
#[derive(Debug)]
pub struct PartedDense<E: Element> {
    features: u32,
    /// For X a device has the rows of its halo and its own between them; for Y its own, and before them perhaps a
    /// piece of a row that another device owns.
    rows: Arc<PartRows>,
    parts: Vec<Mutex<DeviceBuffer<E>>>,
}

impl<E: Element> PartedDense<E> {
    /// Columns.
    pub fn features(&self) -> usize {
        self.features as usize
    }

    /// Rows of all devices together.
    pub fn rows(&self) -> usize {
        self.rows.own.iter().map(ExactSizeIterator::len).sum()
    }

    /// Uninitialised parts.
    pub(super) fn new(
        devices: &Devices,
        features: usize,
        rows: &Arc<PartRows>,
    ) -> Result<Self, OperandError> {
        let features = extent("the number of features", features)?;
        let part = |number: usize| {
            allocate_rows(devices.get(number), rows.counts[number], features).map(Mutex::new)
        };
        Ok(Self {
            features,
            rows: Arc::clone(rows),
            parts: devices.each(part)?,
        })
    }

    /// The matrix with these parts, which have these rows.
    pub(super) fn of_parts(
        features: u32,
        rows: &Arc<PartRows>,
        parts: Vec<DeviceBuffer<E>>,
    ) -> Self {
        Self {
            features,
            rows: Arc::clone(rows),
            parts: parts.into_iter().map(Mutex::new).collect(),
        }
    }

    /// The parts.
    pub(super) fn into_parts(self) -> Vec<DeviceBuffer<E>> {
        let part = |part: Mutex<_>| part.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.parts.into_iter().map(part).collect()
    }

    /// Checks that it has these rows on these devices, and so many features.
    pub(super) fn check(
        &self,
        what: &'static str,
        devices: &Devices,
        rows: &PartRows,
        features: usize,
    ) -> Result<(), OperandError> {
        if self.features() != features {
            return Err(OperandError::Columns {
                what,
                columns: features,
                found: (self.rows(), self.features()),
            });
        }
        rows.check(what, &self.rows)?;
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
        self.rows.own[number].start * self.features()
    }

    /// Copies each device's own rows from another matrix of the same devices and owners: a product becomes the X of
    /// the next one. Nothing leaves its device.
    ///
    /// # Errors
    ///
    /// Another number of features; other own rows; the driver's.
    pub fn copy_own_rows(&mut self, from: &Self) -> Result<(), OperandError> {
        if self.features != from.features {
            return Err(OperandError::Columns {
                what: "the matrix to copy from",
                columns: self.features as usize,
                found: (from.rows(), from.features()),
            });
        }
        let lengths = |rows: &PartRows| Vec::from_iter(rows.own.iter().map(Range::len));
        let is_same_order = self.rows.order == from.rows.order;
        if !is_same_order || lengths(&self.rows) != lengths(&from.rows) {
            let what = "the matrix to copy from";
            return Err(OperandError::OtherParts { what });
        }
        for (number, own) in from.rows.own.iter().enumerate() {
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
