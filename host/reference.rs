//! Reference implementations, in f64.
