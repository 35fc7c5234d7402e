//! Bias and ReLU in place, between the layers of a network.

use cuda_std::prelude::*;
use warprow_kernels_gemm::BiasRelu;
use warprow_kernels_matrix::Operand;
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Elements per thread.
const ELEMENTS_PER_THREAD: usize = 4;

/// The launch for `elements` elements; `None` if they need more blocks than a grid can have.
pub fn launch(elements: u64) -> Option<LaunchConfig> {
    let blocks = elements.div_ceil(u64::from(BLOCK) * ELEMENTS_PER_THREAD as u64);
    let blocks = i32::try_from(blocks).ok()?;
    Some(LaunchConfig::new(blocks as u32, BLOCK))
}

/// Applies the epilogue to each element of a row-major matrix with `cols` columns: `y[i, j] =
/// epilogue(y[i, j], j)`. A thread takes four neighbours; an element is read and written once.
///
/// # Safety
///
/// `y` has `elements` elements and is aligned to four of them. `cols` is at least 1, and the
/// epilogue's bias has a number for each column.
#[kernel(name = "gcn_activate", T = [f32, f64])]
pub unsafe fn activate<T: Operand>(
    elements: u64,
    cols: u32,
    y: GlobalMut<T>,
    epilogue: BiasRelu<T>,
) {
    let first = thread::index_1d() * ELEMENTS_PER_THREAD as u64;
    if first >= elements {
        return;
    }
    // `cols` is at least 1 anyway; `max` spares the panic path of a division by zero.
    let mut column = (first % u64::from(cols.max(1))) as usize;
    let place = first as usize;
    // SAFETY: `first` is below `elements`, checked above; each element belongs to one thread, and
    // `column` stays below `cols`.
    unsafe {
        if elements - first >= ELEMENTS_PER_THREAD as u64 {
            let mut values = y.load4(place);
            unroll!(k in 0..4 {
                values[k] = epilogue.apply(values[k].widen(), column);
                column = if column + 1 == cols as usize {
                    0
                } else {
                    column + 1
                };
            });
            y.store4(place, values);
            return;
        }
        for i in place..elements as usize {
            y.store(i, epilogue.apply(y.load(i).widen(), column));
            column = if column + 1 == cols as usize {
                0
            } else {
                column + 1
            };
        }
    }
}
