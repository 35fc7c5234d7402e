//! Reading Matrix Market files.
