//! Kernels on the host: the instances that `#[kernel]` compiles and registers, and the typed handle of one.

use crate::element::Element;
use crate::memory::{Global, GlobalMut};
use std::any::TypeId;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem;

#[doc(hidden)]
pub use inventory;

/// One instance of a kernel, compiled for the emulator where the kernel is defined.
#[derive(Debug)]
pub struct Instance {
    name: &'static str,
    arguments: TypeId,
    /// A `fn(Args)`, where `arguments` is the id of `Args`.
    thread: fn(),
}

impl Instance {
    /// What `#[kernel]` calls for each instance: the name of its PTX entry point, and what one emulated thread runs.
    pub const fn new<Args: 'static>(name: &'static str, thread: fn(Args)) -> Self {
        Self {
            name,
            arguments: TypeId::of::<Args>(),
            // SAFETY: only the type of the function pointer changes, and nobody calls it before it has changed back.
            thread: unsafe { mem::transmute::<fn(Args), fn()>(thread) },
        }
    }

    /// The PTX entry point.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// The instances of one kernel, as `#[kernel]` registers them.
#[doc(hidden)]
pub struct Instances(pub &'static [Instance]);

inventory::collect!(Instances);

/// All instances of all kernels in this program, in no particular order: nobody lists them by hand.
pub fn instances() -> impl Iterator<Item = &'static Instance> {
    inventory::iter::<Instances>
        .into_iter()
        .flat_map(|kernel| kernel.0)
}

/// A kernel that can be launched with arguments of type `Args`, a tuple.
///
/// It carries both forms of the kernel: the name of the PTX entry point for a GPU, and the compiled function that the
/// emulator runs once for each thread.
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
    /// What `#[kernel]` calls: the handle of the instance called `name` among `instances`.
    ///
    /// # Panics
    ///
    /// If there is no instance of that name: the attribute does not list these element types or constants. It panics
    /// on every device, so that a missing instance is seen without a GPU.
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

    /// What one emulated thread runs.
    pub fn thread(&self) -> fn(Args) {
        // SAFETY: the instance was made from a `fn(Args)`: `of` compared the types of the arguments.
        unsafe { mem::transmute::<fn(), fn(Args)>(self.instance.thread) }
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
