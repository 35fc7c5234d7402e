//! Files: what is read, what is refused and where, and that nothing is lost between writing and reading.

mod formats;
mod matrix_market;
mod scipy;
