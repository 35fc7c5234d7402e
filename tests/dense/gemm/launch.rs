//! How many blocks and warps a launch has, and how much shared memory.

use warprow::{GemmElement, GemmKernel, f16};
use warprow_kernels::gemm::GemmProblem;

#[test]
fn rows_of_x_that_are_copied_through_the_l1_cache_find_room_there() {
    // Bytes that CUDA takes for each block.
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
            // A sixth of the shared memory, up to 32 KiB, stays free for the L1 cache.
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
    // Aligned rows are not copied through the L1 cache, so a block asks only for what it uses.
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
    // Two tiles: 2 x 66 blocks of one or two steps, and not 2 x 100 of one step in two waves that are not full.
    assert_eq!(blocks(100 * 192, 128), 66);
    // Three tiles of 132 steps: three full waves would start blocks three times as often.
    assert_eq!(blocks(132 * 192, 192), 44);
    // 792 = 6 x 132 steps are the most that count as few. With one more, a tile has as many blocks as run at a time.
    assert_eq!(blocks(792 * 192, 128), 66);
    assert_eq!(blocks(793 * 192, 128), 132);
    assert_eq!(blocks(0, 128), 1);
}

#[test]
fn each_scheduler_has_equally_many_warps_in_f64() {
    let threads =
        |depth, cols| launch_of_many::<f64>(GemmKernel::Sm90Fragments, 1 << 20, (depth, cols)).1;
    // Beside W there is room for 14 warps, of which 12 are the most.
    assert_eq!(threads(300, 40), 12 * 32);
    // There is room for 11, 10 and 9 warps.
    assert_eq!(threads(340, 40), 8 * 32);
    assert_eq!(threads(380, 40), 8 * 32);
    assert_eq!(threads(400, 40), 8 * 32);
    // There is room for 8 warps.
    assert_eq!(threads(416, 40), 8 * 32);
}

#[test]
fn flat_fragments_have_as_many_warps_as_registers_or_shared_memory_allow() {
    let launch = |shared_bytes, rows, (depth, cols)| {
        let problem = GemmProblem {
            rows,
            depth,
            cols,
            multiprocessors: 132,
            shared_bytes,
            instance: None,
        };
        let config = GemmKernel::FlatFragments
            .plan::<f16>(problem)
            .unwrap()
            .config;
        (config.grid.y, config.block.x / 32, config.shared_bytes)
    };
    let of_many = |shape| {
        let (blocks, warps, bytes) = launch(227 << 10, 1 << 20, shape);
        assert!(bytes <= 227 << 10);
        (blocks, warps)
    };
    // Registers allow 32 or 24 warps.
    assert_eq!(of_many((12, 17)), (4 * 132, 8));
    assert_eq!(of_many((32, 17)), (3 * 132, 8));
    // Shared memory allows 28 in one block, and 24 in smaller ones. The 65,536 tiles are 18 rounds.
    assert_eq!(of_many((16, 200)), (65_536_u32.div_ceil(18 * 28), 28));
    // With few rows, smaller blocks spread over more multiprocessors.
    assert_eq!(launch(227 << 10, 132 * 16 * 9, (16, 200)).1, 8);
    assert_eq!(launch(227 << 10, 132 * 16 * 28, (16, 200)).1, 28);
    // A tile more than 28 for each multiprocessor: with 32 warps, none has two.
    assert_eq!(launch(227 << 10, 132 * 16 * 28 + 1, (1, 211)).1, 32);
    // 43 tiles for each multiprocessor: 22 warps or more have two each at most.
    assert_eq!(
        launch(227 << 10, 132 * 16 * 43, (1, 211)).0,
        (132 * 43_u32).div_ceil(2 * 8)
    );
    assert_eq!(
        launch(227 << 10, 132 * 16 * 43, (12, 17)).0,
        (132 * 43_u32).div_ceil(2 * 8)
    );
    // Each multiprocessor has a block. With large blocks the tiles would take two rounds, too, and half of the
    // multiprocessors would have none.
    for (rows, shape) in [
        (66_202, (16, 200)),
        (50_000, (48, 200)),
        (50_000, (64, 168)),
    ] {
        let (blocks, warps, _) = launch(227 << 10, rows, shape);
        assert!(
            blocks >= 132,
            "{rows} rows: {blocks} blocks of {warps} warps"
        );
    }
    // W takes 46 KiB, once for 12 warps. The tiles are 42 rounds.
    assert_eq!(of_many((37, 365)), (65_536_u32.div_ceil(42 * 12), 12));
    // Each warp has at least 16 rows, if there are so many.
    assert_eq!(launch(227 << 10, 10_000, (12, 17)).0, 79);
    assert_eq!(launch(227 << 10, 1, (12, 17)).0, 1);
    // Small blocks on a GPU with less shared memory.
    assert_eq!(launch(99 << 10, 1 << 20, (16, 600)).1, 4);
    // What no block has room for is for the caller to refuse.
    assert_eq!(launch(227 << 10, 1, (64, u32::MAX)).1, 1);
    assert_eq!(launch(227 << 10, 1, (64, u32::MAX)).2, u32::MAX);
}

#[test]
fn shallow_in_f64_has_a_block_for_each_step_of_few_columns_if_a_grid_has_so_many() {
    let launch = |depth, rows| {
        let problem = GemmProblem {
            rows,
            depth,
            cols: 396,
            multiprocessors: 132,
            shared_bytes: 99 << 10,
            instance: None,
        };
        let config = GemmKernel::Shallow.plan::<f64>(problem).unwrap().config;
        assert_eq!(config.shared_bytes, 0);
        config.grid.y
    };
    // A block of 2 x 199 threads takes 8 rows at a step.
    assert_eq!(launch(3, 20_000), 2500);
    assert_eq!(launch(4, 20_000), 250, "ten steps each");
    // There are 375,000 steps, and a grid has at most 65,535 blocks along y.
    assert_eq!(launch(3, 3_000_000), 62_500, "six steps each");
}
