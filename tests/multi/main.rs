//! Products over several parts: the division of a matrix, and several devices against one.

mod division;
mod partition;
mod volume;
