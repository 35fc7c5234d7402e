//! Dense operands with a leading dimension: X and Y are columns of wider buffers, which start at any element. The
//! elements around Y stay as they were.

mod errors;
mod gaps;
mod gemm;
mod others;
mod spmm;

pub use gemm::multiply_with_gaps;

use ndarray::{Array2, ArrayView2};
use warprow::device::Device;
use warprow::operand::OperandError;
use warprow::{DenseView, DenseViewMut, DeviceBuffer, Element, Scalar};

/// How a matrix lies in its buffer: the elements before its first one, and those between two rows.
#[derive(Clone, Copy, Debug)]
struct Layout {
    before: usize,
    gap: usize,
}

/// No gaps, aligned and odd ones, and first elements after every multiple of two that a load of 16 bytes has.
const LAYOUTS: [Layout; 7] = [
    layout(0, 0),
    layout(0, 16),
    layout(0, 1),
    layout(0, 3),
    layout(2, 2),
    layout(4, 4),
    layout(7, 6),
];

const fn layout(before: usize, gap: usize) -> Layout {
    Layout { before, gap }
}

/// What is around a matrix. It is no number, so that a kernel which uses it gives a wrong result.
fn canary<T: Scalar>() -> T {
    T::from_f64(f64::NAN)
}

/// A buffer with a matrix, and canaries around it.
struct Wide<T: Scalar + Element> {
    buffer: DeviceBuffer<T>,
    rows: usize,
    cols: usize,
    layout: Layout,
}

impl<T: Scalar + Element> Wide<T> {
    fn new(device: &Device, matrix: ArrayView2<'_, T>, layout: Layout) -> Self {
        let (rows, cols) = matrix.dim();
        let stride = cols + layout.gap;
        let mut elements = vec![canary::<T>(); layout.before + rows * stride + 5];
        for ((i, j), &element) in matrix.indexed_iter() {
            elements[layout.before + i * stride + j] = element;
        }
        Self {
            buffer: device.upload(&elements).unwrap(),
            rows,
            cols,
            layout,
        }
    }

    fn stride(&self) -> usize {
        self.cols + self.layout.gap
    }

    fn view(&self) -> DenseView<'_, T> {
        let slice = self.buffer.slice(self.layout.before..).unwrap();
        DenseView::new(slice, self.rows, self.cols, self.stride()).unwrap()
    }

    fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        let (rows, cols, stride) = (self.rows, self.cols, self.stride());
        let slice = self
            .buffer
            .as_mut_slice()
            .slice(self.layout.before..)
            .unwrap();
        DenseViewMut::new(slice, rows, cols, stride).unwrap()
    }

    /// The matrix, if all canaries are there.
    fn download(&self) -> Result<Array2<T>, String> {
        let elements = self.buffer.download().unwrap();
        let end = self.layout.before + self.rows * self.stride();
        for (k, element) in elements.iter().enumerate() {
            let inside = (self.layout.before..end).contains(&k)
                && (k - self.layout.before) % self.stride() < self.cols;
            if !inside && !element.to_f64().is_nan() {
                return Err(format!("element {k} outside of the matrix was overwritten"));
            }
        }
        let at = |(i, j)| elements[self.layout.before + i * self.stride() + j];
        Ok(Array2::from_shape_fn((self.rows, self.cols), at))
    }
}
