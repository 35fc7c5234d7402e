//! What the emulator costs: microseconds per nonzero and core of a kernel that switches lanes at every nonzero.
//!
//! ```text
//! cargo bench --bench emulator                # a table against the targets
//! cargo bench --bench emulator -- --check     # and exit status 1 if one is missed
//! ```
fn main() {}
