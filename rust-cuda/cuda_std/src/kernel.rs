//! The typed handle of a kernel, which `#[kernel]` makes on the host.

use crate::element::Element;
use crate::memory::{Global, GlobalMut};
use std::ffi::c_void;

/// A kernel that can be launched with arguments of type `Args`, a tuple.
///
/// It carries both forms of the kernel: the name of the PTX entry point for a GPU, and the compiled function that the
/// emulator runs once for each thread.
#[derive(Clone, Debug)]
pub struct Kernel<Args> {
    name: String,
    entry_points: &'static [&'static str],
    thread: fn(Args),
}

impl<Args: KernelArgs> Kernel<Args> {
    /// What `#[kernel]` calls: `name` is the entry point, `entry_points` all those that the attribute instantiates.
    ///
    /// # Panics
    ///
    /// If `name` is not among `entry_points`: the attribute does not list these element types or constants. It panics
    /// on every device, so that a missing instance is seen without a GPU.
    #[track_caller]
    pub fn new(name: String, entry_points: &'static [&'static str], thread: fn(Args)) -> Self {
        assert!(
            entry_points.contains(&name.as_str()),
            "no kernel `{name}`: #[kernel] instantiates {}",
            entry_points.join(", ")
        );
        Self {
            name,
            entry_points,
            thread,
        }
    }

    /// The PTX entry point.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The entry points of all instances of this kernel, this one's among them.
    pub fn entry_points(&self) -> &'static [&'static str] {
        self.entry_points
    }

    /// What one emulated thread runs.
    pub fn thread(&self) -> fn(Args) {
        self.thread
    }
}

/// A type that may be an argument of a kernel: passed by value, the same bytes on both machines.
///
/// # Safety
///
/// The type is `Copy`, has the same layout on host and device (a scalar, a device pointer, or a `repr(C)` struct of
/// such), and has no padding that a kernel reads.
pub unsafe trait KernelParam: Copy + Send + Sync + 'static {}

// SAFETY: a scalar of fixed size.
unsafe impl<T: Element> KernelParam for T {}

// SAFETY: a transparent 64-bit address.
unsafe impl<T: Element> KernelParam for Global<T> {}
// SAFETY: a transparent 64-bit address.
unsafe impl<T: Element> KernelParam for GlobalMut<T> {}

/// The arguments of a kernel: a tuple of up to twelve [`KernelParam`]s.
pub trait KernelArgs: Copy + Send + Sync + 'static {
    /// Calls `with` with a pointer to each argument, in order, as the driver's launch function wants them.
    fn with_pointers<R>(&self, with: impl FnOnce(&[*mut c_void]) -> R) -> R;
}

macro_rules! kernel_args {
    ($($name:ident)*) => {
        impl<$($name: KernelParam),*> KernelArgs for ($($name,)*) {
            fn with_pointers<R>(&self, with: impl FnOnce(&[*mut c_void]) -> R) -> R {
                #[allow(non_snake_case, reason = "the type parameters name the fields too")]
                let ($($name,)*) = self;
                with(&[$(std::ptr::from_ref($name).cast_mut().cast()),*])
            }
        }
    };
}
kernel_args!();
kernel_args!(A);
kernel_args!(A B);
kernel_args!(A B C);
kernel_args!(A B C D);
kernel_args!(A B C D E);
kernel_args!(A B C D E F);
kernel_args!(A B C D E F G);
kernel_args!(A B C D E F G H);
kernel_args!(A B C D E F G H I);
kernel_args!(A B C D E F G H I J);
kernel_args!(A B C D E F G H I J K);
kernel_args!(A B C D E F G H I J K L);
