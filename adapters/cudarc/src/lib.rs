//! Runs warprow's operations on memory and streams of [`cudarc`], on which candle and burn stand. Nothing is copied.
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use warprow::{Spmm, SpmmOptions, generate};
//! use warprow_cudarc::CudarcDevice;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let stream = CudaContext::new(0)?.new_stream()?;
//! let on = CudarcDevice::new(&stream)?;
//! let a = generate::uniform::<f32>(1000, 1000, 9000, 1)?;
//! let spmm = Spmm::plan(on.device(), a.view(), SpmmOptions::default())?;
//! let x = stream.clone_htod(&vec![1.0_f32; 1000 * 32])?;
//! let mut y = stream.alloc_zeros::<f32>(1000 * 32)?;
//! on.scope(|operands| -> Result<(), Box<dyn std::error::Error>> {
//!     spmm.run(operands.read(&x)?, 32, operands.write(&mut y)?)?;
//!     Ok(())
//! })?;
//! let y = stream.clone_dtoh(&y)?; // after the product
//! println!("{:?}", &y[..32]);
//! # Ok(())
//! # }
//! ```
//!
//! `cudarc` panics where there is no CUDA driver; [`Device::cuda`] tells before whether there is one.

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceSlice as CudarcSlice, SyncOnDrop};
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;
use warprow::device::{CudaUnavailable, DeviceError};
use warprow::{Device, DeviceBuffer, DeviceSlice, DeviceSliceMut, Element, Stream};

/// A device of warprow whose own stream is a stream of `cudarc`, in the same context.
///
/// It keeps the stream and its context. They are destroyed as `cudarc` does it, when nobody uses them any more.
pub struct CudarcDevice {
    own: Stream,
    device: Device,
    stream: Arc<CudaStream>,
}

/// A slice of `cudarc` that is no operand.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperandError {
    /// The slice is in another context: on another GPU, say.
    #[error(
        "other contexts: the slice of cudarc is in one of CUDA device {found}, the operation in one of CUDA device \
         {wanted}"
    )]
    OtherContext {
        /// The ordinal of the operation's device.
        wanted: usize,
        /// The ordinal of the slice's device.
        found: usize,
    },

    /// warprow does not take the memory.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl CudarcDevice {
    /// A device for this stream: kernels are compiled into its context, and work goes to it.
    ///
    /// # Errors
    ///
    /// Why the device does not serve.
    pub fn new(stream: &Arc<CudaStream>) -> Result<Self, CudaUnavailable> {
        let (context, raw) = (stream.context().cu_ctx(), stream.cu_stream());
        // SAFETY: the stream is of that context, and keeps it; the device keeps the stream. Nobody captures a stream of
        // `cudarc` in safe code.
        let device =
            unsafe { Device::from_cuda_context(context.cast(), raw.cast(), Arc::clone(stream))? };
        Ok(Self {
            own: device.own_stream(),
            device,
            stream: Arc::clone(stream),
        })
    }

    /// The device, for plans and buffers.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The stream, for other work.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Calls `work`, which takes slices of `cudarc` as operands of runs and launches. They are given back when it
    /// returns: `cudarc`'s later work on them comes after the runs, on whatever stream it is.
    pub fn scope<'env, R>(
        &'env self,
        work: impl for<'scope> FnOnce(&'scope Operands<'scope, 'env>) -> R,
    ) -> R {
        // Dropped after the scope's slices, also if `work` panics.
        let lent = AllLent::default();
        let operands = Operands {
            on: self,
            lent: &lent,
            scope: PhantomData,
            env: PhantomData,
        };
        work(&operands)
    }
}

/// Slices of `cudarc` that are operands of warprow until the end of a [`CudarcDevice::scope`].
pub struct Operands<'scope, 'env: 'scope> {
    on: &'env CudarcDevice,
    lent: &'scope AllLent<'env>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The operands of a scope, each a box of its own.
#[derive(Default)]
struct AllLent<'env>(RefCell<Vec<NonNull<dyn Lent + 'env>>>);

/// An operand of any type.
trait Lent {}

/// The memory of a slice. Fields are dropped in this order: the own stream waits for what uses the memory on other
/// streams, and then `cudarc` notes that the stream has used it.
struct Operand<'env, T: Element> {
    buffer: DeviceBuffer<T>,
    _used: SyncOnDrop<'env>,
}

impl<T: Element> Lent for Operand<'_, T> {}

impl<'scope, 'env> Operands<'scope, 'env> {
    /// A `CudaSlice` or `CudaView`, to be read. Runs come after all that `cudarc` was asked to write to it.
    ///
    /// # Errors
    ///
    /// The slice is in another context.
    pub fn read<T: Element>(
        &'scope self,
        slice: &'env impl DevicePtr<T>,
    ) -> Result<DeviceSlice<'scope, T>, OperandError> {
        self.check_context(slice)?;
        let len = slice.len();
        let (address, used) = slice.device_ptr(&self.on.stream);
        let operand = self.lend(address, len, used)?;
        // SAFETY: the operand lives until the scope ends, and only shared references to it are made.
        Ok(unsafe { &(*operand.as_ptr()).buffer }.as_slice())
    }

    /// A `CudaSlice` or `CudaViewMut`, to be read and written. Runs come after all that `cudarc` was asked to do with
    /// it.
    ///
    /// # Errors
    ///
    /// The slice is in another context.
    pub fn write<T: Element>(
        &'scope self,
        slice: &'env mut impl DevicePtrMut<T>,
    ) -> Result<DeviceSliceMut<'scope, T>, OperandError> {
        self.check_context(slice)?;
        let len = slice.len();
        let (address, used) = slice.device_ptr_mut(&self.on.stream);
        let operand = self.lend(address, len, used)?;
        // SAFETY: the operand lives until the scope ends, and this is the only reference to its buffer.
        Ok(unsafe { &mut (*operand.as_ptr()).buffer }.as_mut_slice())
    }

    /// Keeps an operand until the scope ends.
    fn lend<T: Element>(
        &self,
        address: u64,
        len: usize,
        used: SyncOnDrop<'env>,
    ) -> Result<NonNull<Operand<'env, T>>, OperandError> {
        // On its own stream, which waits for what `cudarc` has done.
        // SAFETY: the memory is `cudarc`'s, in this context, borrowed until the scope ends; for a slice that is only
        // read nobody gets a mutable slice. The buffer's last use is before the drop of `used`, from which on `cudarc`
        // orders its own use.
        let buffer = (self.on.own)
            .scope(|| unsafe { self.on.device.buffer_from_raw::<T>(address, len, ()) })?;
        let operand = Box::new(Operand {
            buffer,
            _used: used,
        });
        let operand = NonNull::from(Box::leak(operand));
        self.lent.0.borrow_mut().push(operand);
        Ok(operand)
    }

    fn check_context<T>(&self, slice: &impl CudarcSlice<T>) -> Result<(), OperandError> {
        let (wanted, found) = (self.on.stream.context(), slice.stream().context());
        if wanted.cu_ctx() == found.cu_ctx() {
            return Ok(());
        }
        Err(OperandError::OtherContext {
            wanted: wanted.ordinal(),
            found: found.ordinal(),
        })
    }
}

impl Drop for AllLent<'_> {
    fn drop(&mut self) {
        for operand in mem::take(self.0.get_mut()) {
            // SAFETY: `lend` has leaked this box, and the slices of it have ended with the scope.
            drop(unsafe { Box::from_raw(operand.as_ptr()) });
        }
    }
}

impl fmt::Debug for CudarcDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudarcDevice({})", self.device.identity())
    }
}

impl fmt::Debug for Operands<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operands({})", self.lent.0.borrow().len())
    }
}
