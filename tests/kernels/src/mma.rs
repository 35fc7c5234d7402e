//! Kernels for `cuda_std::mma`: one product of fragments each, with the layout of the PTX manual.

use cuda_std::mma;
use cuda_std::prelude::*;

/// `c += a * b` for each warp, where a is 16 x 16, b is 16 x 8 and c is 16 x 8.
///
/// # Safety
///
/// The matrices are row-major, one of each per warp; blocks consist of whole warps.
#[kernel(T = [f16, bf16])]
pub unsafe fn multiply_halves<T: mma::MmaElement>(a: Global<T>, b: Global<T>, c: GlobalMut<f32>) {
    let (warp, g, t) = places();
    let (a, b) = (a.offset(warp * 256), b.offset(warp * 128));
    let c = c.offset(warp * 128 + g * 8 + 2 * t);
    // SAFETY: each warp has a matrix of each kind, and the indices stay within it.
    unsafe {
        let pair_of_a = |row: usize, k: usize| {
            let a = a.offset(16 * row + k);
            u32::from(a.cast::<u16>().load(0)) | u32::from(a.cast::<u16>().load(1)) << 16
        };
        let pair_of_b = |k: usize| {
            let b = b.offset(8 * k + g).cast::<u16>();
            u32::from(b.load(0)) | u32::from(b.load(8)) << 16
        };
        let fragment_a = [
            pair_of_a(g, 2 * t),
            pair_of_a(g + 8, 2 * t),
            pair_of_a(g, 2 * t + 8),
            pair_of_a(g + 8, 2 * t + 8),
        ];
        let fragment_b = [pair_of_b(2 * t), pair_of_b(2 * t + 8)];
        let sums = [c.load(0), c.load(1), c.load(64), c.load(65)];
        store_sums(c, mma::m16n8k16::<T>(fragment_a, fragment_b, sums));
    }
}

/// As [`multiply_halves`] for 16 x 8 by 8 x 8 in tf32.
///
/// # Safety
///
/// As for [`multiply_halves`].
#[kernel]
pub unsafe fn multiply_tf32(a: Global<f32>, b: Global<f32>, c: GlobalMut<f32>) {
    let (warp, g, t) = places();
    let (a, b) = (a.offset(warp * 128), b.offset(warp * 64));
    let c = c.offset(warp * 128 + g * 8 + 2 * t);
    // SAFETY: each warp has a matrix of each kind, and the indices stay within it.
    unsafe {
        let of_a = |row: usize, k: usize| mma::to_tf32(a.load(8 * row + k));
        let of_b = |k: usize| mma::to_tf32(b.load(8 * k + g));
        let fragment_a = [
            of_a(g, t),
            of_a(g + 8, t),
            of_a(g, t + 4),
            of_a(g + 8, t + 4),
        ];
        let sums = [c.load(0), c.load(1), c.load(64), c.load(65)];
        store_sums(
            c,
            mma::m16n8k8_tf32(fragment_a, [of_b(t), of_b(t + 4)], sums),
        );
    }
}

/// As [`multiply_halves`] for 8 x 4 by 4 x 8 in f64.
///
/// # Safety
///
/// As for [`multiply_halves`].
#[kernel]
pub unsafe fn multiply_doubles(a: Global<f64>, b: Global<f64>, c: GlobalMut<f64>) {
    let (warp, g, t) = places();
    let c = c.offset(warp * 64 + g * 8 + 2 * t);
    // SAFETY: each warp has a matrix of each kind, and the indices stay within it.
    unsafe {
        let (a, b) = (a.load(warp * 32 + 4 * g + t), b.load(warp * 32 + 8 * t + g));
        let sums = mma::m8n8k4(a, b, [c.load(0), c.load(1)]);
        c.store(0, sums[0]);
        c.store(1, sums[1]);
    }
}

/// The number of the warp; the group of its lane, and the lane's place in the group.
fn places() -> (usize, usize, usize) {
    let lane = warp::lane_id() as usize;
    (thread::index_1d() as usize / 32, lane / 4, lane % 4)
}

/// Stores the lane's four sums.
///
/// # Safety
///
/// `c` points to the first of the lane's elements of a 16 x 8 matrix.
unsafe fn store_sums(c: GlobalMut<f32>, sums: [f32; 4]) {
    // SAFETY: these are the lane's elements, by the contract.
    unsafe {
        c.store(0, sums[0]);
        c.store(1, sums[1]);
        c.store(64, sums[2]);
        c.store(65, sums[3]);
    }
}
