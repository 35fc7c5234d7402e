//! The device of a case: buffers, launches, and the comparison of results with the reference.

use std::fmt::Display;
use std::slice;

use cuda_std::element::Element;
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::{Dim3, LaunchConfig};
use cuda_std::memory::{Global, GlobalMut};
use simt::{Emulator, Launch, LaunchReport, MemoryError, Options};

use crate::verdict::Failure;

/// A device for one run of a case: an emulator.
pub struct Gpu {
    emulator: Emulator,
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

impl Gpu {
    /// An emulator with these options.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            emulator: Emulator::new(options),
        }
    }

    /// A buffer with these elements.
    ///
    /// # Panics
    ///
    /// If the host has not enough memory.
    #[must_use]
    pub fn upload<T: Element>(&self, elements: &[T]) -> Buffer<T> {
        let buffer = self.output(elements.len());
        let (pointer, bytes) = (elements.as_ptr().cast::<u8>(), size_of_val(elements));
        // SAFETY: an element is an integer or a float, whose bytes are all initialised.
        let bytes = unsafe { slice::from_raw_parts(pointer, bytes) };
        let written = self.emulator.write(buffer.memory.address(), bytes);
        written.expect("the buffer has the size of the elements");
        buffer
    }

    /// A buffer of zeros.
    ///
    /// # Panics
    ///
    /// If the host has not enough memory.
    #[must_use]
    pub fn zeros<T: Element>(&self, length: usize) -> Buffer<T> {
        let buffer = self.output(length);
        let bytes = (length * size_of::<T>()) as u64;
        let written = self.emulator.zero(buffer.memory.address(), bytes);
        written.expect("the buffer has as many bytes");
        buffer
    }

    /// A buffer that nobody has written yet.
    ///
    /// # Panics
    ///
    /// If the host has not enough memory.
    #[must_use]
    pub fn output<T: Element>(&self, length: usize) -> Buffer<T> {
        let bytes = (length * size_of::<T>()) as u64;
        let address = self.emulator.allocate(bytes, size_of::<T>() as u32);
        Buffer {
            memory: GlobalMut::from_address(address.expect("cases are small")),
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
        let extents = |dim: Dim3| [dim.x, dim.y, dim.z];
        let launch = Launch {
            kernel: kernel.name(),
            grid: extents(config.grid),
            block: extents(config.block),
            shared_bytes: config.shared_bytes,
        };
        let thread = kernel.thread();
        // SAFETY: the emulator checks each access of the kernel, also one that its contract forbids.
        let run = || unsafe { thread(arguments) };
        match self.emulator.launch(launch, &run) {
            Ok(_) => Ok(()),
            Err(mut fault) => {
                fault.name_parameters(&arguments.named_buffers(kernel.parameters()));
                Err(Failure::Fault(fault))
            }
        }
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
        match self.emulator.read(buffer.memory.address(), bytes) {
            Ok(()) => Ok(elements),
            Err(MemoryError::Uninitialised { offset, .. }) => Err(Failure::Unwritten {
                buffer: name,
                index: offset as usize / size_of::<T>(),
                length: buffer.length,
            }),
            Err(error) => panic!("the buffer is alive: {error}"),
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

    /// The counters of the launches, if the options ask for them.
    #[must_use]
    pub fn reports(&self) -> Vec<LaunchReport> {
        self.emulator.take_reports()
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
