//! The two back ends of the device library: PTX instructions, and calls into the emulator.
//!
//! Both modules define the same functions and implement the same traits. The public modules document them.

#[cfg(target_arch = "nvptx64")]
mod ptx;
#[cfg(target_arch = "nvptx64")]
pub(crate) use ptx::*;

#[cfg(not(target_arch = "nvptx64"))]
mod emulator;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use emulator::*;
