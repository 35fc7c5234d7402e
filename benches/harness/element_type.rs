//! The element types that a bench can be asked for.

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ElementType {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Half precision, summed in f32.
    F16,
    /// The upper half of f32, summed in f32.
    Bf16,
}
