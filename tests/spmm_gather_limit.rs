//! The gather limit reads every nonzero and its row of X once: the sums that it writes are those of its shares.

mod support;

use ndarray::Array2;
use warprow::device::Device;
use warprow::{CsrMatrix, SpmmElement, generate};
use warprow_kernels::matrix::{Csr, Dense, DenseMut};
use warprow_kernels::spmm::product::gather_limit;
use warprow_kernels::spmm::product::gather_limit::{LANES, LEAST_SHARE, first_row, shares};

/// What the kernel writes for Y.
fn written<T: SpmmElement + cuda_std::float::Real>(
    device: &Device,
    a: &CsrMatrix<T>,
    x: &Array2<T>,
    lanes: u32,
    share: u32,
) -> Array2<T> {
    let (rows, cols) = (a.rows() as u32, a.cols() as u32);
    let (nonzeros, features) = (a.nnz() as u32, x.ncols() as u32);
    let row_ptr = device.upload(&a.indptr().to_proper()).unwrap();
    let col_idx = device.upload(a.indices()).unwrap();
    let values = device.upload(a.data()).unwrap();
    let on_device = device.upload(x.as_slice().unwrap()).unwrap();
    let mut y = device.uninitialized(a.rows() * x.ncols()).unwrap();
    let config = gather_limit::launch::<T>(nonzeros, features, lanes, share);
    let csr = Csr {
        rows,
        cols,
        row_ptr: row_ptr.read_only(),
        col_idx: col_idx.read_only(),
        values: values.read_only(),
    };
    let dense = Dense {
        rows: cols,
        cols: features,
        data: on_device.read_only(),
    };
    let result = DenseMut {
        rows,
        cols: features,
        data: y.mutable(),
    };
    let kernel = gather_limit::handle::<T>(lanes, features);
    // SAFETY: the buffers have the matrices' sizes, and the columns of A are below `cols`.
    unsafe { device.launch(&kernel, config, (csr, dense, result, nonzeros, share)) }.unwrap();
    Array2::from_shape_vec((a.rows(), x.ncols()), y.download().unwrap()).unwrap()
}

/// The sums of the shares, in f64, for the rows that each share writes.
fn expected<T: SpmmElement + cuda_std::float::Real>(
    a: &CsrMatrix<T>,
    x: &Array2<T>,
    share: u32,
) -> Array2<f64> {
    let (rows, count) = (a.rows() as u32, shares(a.nnz() as u32, share));
    let mut y = Array2::zeros((a.rows(), x.ncols()));
    for index in 0..count {
        let first = index as usize * share as usize;
        for k in first..a.nnz().min(first + share as usize) {
            let value = a.data()[k].to_f64();
            let gathered = x.row(a.indices()[k] as usize);
            for row in first_row(index, count, rows)..first_row(index + 1, count, rows) {
                for (sum, element) in y.row_mut(row as usize).iter_mut().zip(gathered) {
                    *sum += value * element.to_f64();
                }
            }
        }
    }
    y
}

/// Small whole numbers, whose sums are exact.
fn whole<T: SpmmElement + cuda_std::float::Real>(
    a: &CsrMatrix<T>,
    features: usize,
) -> (CsrMatrix<T>, Array2<T>) {
    let numbers: Vec<T> = (0..a.nnz())
        .map(|k| T::from_f64((k % 7) as f64 - 3.0))
        .collect();
    let a = CsrMatrix::new(
        (a.rows(), a.cols()),
        a.indptr().to_proper().to_vec(),
        a.indices().to_vec(),
        numbers,
    );
    let x = Array2::from_shape_fn((a.cols(), features), |(i, j)| {
        T::from_f64(((i * 31 + j * 17) % 11) as f64 - 5.0)
    });
    (a, x)
}

fn every_share_is_summed_and_written<T: SpmmElement + cuda_std::float::Real>() {
    // More rows than shares, more shares than rows, and nonzeros that the shares do not divide.
    let long_rows = generate::uniform::<T>(7, 701, 1_900, 1).unwrap();
    let short_rows = generate::rmat::<T>(301, 777, [0.57, 0.19, 0.19, 0.05], 2).unwrap();
    for a in [long_rows, short_rows] {
        for features in [1, 2, 7, 33, 66, 132] {
            let (a, x) = whole(&a, features);
            for share in [LEAST_SHARE, 4 * LEAST_SHARE] {
                let wanted = expected(&a, &x, share);
                for device in support::devices() {
                    for lanes in LANES {
                        let y = written(&device, &a, &x, lanes, share).mapv(T::to_f64);
                        assert_eq!(
                            y, wanted,
                            "{features} features, {lanes} lanes, shares of {share}, {device}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn every_share_is_summed_and_written_in_f32() {
    every_share_is_summed_and_written::<f32>();
}

#[test]
fn every_share_is_summed_and_written_in_f64() {
    every_share_is_summed_and_written::<f64>();
}

#[test]
fn a_matrix_without_nonzeros_gives_zeros() {
    let a = generate::uniform::<f32>(5, 3, 0, 1).unwrap();
    let x = Array2::from_elem((3, 9), 1.0);
    for device in support::devices() {
        let y = written(&device, &a, &x, 8, LEAST_SHARE);
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
