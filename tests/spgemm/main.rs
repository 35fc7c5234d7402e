//! SpGEMM on every device: shapes, long and empty rows, runs, every kernel by itself, both phases, the ladder, and
//! what is refused.

mod any;
mod bounds;
mod ladder;
mod limits;
mod memory;
mod merged;
mod merged_by_default;
mod narrow;
mod phases;
mod products;
mod reuse;
mod rows_of_warp;
mod runs;
mod schedules;

use sprs::CsMatI;
use support::devices_in_turn;
use support::spgemm_choices::{bin_limits, choices};
use warprow::device::Device;
use warprow::reference::{self, verify_spgemm};
use warprow::spgemm::{Spgemm, SpgemmElement, SpgemmOptions, spgemm};
use warprow::{CsrMatrix, DeviceCsr, Error};

const SKEWED: [f64; 4] = [0.57, 0.19, 0.19, 0.05];

/// Columns in ascending order, each once.
fn sorted(mut row: Vec<u32>) -> Vec<u32> {
    row.sort_unstable();
    row.dedup();
    row
}

/// A matrix of small whole numbers: products of such are exact in f32, in whatever order they are added up.
fn whole(rows: &[Vec<u32>], cols: u32) -> CsrMatrix<f32> {
    let mut indptr = vec![0_u32];
    let mut indices = Vec::new();
    for row in rows {
        indices.extend(row);
        indptr.push(indices.len() as u32);
    }
    let values = (0..indices.len()).map(|k| (k % 7) as f32 - 3.0).collect();
    CsMatI::new((rows.len(), cols as usize), indptr, indices, values)
}

/// The ways in which [`products`] computes a product.
const WAYS: [&str; 3] = ["whole", "by phases that keep nothing", "by phases"];

/// The product of matrices of the host: all at once, and by the phases without a product map and with one, which the
/// first run uses already.
fn products<T: SpgemmElement>(
    device: &Device,
    a: &CsrMatrix<T>,
    b: &CsrMatrix<T>,
    options: SpgemmOptions,
) -> Result<[CsrMatrix<T>; 3], Error> {
    let whole = spgemm(device, a.view(), b.view(), options)?.c;
    let a = DeviceCsr::upload(device, a.view())?;
    let b = DeviceCsr::upload(device, b.view())?;
    let by_phases = |low_memory| {
        let options = options.map_tuning(|tuning| tuning.low_memory(low_memory));
        let phases = Spgemm::symbolic(a.pattern(), b.pattern(), options)?;
        phases.numeric(a.values(), b.values())?.download()
    };
    Ok([whole, by_phases(true)?, by_phases(false)?])
}

/// Every choice with the devices that it runs on: the emulators take turns with the choices, and each of them has the
/// other choices for a matrix of one more or one less nonzero.
fn choices_on_devices(nonzeros: usize) -> impl Iterator<Item = (SpgemmOptions, Device)> {
    let choices = choices().into_iter().enumerate();
    choices.flat_map(move |(number, options)| {
        let devices = devices_in_turn(number + nonzeros).into_iter();
        devices.map(move |device| (options, device))
    })
}

/// The product by every choice, exactly that of the reference.
fn assert_exact(a: &CsrMatrix<f32>, b: &CsrMatrix<f32>) {
    let wanted = reference::spgemm(a.view(), b.view());
    for (options, device) in choices_on_devices(a.nnz()) {
        let products = products(&device, a, b, options)
            .unwrap_or_else(|error| panic!("{options:?} on {device}: {error}"));
        for (product, way) in products.iter().zip(WAYS) {
            assert!(
                product.map(|&value| f64::from(value)) == wanted,
                "{way}, {options:?} on {device}: {}",
                verify_spgemm(a.view(), b.view(), product.view())
            );
        }
    }
}

fn assert_right<T: SpgemmElement>(a: &CsrMatrix<T>, b: &CsrMatrix<T>) {
    for (options, device) in choices_on_devices(a.nnz()) {
        for product in products(&device, a, b, options).unwrap() {
            let verification = verify_spgemm(a.view(), b.view(), product.view());
            assert!(verification.ok(), "{options:?} on {device}: {verification}");
        }
    }
}
