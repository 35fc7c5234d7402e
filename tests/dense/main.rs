//! Operations on dense matrices, on every device: XW and LogSoftmax.

mod gemm;
mod leading_dimensions;
mod log_softmax;
mod schedules;
