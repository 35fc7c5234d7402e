//! Archives of PTX modules: `cuda_builder` writes them, the library reads them when a kernel is first launched.
//!
//! A module is what the driver compiles at once: one kernel, or a few that are always used together. An archive is an
//! ordinary zip file with one member for each module and two more:
//!
//! | member | content |
//! |---|---|
//! | `index` | a line for each kernel and module: the kernel, its target, the PTX version, the module |
//! | `stamp` | what the modules were made from, as text that only `cuda_builder` reads |
//! | `axpy_f32.sm_80.ptx` | a module: valid PTX for its target |
//!
//! One kernel may have modules for several targets; [`Archive::module_for`] picks the best one for a GPU. Equal modules
//! make equal archives, byte for byte: members are sorted, and all have one date.
//!
//! [`waiting`] changes a module so that its kernels can be launched before the launch before them has ended.

mod arch;
mod archive;
mod dependent;
mod index;
mod write;

pub use arch::{Arch, ParseArchError, ParsePtxVersionError, PtxVersion};
pub use archive::{Archive, ArchiveError};
pub use dependent::{DEPENDENT, waiting};
pub use index::{IndexError, Module};
pub use write::write;
