//! The device of a case: buffers, launches, and the comparison of results with the reference.

use std::fmt::Display;
use std::slice;

use cuda_std::element::Element;
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::LaunchConfig;
use cuda_std::memory::{Global, GlobalMut};

#[cfg(feature = "cuda")]
use crate::cuda::CudaMemory;
use crate::emulated::EmulatedMemory;
use crate::verdict::Failure;

/// A device for runs of cases. It keeps their buffers.
pub struct Gpu<'a>(Backend<'a>);

enum Backend<'a> {
    Emulator(&'a EmulatedMemory),
    #[cfg(feature = "cuda")]
    Cuda(&'a CudaMemory),
}

/// Calls the same method of either memory.
macro_rules! on_backend {
    ($gpu:expr, $memory:ident => $call:expr) => {
        match $gpu.0 {
            Backend::Emulator($memory) => $call,
            #[cfg(feature = "cuda")]
            Backend::Cuda($memory) => $call,
        }
    };
}

/// A buffer on the device. It lives as long as its [`Gpu`].
#[derive(Debug)]
pub struct Buffer<T> {
    memory: GlobalMut<T>,
    length: usize,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Buffer<T> {}

impl<T: Element> Buffer<T> {
    /// A pointer for kernels that read it only.
    #[must_use]
    pub fn read_only(self) -> Global<T> {
        Global::from_address(self.memory.address())
    }

    /// A pointer for kernels that write it.
    #[must_use]
    pub fn mutable(self) -> GlobalMut<T> {
        self.memory
    }
}

impl<'a> Gpu<'a> {
    pub(crate) fn emulated(memory: &'a EmulatedMemory) -> Self {
        Self(Backend::Emulator(memory))
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn cuda(memory: &'a CudaMemory) -> Self {
        Self(Backend::Cuda(memory))
    }

    /// A buffer with these elements.
    ///
    /// # Panics
    ///
    /// If there is not enough memory.
    #[must_use]
    pub fn upload<T: Element>(&self, elements: &[T]) -> Buffer<T> {
        let buffer = self.output(elements.len());
        let (pointer, bytes) = (elements.as_ptr().cast::<u8>(), size_of_val(elements));
        // SAFETY: an element is an integer or a float, whose bytes are all initialised.
        let bytes = unsafe { slice::from_raw_parts(pointer, bytes) };
        on_backend!(self, memory => memory.write(buffer.memory.address(), bytes));
        buffer
    }

    /// A buffer of zeros.
    ///
    /// # Panics
    ///
    /// If there is not enough memory.
    #[must_use]
    pub fn zeros<T: Element>(&self, length: usize) -> Buffer<T> {
        let buffer = self.output(length);
        let bytes = (length * size_of::<T>()) as u64;
        on_backend!(self, memory => memory.zero(buffer.memory.address(), bytes));
        buffer
    }

    /// A buffer that nobody has written yet. On a GPU all its bits are ones.
    ///
    /// # Panics
    ///
    /// If there is not enough memory.
    #[must_use]
    pub fn output<T: Element>(&self, length: usize) -> Buffer<T> {
        let element = size_of::<T>();
        let bytes = (length * element) as u64;
        let address = on_backend!(self, memory => memory.allocate(bytes, element as u32));
        Buffer {
            memory: GlobalMut::from_address(address),
            length,
        }
    }

    /// Runs a kernel.
    ///
    /// # Errors
    ///
    /// The fault of the kernel.
    pub fn launch<A: KernelArgs>(
        &self,
        kernel: Kernel<A>,
        config: LaunchConfig,
        arguments: A,
    ) -> Result<(), Failure> {
        on_backend!(self, memory => memory.launch(&kernel, config, arguments))
    }

    /// The elements of a buffer, which has `name` in messages.
    ///
    /// # Errors
    ///
    /// If no thread has written one of them.
    pub fn download<T: Element + Default>(
        &self,
        name: &'static str,
        buffer: Buffer<T>,
    ) -> Result<Vec<T>, Failure> {
        let mut elements = vec![T::default(); buffer.length];
        let bytes = size_of_val(&*elements);
        // SAFETY: an element is an integer or a float, for which all bytes are valid, and which has no padding.
        let bytes = unsafe { slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), bytes) };
        let read = on_backend!(self, memory => memory.read(buffer.memory.address(), bytes));
        match read {
            Ok(()) => Ok(elements),
            Err(offset) => Err(Failure::Unwritten {
                buffer: name,
                index: offset / size_of::<T>(),
                length: buffer.length,
            }),
        }
    }

    /// Compares the elements of a buffer, which has `name` in messages, with the wanted ones.
    ///
    /// # Errors
    ///
    /// If one of them is another, or was not written.
    ///
    /// # Panics
    ///
    /// If the number of wanted elements is not the buffer's length.
    pub fn expect<T: Element + Default + PartialEq + Display>(
        &self,
        name: &'static str,
        buffer: Buffer<T>,
        wanted: &[T],
    ) -> Result<(), Failure> {
        expect_equal(name, &self.download(name, buffer)?, wanted)
    }

    /// Compares the elements of a buffer with wanted ones that are exact. The error may be `tolerance` times the
    /// wanted element, and NaN is always wrong.
    ///
    /// # Errors
    ///
    /// As [`expect`](Self::expect).
    ///
    /// # Panics
    ///
    /// As [`expect`](Self::expect).
    pub fn expect_close(
        &self,
        name: &'static str,
        buffer: Buffer<f32>,
        wanted: &[f64],
        tolerance: f64,
    ) -> Result<(), Failure> {
        let found: Vec<f64> = self
            .download(name, buffer)?
            .into_iter()
            .map(f64::from)
            .collect();
        compare(name, &found, wanted, |found, wanted| {
            (found - wanted).abs() <= tolerance * wanted.abs()
        })
    }
}

/// Compares elements, which have `name` in messages, with the wanted ones.
///
/// # Errors
///
/// If one of them is another.
///
/// # Panics
///
/// If their numbers differ.
pub fn expect_equal<T: PartialEq + Display>(
    name: &'static str,
    found: &[T],
    wanted: &[T],
) -> Result<(), Failure> {
    compare(name, found, wanted, |found, wanted| found == wanted)
}

fn compare<T: Display>(
    buffer: &'static str,
    found: &[T],
    wanted: &[T],
    is_right: impl Fn(&T, &T) -> bool,
) -> Result<(), Failure> {
    assert_eq!(found.len(), wanted.len(), "the case wants another length");
    let pairs = || found.iter().zip(wanted);
    let wrong = pairs().filter(|(found, wanted)| !is_right(found, wanted));
    let count = wrong.count();
    let first = pairs().position(|(found, wanted)| !is_right(found, wanted));
    match first {
        None => Ok(()),
        Some(index) => Err(Failure::Wrong {
            buffer,
            index,
            found: found[index].to_string(),
            wanted: wanted[index].to_string(),
            count,
            length: wanted.len(),
        }),
    }
}
