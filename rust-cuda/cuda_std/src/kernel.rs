//! Kernels on the host: the instances that `#[kernel]` compiles and registers, and the typed handle of an instance.

use crate::element::Element;
use crate::memory::{Global, GlobalMut};
use std::any::TypeId;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem;

pub use cuda_std_macros::KernelParam;
#[doc(hidden)]
pub use inventory;
#[doc(hidden)]
pub use simt::Parameter;

/// The body of an emulated thread, as `#[kernel]` passes it: itself, or without the feature `emulator` a function that
/// panics, so that no kernel is compiled for the host.
#[cfg(feature = "emulator")]
#[doc(hidden)]
#[macro_export]
macro_rules! emulated {
    ($thread:expr) => {
        $thread
    };
}

#[cfg(not(feature = "emulator"))]
#[doc(hidden)]
#[macro_export]
macro_rules! emulated {
    ($thread:expr) => {
        |_| $crate::kernel::not_emulated()
    };
}

/// What stands for the body of each kernel without the feature `emulator`.
#[cfg(not(feature = "emulator"))]
#[doc(hidden)]
pub fn not_emulated() -> ! {
    panic!(
        "kernels are not compiled for the emulator: `warprow-cuda-std` was built without its feature `emulator`"
    )
}

/// An instance of a kernel. The crate that defines the kernel compiles it for the emulator.
#[derive(Debug)]
pub struct Instance {
    name: &'static str,
    /// The names of the parameters.
    parameters: &'static [&'static str],
    arguments: TypeId,
    /// An `unsafe fn(Args)` with its type erased; `arguments` is the id of `Args`.
    thread: unsafe fn(),
}

impl Instance {
    /// An instance; `#[kernel]` calls it. `name` is the PTX entry point, `thread` the body of an emulated thread.
    pub const fn new<Args: 'static>(
        name: &'static str,
        parameters: &'static [&'static str],
        thread: unsafe fn(Args),
    ) -> Self {
        Self {
            name,
            parameters,
            arguments: TypeId::of::<Args>(),
            // SAFETY: all function pointers have the same layout. `Kernel::thread` restores the type before any call.
            thread: unsafe { mem::transmute::<unsafe fn(Args), unsafe fn()>(thread) },
        }
    }

    /// The PTX entry point.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// The instances of a kernel, as `#[kernel]` registers them.
#[doc(hidden)]
pub struct Instances(pub &'static [Instance]);

inventory::collect!(Instances);

/// All instances of all kernels in this program, in no particular order.
pub fn instances() -> impl Iterator<Item = &'static Instance> {
    inventory::iter::<Instances>
        .into_iter()
        .flat_map(|kernel| kernel.0)
}

/// A handle of a kernel instance with arguments of type `Args`, a tuple.
///
/// It has both forms of the kernel: the name of the PTX entry point for a GPU, and the function that the emulator calls
/// once for each thread.
#[derive(Debug)]
pub struct Kernel<Args> {
    instance: &'static Instance,
    arguments: PhantomData<fn(Args)>,
}

impl<Args> Clone for Kernel<Args> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Args> Copy for Kernel<Args> {}

impl<Args: KernelArgs> Kernel<Args> {
    /// The handle of the instance `name` among `instances`; `#[kernel]` calls it.
    ///
    /// # Panics
    ///
    /// If there is no such instance, because the attribute does not list these element types or constants. It panics on
    /// every device, so tests on the emulator find a missing instance.
    #[track_caller]
    pub fn of(instances: &'static [Instance], name: &str) -> Self {
        let Some(instance) = instances.iter().find(|instance| instance.name == name) else {
            let names: Vec<_> = instances.iter().map(Instance::name).collect();
            panic!(
                "no kernel `{name}`: #[kernel] instantiates {}",
                names.join(", ")
            );
        };
        assert!(
            instance.arguments == TypeId::of::<Args>(),
            "the arguments of kernel `{name}` are not {}",
            std::any::type_name::<Args>()
        );
        Self {
            instance,
            arguments: PhantomData,
        }
    }

    /// The PTX entry point.
    pub fn name(&self) -> &'static str {
        self.instance.name
    }

    /// The names of the parameters.
    pub fn parameters(&self) -> &'static [&'static str] {
        self.instance.parameters
    }

    /// The body of an emulated thread. Without the feature `emulator` it panics.
    ///
    /// Its contract is that of the kernel, so safe code cannot call it:
    ///
    /// ```compile_fail,E0133
    /// use cuda_std::prelude::*;
    ///
    /// /// # Safety
    /// ///
    /// /// `y` holds an element.
    /// #[kernel]
    /// pub unsafe fn clear(y: GlobalMut<u32>) {
    ///     // SAFETY: the contract of the kernel.
    ///     unsafe { y.store(0, 0) };
    /// }
    ///
    /// let run = |y: GlobalMut<u32>| clear().thread()((y,));
    /// ```
    pub fn thread(&self) -> unsafe fn(Args) {
        // SAFETY: the instance was made from an `unsafe fn(Args)`: `of` has compared the ids of the argument types.
        unsafe { mem::transmute::<unsafe fn(), unsafe fn(Args)>(self.instance.thread) }
    }
}

/// A type that can be an argument of a kernel. It is passed by value, as the same bytes on host and device.
///
/// # Safety
///
/// The type must have the same layout on host and device: a scalar, a device pointer, or a `repr(C)` struct of these. A
/// kernel must not read its padding. For a struct, `#[derive(KernelParam)]` checks that.
pub unsafe trait KernelParam: Copy + Send + Sync + 'static {
    /// Adds the device pointers of the argument to `buffers`, for reports of the emulator. `name` is the parameter's
    /// name; fields of a struct have their names after it: `a.values`.
    fn name_buffers(&self, name: &str, buffers: &mut Vec<Parameter>) {
        let _ = (name, buffers);
    }
}

// SAFETY: a scalar has the same size and layout on host and device.
unsafe impl<T: Element> KernelParam for T {}

macro_rules! pointer {
    ($($pointer:ident)*) => {$(
        // SAFETY: the type is `repr(transparent)` over a `u64`, which has the same layout on host and device.
        unsafe impl<T: Element> KernelParam for $pointer<T> {
            fn name_buffers(&self, name: &str, buffers: &mut Vec<Parameter>) {
                buffers.push(Parameter {
                    name: name.to_owned(),
                    address: self.address(),
                    element: T::NAME,
                    bytes: size_of::<T>() as u32,
                });
            }
        }
    )*};
}
pointer!(Global GlobalMut);

/// The arguments of a kernel: a tuple of up to twelve [`KernelParam`]s.
pub trait KernelArgs: Copy + Send + Sync + 'static {
    /// Calls `with` with a pointer to each argument, in order: the form that the driver's launch function takes.
    fn with_pointers<R>(&self, with: impl FnOnce(&[*mut c_void]) -> R) -> R;

    /// The device pointers of the arguments, under the names of the parameters, for reports of the emulator.
    fn named_buffers(&self, names: &[&str]) -> Vec<Parameter>;
}

macro_rules! kernel_args {
    ($($name:ident)*) => {
        impl<$($name: KernelParam),*> KernelArgs for ($($name,)*) {
            fn with_pointers<R>(&self, with: impl FnOnce(&[*mut c_void]) -> R) -> R {
                #[allow(non_snake_case, reason = "the type parameters name the fields too")]
                let ($($name,)*) = self;
                with(&[$(std::ptr::from_ref($name).cast_mut().cast()),*])
            }

            fn named_buffers(&self, names: &[&str]) -> Vec<Parameter> {
                #[allow(non_snake_case, reason = "the type parameters name the fields too")]
                let ($($name,)*) = self;
                let arguments: &[&dyn Fn(&str, &mut Vec<Parameter>)] =
                    &[$(&|name, buffers| $name.name_buffers(name, buffers)),*];
                let mut buffers = Vec::new();
                for (name, argument) in names.iter().zip(arguments) {
                    argument(name, &mut buffers);
                }
                buffers
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
