//! The operands of a case, on the host and on the device, and the comparison of the result.

use crate::verification::VerifiedRows;
use ndarray::Array2;
use sprs::CsMatI;
use warprow::device::{Device, DeviceBuffer};
use warprow::reference::Verification;
use warprow::{Error, SpmmElement, generate};

/// A, X and Y: all on the host, X and Y on the device.
pub struct Operands<'a, T: SpmmElement> {
    /// A.
    pub a: &'a CsMatI<T, u32, u32>,
    /// X on the device.
    pub x: DeviceBuffer<T>,
    /// Y on the device.
    pub y: DeviceBuffer<T>,
    /// Columns of X and Y.
    pub features: u32,
    host_x: Array2<T>,
    host_y: Array2<T>,
    verified: VerifiedRows<'a, T>,
}

impl<'a, T: SpmmElement> Operands<'a, T> {
    /// Random X for `a`, and room for Y.
    ///
    /// # Errors
    ///
    /// Too little device memory.
    pub fn new(
        device: &Device,
        a: &'a CsMatI<T, u32, u32>,
        features: u32,
        seed: u64,
    ) -> Result<Self, Error> {
        let host_x = generate::dense::<T>(a.cols(), features as usize, seed);
        let host_y = Array2::from_elem((a.rows(), features as usize), T::from_f64(f64::NAN));
        Ok(Self {
            x: device.upload(elements(&host_x))?,
            y: device.uninitialized(host_y.len())?,
            verified: VerifiedRows::choose(a.view(), features, seed),
            a,
            features,
            host_x,
            host_y,
        })
    }

    /// Fills Y with NaN, so that what an implementation does not write is wrong.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn poison(&mut self) -> Result<(), Error> {
        self.host_y.fill(T::from_f64(f64::NAN));
        self.y.copy_from_slice(elements(&self.host_y))
    }

    /// Fetches Y and compares it with the product in f64.
    ///
    /// # Errors
    ///
    /// The device's: that of a launch before, above all.
    pub fn verify(&mut self) -> Result<Verification, Error> {
        let host_y = self.host_y.as_slice_mut().expect("Y is row-major");
        self.y.copy_to_slice(host_y)?;
        Ok(self.verified.verify(self.host_x.view(), self.host_y.view()))
    }

    /// Rows of Y that [`verify`](Self::verify) compares.
    pub fn rows_verified(&self) -> usize {
        self.verified.count()
    }
}

/// The elements of a row-major matrix.
fn elements<T>(matrix: &Array2<T>) -> &[T] {
    matrix.as_slice().expect("the matrix is row-major")
}

#[cfg(test)]
mod tests {
    use super::*;
    use warprow::{Spmm, SpmmOptions};

    #[test]
    fn a_result_of_an_earlier_product_does_not_pass_for_that_of_a_later_one() {
        let device = Device::emulator(Default::default());
        let a = generate::uniform::<f32>(31, 7, 60, 1).unwrap();
        let mut operands = Operands::new(&device, &a, 3, 1).unwrap();
        operands.poison().unwrap();
        assert!(!operands.verify().unwrap().ok());
        let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        spmm.run(&operands.x, 3, &mut operands.y).unwrap();
        assert!(operands.verify().unwrap().ok());
        assert_eq!(operands.rows_verified(), 31);
        operands.poison().unwrap();
        assert!(!operands.verify().unwrap().ok());
    }
}
