//! The exchange of rows between devices: each collects the rows that others need, and the receivers copy them.

use super::devices::Devices;
use super::halo::Halo;
use super::parted::{PartedDense, allocate_rows};
use crate::device::{Device, DeviceBuffer, DeviceError, DeviceSlice, DeviceSliceMut, Stream};
use crate::operand::{OperandError, check_device, check_len, elements, extent};
use crate::primitives::dense_rows::gather_rows;
use crate::scalar::Scalar;
use cuda_std::element::Element;
use std::ops::Range;

/// Rows of a dense matrix on a device that are copied together, to be sent.
#[derive(Debug)]
pub struct SendRows {
    rows: DeviceBuffer<u32>,
    /// The rows of the matrix.
    of: u32,
}

impl SendRows {
    /// These rows of a matrix of `of` rows.
    ///
    /// # Errors
    ///
    /// A number that is not below `of`; 2^32 rows or more; too little device memory; the driver's.
    pub fn new(device: &Device, rows: &[u32], of: usize) -> Result<Self, OperandError> {
        let of = extent("the number of rows to send from", of)?;
        extent("the number of rows to send", rows.len())?;
        if let Some(number) = rows.iter().position(|&row| row >= of) {
            return Err(OperandError::Structure {
                line: "row",
                number,
                reason: format!(
                    "row {} is to be sent, and there are {of} rows",
                    rows[number]
                ),
            });
        }
        Ok(Self {
            rows: device.upload(rows)?,
            of,
        })
    }

    /// The number of rows that are sent.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Copies the rows of `x`, row-major with so many features, to `to`, one after the other.
    ///
    /// # Errors
    ///
    /// A length that does not fit; a slice of another device; the driver's.
    pub fn collect<'x, 'to, E: Element + Scalar>(
        &self,
        x: impl Into<DeviceSlice<'x, E>>,
        features: usize,
        to: impl Into<DeviceSliceMut<'to, E>>,
    ) -> Result<(), OperandError> {
        let (x, mut to) = (x.into(), to.into());
        let features = extent("the number of features", features)?;
        let device = self.rows.device();
        check_device(device, "x", x)?;
        check_device(device, "the rows to send", to.as_slice())?;
        check_len("x", x.len() as u64, elements(self.of, features))?;
        let wanted = elements(self.count() as u32, features);
        check_len("the rows to send", to.len() as u64, wanted)?;
        // SAFETY: the rows are below `of`, checked when they were uploaded; x has so many rows, and `to` has room.
        unsafe { gather_rows(&self.rows, x, features, &mut to)? };
        Ok(())
    }
}

/// What each device sends to which other one, for products with the same halos.
#[derive(Debug)]
pub(super) struct Exchange {
    /// For each sender: the local numbers of its rows that others need, receiver by receiver.
    rows: Vec<SendRows>,
    /// For each receiver: what it is sent, in an order in which no two of them begin with the same sender.
    messages: Vec<Vec<Message>>,
    /// For each device. None without messages.
    streams: Vec<Streams>,
}

/// Streams beside a device's own: what runs there does not wait for the exchange. They are two, so that a device
/// receives while it sends.
#[derive(Debug)]
struct Streams {
    send: Stream,
    receive: Stream,
}

impl Streams {
    fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            send: device.new_stream()?,
            receive: device.new_stream()?,
        })
    }
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
        let parts = halos.len();
        for (receiver, messages) in messages.iter_mut().enumerate() {
            messages.sort_by_key(|message: &Message| (message.sender + parts - receiver) % parts);
        }
        let upload = |number: usize| {
            SendRows::new(
                devices.get(number),
                &rows[number],
                halos[number].local_len(),
            )
        };
        let rows = devices.each(upload)?;
        let streams = match messages.iter().all(Vec::is_empty) {
            true => Vec::new(),
            false => devices.iter().map(Streams::new).collect::<Result<_, _>>()?,
        };
        Ok(Self {
            rows,
            messages,
            streams,
        })
    }

    /// Whether nothing travels.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Fills the halos of X from the rows' owners. Each sender collects the rows that others need, and each receiver
    /// copies from the senders. On GPUs it does not wait for them.
    ///
    /// Calls `meanwhile` with each device's number and part of X, when the device's copies have begun. What it launches
    /// on the device's own stream comes after all that has written X before. It runs beside the copies, unless it uses
    /// X in the ordinary way, which waits for them.
    pub fn run<E, F>(
        &self,
        devices: &Devices,
        x: &PartedDense<E>,
        meanwhile: impl Fn(usize, &DeviceBuffer<E>) -> Result<(), F> + Sync,
    ) -> Result<(), F>
    where
        E: Element + Scalar,
        F: From<OperandError> + From<DeviceError> + Send,
    {
        if self.is_empty() {
            return devices
                .each(|number| meanwhile(number, &x.part(number)))
                .map(drop);
        }
        let features = x.features();
        let collected = devices.each(|number| {
            let rows = &self.rows[number];
            // Only for its effect: the device's own stream, which `meanwhile` uses, waits for what has written X.
            x.part(number).read_only();
            self.streams[number].send.scope(|| {
                let mut collected =
                    allocate_rows(devices.get(number), rows.count(), features as u32)?;
                rows.collect(&*x.part(number), features, &mut collected)?;
                Ok::<_, OperandError>(collected)
            })
        })?;
        let copied = devices.each(|receiver| {
            let mut part = x.part(receiver);
            for message in &self.messages[receiver] {
                let Range { start, end } = message.collected;
                let collected = &collected[message.sender];
                let collected = collected.slice(start * features..end * features)?;
                let start = message.target * features;
                let mut target = part.slice_mut(start..start + collected.len())?;
                // Sender and receiver wait for each other on these streams, and not on their own.
                let send = &self.streams[message.sender].send;
                let receive = &self.streams[receiver].receive;
                send.scope(|| receive.scope(|| target.copy_from(collected)))?;
            }
            meanwhile(receiver, &part)
        });
        if copied.is_err() {
            // What `meanwhile` has launched may still use X. A second failure says nothing new.
            let _ = devices.synchronize();
        }
        copied.map(drop)
    }
}
