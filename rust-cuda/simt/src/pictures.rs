//! Pictures of launches and faults, as SVG without scripts, and traces for a timeline viewer.
//!
//! Each function takes what the emulator reports and returns the text of a file:
//!
//! | function | shows |
//! |---|---|
//! | [`access_map`] | the sectors that each lane of a warp touches, request by request |
//! | [`bank_map`] | the banks of one request to shared memory |
//! | [`source_view`] | the kernel's source with counters beside each line |
//! | [`load_balance`] | the work of the blocks, and a model of how long the last one runs alone |
//! | [`fault`] | two threads that a race or a barrier brought into conflict |
//! | [`chrome_trace`] | the requests of traced warps, for Perfetto or `chrome://tracing` |
//!
//! The colours follow the reader's light or dark theme. A [`Picture`] chooses one of the pictures of a report by name,
//! as a command line does. [`Sources`] holds the text of the kernel's files; without it, pictures have line numbers
//! alone.

mod access_map;
mod bank_map;
mod chrome_trace;
mod fault;
mod load_balance;
mod picture;
mod schedule;
mod source_view;
mod sources;
mod svg;
mod two_threads;

pub use access_map::access_map;
pub use bank_map::bank_map;
pub use chrome_trace::chrome_trace;
pub use fault::fault;
pub use load_balance::load_balance;
pub use picture::{NoPicture, Picture, UnknownPicture};
pub use source_view::source_view;
pub use sources::Sources;
