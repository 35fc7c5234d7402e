//! Chooses the kernel of a plan, and checks one that the caller has chosen.

use super::{GemmElement, GemmError, GemmKernel, GemmOptions, GemmProblem, PlannedLaunch, problem};
use crate::device::{Device, Version};
use ndarray::ArrayView2;
use warprow_kernels::gemm::product::{
    flat_fragments, split_fragments, warpgroup_halves, warpgroup_split,
};

/// Maximum number of columns of W for which plans take `inner_products`. With more it reads X several times.
const FEW_COLUMNS: usize = 2;

/// Maximum number of columns of W that fit the narrowest tile.
const NARROW: usize = 16;

/// Minimum number of columns of W for which a tile of 128 columns is at least half full.
const WIDE: usize = 65;

/// Maximum number of 16-bit elements in a row of X that is copied in small pieces.
const LONG_ROW: usize = 128;

/// Number of 16-bit elements in 16 bytes.
const VECTOR: usize = 8;

/// Maximum number of columns of X for which 16-bit elements run on `shallow` if `flat_fragments` has no room.
const SHALLOW_WITHOUT_ROOM: usize = 8;

/// The kernel that a plan runs by default: `inner_products` for a W of one or two columns; else `shallow` for an X of
/// few columns, in 16 bits only if W has few, too, or too many for `flat_fragments`; else one on tensor cores if they
/// compute the type exactly enough; else `staged`, for a W in f32 that cannot be split.
pub(super) fn default_kernel<T: GemmElement>(
    device: &Device,
    w: ArrayView2<'_, T>,
    tf32: bool,
) -> GemmKernel {
    let (depth, cols) = w.dim();
    // With one column of X, `shallow` is faster.
    let suits_inner_products = cols <= FEW_COLUMNS && depth > 1;
    if suits_inner_products && takes::<T>(GemmKernel::InnerProducts, depth, device) {
        return GemmKernel::InnerProducts;
    }
    if depth <= most_shallow(T::NAME, cols) {
        return GemmKernel::Shallow;
    }
    match T::NAME {
        "f64" if runs_on(GemmKernel::Sm90Fragments, device) => GemmKernel::Sm90Fragments,
        "f64" => GemmKernel::WarpFragments,
        "f32" => match f32_kernel(device, w) {
            GemmKernel::Staged if tf32 => GemmKernel::WarpFragments,
            // With few columns the product is memory bound, and two parts of tf32 are as fast as one.
            GemmKernel::SplitFragments if tf32 && w.ncols() > NARROW => GemmKernel::WarpFragments,
            exact => exact,
        },
        _ => half_kernel(device, w),
    }
}

/// Maximum number of columns of X for which `shallow` is the fastest kernel.
fn most_shallow(element: &str, cols: usize) -> usize {
    match element {
        "f32" => 15,
        // `shallow` writes whole rows of Y. Tiles on tensor cores write parts of them, at different times.
        "f64" if cols >= WIDE => 6,
        // Up to three columns in any case, and up to eleven of X and W together: then the instructions for a tile of 16
        // rows on tensor cores take longer than memory does.
        "f64" => 11_usize.saturating_sub(cols).max(3),
        // As long as the columns of X times those of W are at most 31. With more, tensor cores are faster.
        _ => 31 / cols.max(1),
    }
}

/// The fastest kernel for elements of 16 bits.
fn half_kernel<T: GemmElement>(device: &Device, w: ArrayView2<'_, T>) -> GemmKernel {
    let (depth, cols) = w.dim();
    let is_odd = !depth.is_multiple_of(2);
    let has_vectors = depth.is_multiple_of(VECTOR) && cols.is_multiple_of(VECTOR);
    let suits_tiles = has_vectors && aligned_rows_suit_tiles(depth, cols);
    if !suits_tiles && has_flat_blocks::<T>(device, w.dim()) {
        return GemmKernel::FlatFragments;
    }
    if depth <= SHALLOW_WITHOUT_ROOM {
        return GemmKernel::Shallow;
    }
    if is_odd && takes::<T>(GemmKernel::WarpgroupFragments, depth, device) {
        return GemmKernel::WarpgroupFragments;
    }
    // Rows whose length is no multiple of 8 bytes are copied in small pieces. If they are long and W has few columns,
    // `fragments` is faster.
    let copies_well = depth.is_multiple_of(4) || !is_odd && (cols > NARROW || depth <= LONG_ROW);
    // With up to 16 columns, the warps' loads of W are not the limit. With 49 to 64, a tile of 128 columns would be
    // more than half empty.
    let suits_warpgroups = matches!(cols, 17..=48 | WIDE..);
    if !copies_well {
        GemmKernel::Fragments
    } else if suits_warpgroups && runs_on(GemmKernel::WarpgroupFragments, device) {
        GemmKernel::WarpgroupFragments
    } else {
        GemmKernel::WarpFragments
    }
}

/// Whether to take tiles instead of `flat_fragments` for rows of X and Y that are aligned to 16 bytes. The limits are
/// from measurements with 300,000 and 400,000 rows (docs/notes/gemm.md, "Aligned rows").
///
/// Tiles are slower if X has few columns and W does not fill them, and most of all if W takes several, of 128 columns,
/// and rows of Y are no multiple of 32 bytes: then rows have sectors of memory of which each tile writes a part.
fn aligned_rows_suit_tiles(depth: usize, cols: usize) -> bool {
    match cols {
        ..=NARROW => depth >= 16,
        17..=47 | 49..=63 => depth > 32,
        48 | 64 | 113..=128 => depth > 16,
        65..=112 => depth > 48,
        _ if !cols.is_multiple_of(16) => false,
        129..=160 => depth > 48,
        _ => depth > 16,
    }
}

/// Whether `flat_fragments` takes so many columns of X, and has enough shared memory for blocks that keep a
/// multiprocessor busy.
fn has_flat_blocks<T: GemmElement>(device: &Device, w: (usize, usize)) -> bool {
    let kernel = GemmKernel::FlatFragments;
    let most = device.properties().max_shared_bytes_per_block;
    takes::<T>(kernel, w.0, device)
        && plan_of_one_row::<T>(kernel, device, w).is_some_and(|plan| {
            plan.config.block.x >= flat_fragments::FULL_BLOCK && plan.config.shared_bytes <= most
        })
}

/// The fastest kernel that is exact enough for a W in f32.
fn f32_kernel<T: GemmElement>(device: &Device, w: ArrayView2<'_, T>) -> GemmKernel {
    // The casts are exact: an f32 becomes an f64 and an f32 again.
    let weights = || w.iter().map(|weight| weight.to_f64() as f32);
    let depth = w.nrows().try_into().unwrap_or(u32::MAX);
    let has_warpgroups = w.ncols() > NARROW && runs_on(GemmKernel::WarpgroupSplit, device);
    // `warpgroup_halves` has tiles of 128 columns, so it has many surplus columns for a W of 129 to 192 or 257 to 288.
    // `warpgroup_split` then has far fewer, and is taken even if `warpgroup_halves` is exact. Its tiles have 48
    // columns, or 64 for a W of 145 to 192. With 49 to 64 columns, one tile of 128 is faster than two of 48 whose W is
    // streamed.
    let is_wide = match w.ncols() {
        49..WIDE => streams(GemmKernel::WarpgroupSplit, device, w.dim()),
        cols => cols >= WIDE,
    };
    let of_halves = w.ncols().next_multiple_of(128);
    let suits_halves = w.ncols() <= 128 || 4 * w.ncols().next_multiple_of(48) > 3 * of_halves;
    if has_warpgroups
        && is_wide
        && suits_halves
        && warpgroup_halves::split_is_exact(weights(), depth)
    {
        GemmKernel::WarpgroupHalves
    } else if has_warpgroups && warpgroup_split::split_is_exact(weights(), depth) {
        GemmKernel::WarpgroupSplit
    } else if split_fragments::split_is_exact(weights(), depth, split_fragments::MAX_WEIGHT) {
        GemmKernel::SplitFragments
    } else {
        GemmKernel::Staged
    }
}

/// Whether the kernel streams a W of f32, because shared memory has no room for it.
fn streams(kernel: GemmKernel, device: &Device, w: (usize, usize)) -> bool {
    plan_of_one_row::<f32>(kernel, device, w)
        .is_some_and(|plan| plan.kernel.name().contains("Streamed"))
}

/// The instance and the launch for an X of one row, which show what depends on W alone; `None` if W is too large for a
/// problem, or the kernel has no instance for the type.
fn plan_of_one_row<T: GemmElement>(
    kernel: GemmKernel,
    device: &Device,
    w: (usize, usize),
) -> Option<PlannedLaunch<T>> {
    let w = w.0.try_into().ok().zip(w.1.try_into().ok())?;
    kernel.plan::<T>(problem(device, 1, w, None))
}

/// Whether the kernel can multiply an X of `depth` columns on the device.
fn takes<T: GemmElement>(kernel: GemmKernel, depth: usize, device: &Device) -> bool {
    let depth = depth.try_into().unwrap_or(u32::MAX);
    kernel.refusal::<T>(depth).is_none() && runs_on(kernel, device)
}

/// Whether the device has the instructions that the kernel needs.
fn runs_on(kernel: GemmKernel, device: &Device) -> bool {
    let Version { major, minor } = device.properties().compute_capability;
    kernel.required_arch().includes((major, minor))
}

/// Checks that a kernel which the caller has chosen can multiply an X of `depth` columns on the device.
pub(super) fn check_kernel<T: GemmElement>(
    kernel: GemmKernel,
    depth: u32,
    device: &Device,
    options: GemmOptions,
) -> Result<(), GemmError> {
    let refused = |reason: String| {
        Err(GemmError::Kernel {
            kernel: kernel.name(),
            reason,
        })
    };
    if let Some(reason) = kernel.refusal::<T>(depth) {
        return refused(reason);
    }
    if !runs_on(kernel, device) {
        let (major, minor) = kernel.required_arch().min_compute_capability();
        let found = device.properties().compute_capability;
        return refused(format!(
            "it is for compute capability {major}.{minor}{}, {device} has {found}",
            if kernel.required_arch().includes((u32::MAX, 0)) {
                " and newer"
            } else {
                " alone"
            }
        ));
    }
    if kernel.rounds_f32() && T::NAME == "f32" && !options.tf32 {
        return refused("on f32 it computes in tf32, which the options do not allow".to_owned());
    }
    Ok(())
}

/// Checks that the kernel has the instance that the problem asks for, that this one can compute the product, and that
/// the device has the shared memory that a block takes.
pub(super) fn check_launch<T: GemmElement>(
    kernel: GemmKernel,
    problem: GemmProblem,
) -> Result<(), GemmError> {
    // W may have no columns, but a problem has at least one.
    let problem = GemmProblem {
        cols: problem.cols.max(1),
        ..problem
    };
    let refused = |reason: String| {
        Err(GemmError::Kernel {
            kernel: kernel.name(),
            reason,
        })
    };
    let planned = kernel.plan::<T>(problem);
    if let Some(wanted) = problem.instance
        && planned.is_none_or(|plan| plan.kernel.name() != wanted)
    {
        return refused(format!(
            "instance `{wanted}` is not one of its own, or cannot multiply by a {} x {} matrix in {}",
            problem.depth,
            problem.cols,
            T::NAME
        ));
    }
    let bytes = planned.map_or(0, |plan| plan.config.shared_bytes);
    if bytes > problem.shared_bytes {
        return refused(format!(
            "with a {} x {} matrix a block takes {bytes} bytes of shared memory, and the device has {}",
            problem.depth, problem.cols, problem.shared_bytes
        ));
    }
    Ok(())
}
