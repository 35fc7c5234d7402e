//! The gather limit of a case: the best time of the tiles and shares that the kernel has.

use crate::harness::measure::{Effort, Timing, measure};
use warprow::device::{Device, DeviceBuffer, DeviceError};
use warprow::{DeviceCsr, Element, Error, SpmmElement};
use warprow_bench_kernels::PTX;
use warprow_bench_kernels::gather_limit::{LEAST_SHARE, handle, lanes, launch, tile_width};
use warprow_kernels::matrix::{Csr, Dense, DenseMut};

#[cfg(test)]
mod tests;

/// Nonzeros of a share: the more, the less a share's own cost; the fewer, the better the multiprocessors are filled.
const SHARES: [u32; 2] = [LEAST_SHARE, 4 * LEAST_SHARE];

/// The name in the results.
pub const NAME: &str = "gather_limit";

/// How the work is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    lanes: u32,
    share: u32,
    tile: u32,
}

impl Cut {
    /// All that make sense for X of that many features: no tile that is twice as wide as needed.
    pub fn all(features: u32) -> Vec<Self> {
        let tile = |lanes| tile_width(lanes, features);
        let all = lanes(features);
        let wider = all.windows(2).filter(|pair| tile(pair[0]) < features);
        std::iter::once(all[0])
            .chain(wider.map(|pair| pair[1]))
            .flat_map(|lanes| {
                SHARES.map(|share| Self {
                    lanes,
                    share,
                    tile: tile(lanes),
                })
            })
            .collect()
    }

    /// Its name in the results.
    pub fn name(self) -> String {
        format!("tile {}, share {}", self.tile, self.share)
    }
}

/// Whether there is a kernel for elements of that type: there is one for f32.
pub fn has<T: SpmmElement>() -> bool {
    T::NAME == f32::NAME
}

/// Makes the kernel known to a device, once before [`best`].
///
/// # Errors
///
/// The device's.
pub fn load(device: &Device) -> Result<(), DeviceError> {
    device.load_kernels(PTX)
}

/// The best cut and its time; on the emulator, which has no times, the first one after a run.
///
/// # Errors
///
/// The device's.
pub fn best<T: SpmmElement>(
    device: &Device,
    a: &DeviceCsr<T>,
    x: &DeviceBuffer<T>,
    y: &mut DeviceBuffer<T>,
    features: u32,
    samples: u32,
) -> Result<(Cut, Option<Timing>), Error> {
    let cuts = Cut::all(features);
    let mut best = (cuts[0], f64::INFINITY);
    if !device.is_emulator() {
        for cut in cuts {
            let timing = measure(device, Effort::GLANCE, || {
                run(device, a, x, y, features, cut)
            })?;
            if let Some(timing) = timing
                && timing.median < best.1
            {
                best = (cut, timing.median);
            }
        }
    }
    let cut = best.0;
    let timing = measure(device, Effort::of(samples), || {
        run(device, a, x, y, features, cut)
    })?;
    Ok((cut, timing))
}

fn run<T: SpmmElement>(
    device: &Device,
    a: &DeviceCsr<T>,
    x: &DeviceBuffer<T>,
    y: &mut DeviceBuffer<T>,
    features: u32,
    cut: Cut,
) -> Result<(), DeviceError> {
    assert!(has::<T>(), "no kernel for {}", T::NAME);
    // The generators count with u32.
    let pattern = a.pattern();
    let extents = [pattern.rows(), pattern.cols(), pattern.nnz()];
    let [rows, cols, nonzeros] = extents.map(|extent| extent as u32);
    let arguments = (
        Csr {
            rows,
            cols,
            row_ptr: pattern.row_ptr().read_only(),
            col_idx: pattern.col_idx().read_only(),
            values: a.values().read_only().cast(),
        },
        Dense::packed(cols, features, x.read_only().cast()),
        DenseMut::packed(rows, features, y.mutable().cast()),
        nonzeros,
        cut.share,
    );
    let config = launch(nonzeros, features, cut.lanes, cut.share);
    // SAFETY: A is square with at least one row and columns within it, X and Y have its rows and `features` columns,
    // Y is borrowed mutably, and the kernel is the one for the launch's lanes and these features.
    unsafe { device.launch(&handle(cut.lanes, features), config, arguments) }
}
