//! The gather limit reads every nonzero and its row of X once: the sums that it writes are those of its shares.

use super::{Cut, load, run};
use ndarray::Array2;
use warprow::device::Device;
use warprow::{CsrMatrix, DeviceCsr, generate};
use warprow_bench_kernels::gather_limit::{LEAST_SHARE, first_row, shares};

/// The devices to test on, with the kernel loaded.
fn devices() -> Vec<Device> {
    let devices = support::devices();
    for device in &devices {
        load(device).unwrap();
    }
    devices
}

/// What the kernel writes for Y.
fn written(device: &Device, a: &CsrMatrix<f32>, x: &Array2<f32>, cut: Cut) -> Array2<f32> {
    let on_device = DeviceCsr::upload(device, a.view()).unwrap();
    let x_device = device.upload(x.as_slice().unwrap()).unwrap();
    let mut y = device.uninitialized(a.rows() * x.ncols()).unwrap();
    run(device, &on_device, &x_device, &mut y, x.ncols() as u32, cut).unwrap();
    Array2::from_shape_vec((a.rows(), x.ncols()), y.download().unwrap()).unwrap()
}

/// The sums of the shares for the rows that each share writes.
fn expected(a: &CsrMatrix<f32>, x: &Array2<f32>, share: u32) -> Array2<f32> {
    let (rows, count) = (a.rows() as u32, shares(a.nnz() as u32, share));
    let mut y = Array2::zeros((a.rows(), x.ncols()));
    for index in 0..count {
        let first = index as usize * share as usize;
        for k in first..a.nnz().min(first + share as usize) {
            let gathered = x.row(a.indices()[k] as usize);
            for row in first_row(index, count, rows)..first_row(index + 1, count, rows) {
                y.row_mut(row as usize).scaled_add(a.data()[k], &gathered);
            }
        }
    }
    y
}

/// Small whole numbers, whose sums are exact.
fn whole(a: &CsrMatrix<f32>, features: usize) -> (CsrMatrix<f32>, Array2<f32>) {
    let numbers = (0..a.nnz()).map(|k| (k % 7) as f32 - 3.0).collect();
    let a = CsrMatrix::new(
        (a.rows(), a.cols()),
        a.indptr().to_proper().to_vec(),
        a.indices().to_vec(),
        numbers,
    );
    let x = Array2::from_shape_fn((a.cols(), features), |(i, j)| {
        ((i * 31 + j * 17) % 11) as f32 - 5.0
    });
    (a, x)
}

#[test]
fn every_share_is_summed_and_written() {
    // More rows than shares, more shares than rows, and nonzeros that the shares do not divide.
    let long_rows = generate::uniform(7, 701, 1_900, 1).unwrap();
    let short_rows = generate::rmat(301, 777, [0.57, 0.19, 0.19, 0.05], 2).unwrap();
    for a in [long_rows, short_rows] {
        for features in [1, 2, 4, 7, 33, 66, 132] {
            let (a, x) = whole(&a, features);
            for cut in Cut::all(features as u32) {
                let wanted = expected(&a, &x, cut.share);
                for device in devices() {
                    let y = written(&device, &a, &x, cut);
                    assert_eq!(y, wanted, "{features} features, {cut:?}, {device}");
                }
            }
        }
    }
}

#[test]
fn a_matrix_without_nonzeros_gives_zeros() {
    let a = generate::uniform(5, 3, 0, 1).unwrap();
    let x = Array2::from_elem((3, 9), 1.0);
    for device in support::devices() {
        let y = written(&device, &a, &x, Cut::all(9)[0]);
        assert_eq!(y, Array2::<f32>::zeros((5, 9)), "{device}");
    }
}

#[test]
fn each_row_of_y_is_written_by_exactly_one_share() {
    for (rows, count) in [
        (0, 1),
        (1, 1),
        (5, 3),
        (3, 5),
        (301, 13),
        (7, 30),
        (u32::MAX, 2),
    ] {
        assert_eq!(first_row(0, count, rows), 0);
        assert_eq!(first_row(count, count, rows), rows);
        assert!((0..count).all(|s| first_row(s, count, rows) <= first_row(s + 1, count, rows)));
    }
}

#[test]
fn tiles_end_with_the_first_that_holds_all_features() {
    let tiles = |features| -> Vec<u32> {
        let cuts = Cut::all(features);
        let mut tiles: Vec<u32> = cuts.iter().map(|cut| cut.tile).collect();
        tiles.dedup();
        tiles
    };
    assert_eq!(tiles(32), [32]);
    assert_eq!(tiles(64), [32, 64]);
    assert_eq!(tiles(100), [32, 64, 128]);
    assert_eq!(tiles(512), [32, 64, 128]);
    assert_eq!(tiles(33), [64]);
    assert_eq!(tiles(1), [64]);
    assert_eq!(Cut::all(32)[0].name(), "tile 32, share 64");
    assert_eq!(Cut::all(32)[1].share, 4 * LEAST_SHARE);
}
