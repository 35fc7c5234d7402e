//! The two machines under the device library: PTX instructions, or calls into the emulator.
//!
//! Both modules define the same functions and implement the same traits; the public modules document them.

#[cfg(target_arch = "nvptx64")]
mod ptx;
#[cfg(target_arch = "nvptx64")]
pub(crate) use ptx::*;

#[cfg(not(target_arch = "nvptx64"))]
mod emulator;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use emulator::*;
