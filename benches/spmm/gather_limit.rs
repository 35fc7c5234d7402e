//! The gather limit of a case: the best time of the tiles and shares that the kernel has.

use crate::measure::{Effort, Timing, measure};
use warprow::device::{Device, DeviceBuffer};
use warprow::{DeviceCsr, Error, SpmmElement};
use warprow_kernels::matrix::{Csr, Dense, DenseMut};
use warprow_kernels::spmm::product::gather_limit;
use warprow_kernels::spmm::product::gather_limit::{LANES, LEAST_SHARE};

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
    pub fn all<T>(features: u32) -> Vec<Self> {
        let tile = |lanes| gather_limit::tile_width::<T>(lanes, features);
        let wider = LANES.windows(2).filter(|pair| tile(pair[0]) < features);
        let lanes = std::iter::once(LANES[0]).chain(wider.map(|pair| pair[1]));
        lanes
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

/// Whether there is a kernel for elements of that type: they are their own sums' type.
pub fn has<T: SpmmElement>() -> bool {
    size_of::<T>() == size_of::<T::Sum>()
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
    let cuts = Cut::all::<T>(features);
    let mut best = (cuts[0], f64::INFINITY);
    if !device.is_emulator() {
        for cut in cuts {
            let timing = measure(device, Effort::GLANCE, || {
                launch(device, a, x, y, features, cut)
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
        launch(device, a, x, y, features, cut)
    })?;
    Ok((cut, timing))
}

fn launch<T: SpmmElement>(
    device: &Device,
    a: &DeviceCsr<T>,
    x: &DeviceBuffer<T>,
    y: &mut DeviceBuffer<T>,
    features: u32,
    cut: Cut,
) -> Result<(), Error> {
    assert!(has::<T>(), "no kernel for {}", T::NAME);
    // The generators count with u32.
    let pattern = a.pattern();
    let extents = [pattern.rows(), pattern.cols(), pattern.nnz()];
    let [rows, cols, nonzeros] = extents.map(|extent| extent as u32);
    let config = gather_limit::launch::<T>(nonzeros, features, cut.lanes, cut.share);
    let arguments = (
        Csr {
            rows,
            cols,
            row_ptr: pattern.row_ptr().read_only(),
            col_idx: pattern.col_idx().read_only(),
            values: a.values().read_only().cast(),
        },
        Dense {
            rows: cols,
            cols: features,
            data: x.read_only().cast(),
        },
        DenseMut {
            rows,
            cols: features,
            data: y.mutable().cast(),
        },
        nonzeros,
        cut.share,
    );
    let kernel = gather_limit::handle::<T::Sum>(cut.lanes, features);
    // SAFETY: A is square with at least one row and columns within it, X and Y have its rows and `features` columns, Y is
    // borrowed mutably, and the kernel is the one for the launch's lanes and these features.
    unsafe { device.launch(&kernel, config, arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_end_with_the_first_that_holds_all_features() {
        let tiles = |features| -> Vec<u32> {
            let mut tiles: Vec<u32> = Cut::all::<f32>(features)
                .iter()
                .map(|cut| cut.tile)
                .collect();
            tiles.dedup();
            tiles
        };
        assert_eq!(tiles(32), [32]);
        assert_eq!(tiles(64), [32, 64]);
        assert_eq!(tiles(100), [32, 64, 128]);
        assert_eq!(tiles(512), [32, 64, 128]);
        assert_eq!(tiles(33), [16, 32, 64]);
        assert_eq!(tiles(1), [16]);
        assert_eq!(Cut::all::<f64>(32)[0].name(), "tile 16, share 64");
    }
}
