//! How many blocks and warps a launch has, and how much shared memory.

use warprow::{GemmElement, GemmKernel, f16};
use warprow_kernels::gemm::GemmProblem;

#[test]
fn rows_of_x_that_are_copied_through_the_l1_cache_find_room_there() {
    // Bytes that the CUDA system takes for each block.
    const SYSTEM: u32 = 1 << 10;
    // The number of blocks, and the bytes that each of them takes, on a GPU of one multiprocessor.
    fn launch<T: GemmElement>(
        kernel: GemmKernel,
        shared_bytes: u32,
        (depth, cols): (u32, u32),
    ) -> (u32, u32) {
        let problem = GemmProblem {
            rows: 10_000_000,
            depth,
            cols,
            multiprocessors: 1,
            shared_bytes,
            instance: None,
        };
        let config = kernel.plan::<T>(problem).unwrap().config;
        assert!(config.shared_bytes <= shared_bytes, "{problem:?}");
        (config.grid.y, config.shared_bytes + SYSTEM)
    }
    fn leaves_room<T: GemmElement>(kernel: GemmKernel, depths: &[u32]) {
        for most in [99_u32 << 10, 163 << 10, 227 << 10] {
            let for_l1 = (most / 6).min(32 << 10);
            for &depth in depths {
                for cols in [9, 25, 45, 64, 128, 200] {
                    let what = format!("{kernel:?}, {depth} to {cols} columns, {most} bytes");
                    let (blocks, bytes) = launch::<T>(kernel, most, (depth, cols));
                    assert!(blocks * bytes <= most + SYSTEM - for_l1, "{what}");
                    assert!((blocks + 1) * bytes > most + SYSTEM, "{what}: one more");
                }
            }
        }
    }
    // Rows that are not aligned to 16 bytes.
    leaves_room::<f64>(GemmKernel::Sm90Fragments, &[17, 33, 101, 295, 451]);
    leaves_room::<f64>(GemmKernel::WarpFragments, &[17, 101, 451]);
    leaves_room::<f16>(GemmKernel::WarpFragments, &[18, 102, 148, 450]);
    // Aligned rows leave what they do not need.
    let (blocks, bytes) = launch::<f64>(GemmKernel::Sm90Fragments, 227 << 10, (16, 9));
    assert!(
        (blocks + 1) * bytes < 228 << 10,
        "{blocks} of {bytes} bytes"
    );
}

/// The blocks and their threads, on a GPU of 132 multiprocessors.
fn launch_of_many<T: GemmElement>(kernel: GemmKernel, rows: u32, shape: (u32, u32)) -> (u32, u32) {
    let problem = GemmProblem {
        rows,
        depth: shape.0,
        cols: shape.1,
        multiprocessors: 132,
        shared_bytes: 227 << 10,
        instance: None,
    };
    let config = kernel.plan::<T>(problem).unwrap().config;
    (config.grid.y, config.block.x)
}

#[test]
fn blocks_of_several_tiles_of_columns_fill_their_waves() {
    let blocks = |rows, cols| launch_of_many::<f64>(GemmKernel::Sm90Fragments, rows, (200, cols)).0;
    // A block of 12 warps has 192 rows in a step, and is alone on its multiprocessor. One tile of columns: as many
    // blocks as there are steps or multiprocessors.
    assert_eq!(blocks(100 * 192, 64), 100);
    assert_eq!(blocks(300 * 192, 64), 132);
    // Two tiles: 2 x 66 blocks of two steps, and not 2 x 100 of one step in two waves that are not full.
    assert_eq!(blocks(100 * 192, 128), 66);
    // Three tiles of 132 steps: three full waves would start blocks three times as often.
    assert_eq!(blocks(132 * 192, 192), 44);
    // With many steps it does not matter.
    assert_eq!(blocks(792 * 192, 128), 66);
    assert_eq!(blocks(793 * 192, 128), 132);
    assert_eq!(blocks(0, 128), 1);
}

#[test]
fn each_scheduler_has_equally_many_warps_in_f64() {
    let threads =
        |depth, cols| launch_of_many::<f64>(GemmKernel::Sm90Fragments, 1 << 20, (depth, cols)).1;
    // Beside W there is room for 14, 11, 9 and 8 warps.
    assert_eq!(threads(300, 40), 12 * 32);
    assert_eq!(threads(340, 40), 8 * 32);
    assert_eq!(threads(380, 40), 8 * 32);
    assert_eq!(threads(416, 40), 8 * 32);
}
