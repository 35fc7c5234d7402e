//! Bias and ReLU in place, between the layers of a network.

use cuda_std::prelude::*;
use warprow_kernels_gemm::Epilogue;
use warprow_kernels_matrix::Operand;
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Elements of a thread.
const EACH: usize = 4;

/// The launch for that many elements; `None` if a grid cannot have so many blocks.
pub fn launch(elements: u64) -> Option<LaunchConfig> {
    let blocks = elements.div_ceil(u64::from(BLOCK) * EACH as u64);
    let blocks = i32::try_from(blocks).ok()?;
    Some(LaunchConfig::new(blocks as u32, BLOCK))
}

/// Does to each element of a matrix with `cols` columns what the epilogue says, a thread for four neighbours.
///
/// # Safety
///
/// `y` has `elements` elements and is aligned to four of them; the epilogue's bias has one for each column, of which there is at least one.
#[kernel(name = "gcn_activate", T = [f32, f64, f16, bf16])]
pub unsafe fn activate<T: Operand>(
    elements: u64,
    cols: u32,
    y: GlobalMut<T>,
    epilogue: Epilogue<T>,
) {
    let first = thread::index_1d() * EACH as u64;
    if first >= elements {
        return;
    }
    // There is a column; the compiler does not know it.
    let mut column = (first % u64::from(cols.max(1))) as usize;
    let place = first as usize;
    // SAFETY: the thread's elements.
    unsafe {
        if elements - first >= EACH as u64 {
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
