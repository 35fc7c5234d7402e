//! The operands of a case, on the host and on the device, and the comparison of the result.

use crate::spmm::verification::{Found, VerifiedRows};
use ndarray::{Array2, ArrayView2};
use sprs::CsMatI;
use std::rc::Rc;
use std::time::Duration;
use warprow::device::{Device, DeviceBuffer};
use warprow::reference::WholeProduct;
use warprow::{Error, Spmm, SpmmElement, generate};

/// Work after which a GPU that has idled for long is as fast as ever. The same product, of 2 ms, took 1.09, 1.04 and 1
/// times as long in the first three measurements, of 50 ms each, after the host had made its X.
const WAKING: Duration = Duration::from_millis(100);

/// Elements of Y up to which all rows of a peer's product are compared; of a larger one, the sample of rows.
const MOST_OF_PEER: usize = 1 << 24;

/// Elements of Y that are fetched at a time.
const FETCHED: usize = 1 << 24;

/// Elements of a product of small whole numbers that are compared: of a larger one, parts evenly apart.
const MOST_EXACT_ELEMENTS: usize = 1 << 26;

/// The part of a GPU's memory that X may take in all its widths.
const SHARE_OF_MEMORY: u64 = 4;

/// X for all cases of a run: random elements, of which each X has as many of the first as it needs, row-major. On the
/// device it stays from one kind of a graph to the next.
pub struct DenseOperands<T: SpmmElement> {
    elements: Vec<T>,
    seed: u64,
    on_device: Vec<(usize, Rc<DeviceBuffer<T>>)>,
}

impl<T: SpmmElement> DenseOperands<T> {
    /// For X of that many elements; larger ones have elements made again.
    ///
    /// # Errors
    ///
    /// The generator's.
    pub fn new(most_elements: usize, seed: u64) -> Result<Self, Error> {
        let (elements, _) = generate::dense(1, most_elements, seed)?.into_raw_vec_and_offset();
        Ok(Self {
            elements,
            seed,
            on_device: Vec::new(),
        })
    }

    fn upload(&mut self, device: &Device, length: usize) -> Result<Rc<DeviceBuffer<T>>, Error> {
        if length > self.elements.len() {
            // The first elements stay the same.
            let kept = std::mem::take(&mut self.on_device);
            *self = Self::new(length, self.seed)?;
            self.on_device = kept;
        }
        let kept = self.on_device.iter().find(|(kept, _)| *kept == length);
        if let Some((_, kept)) = kept {
            return Ok(Rc::clone(kept));
        }
        let x = Rc::new(device.upload(&self.elements[..length])?);
        let lengths = self.on_device.iter().map(|(length, _)| *length as u64);
        let bytes = (lengths.sum::<u64>() + length as u64) * size_of::<T>() as u64;
        if bytes <= device.properties().memory_bytes.unwrap_or(0) / SHARE_OF_MEMORY {
            self.on_device.push((length, Rc::clone(&x)));
        }
        Ok(x)
    }

    /// Frees what is kept on the device.
    pub fn forget(&mut self) {
        self.on_device.clear();
    }
}

/// A, X and Y: A on the host, X on both, Y on the device.
pub struct Operands<'a, T: SpmmElement> {
    /// X on the device.
    pub x: Rc<DeviceBuffer<T>>,
    /// Y on the device.
    pub y: DeviceBuffer<T>,
    /// Columns of X and Y.
    pub features: u32,
    host_x: ArrayView2<'a, T>,
    verified: VerifiedRows<'a, T>,
}

impl<'a, T: SpmmElement> Operands<'a, T> {
    /// X of `features` columns for `a`, and room for Y.
    ///
    /// # Errors
    ///
    /// Too little device memory.
    pub fn new(
        device: &Device,
        a: &'a CsMatI<T, u32, u32>,
        dense: &'a mut DenseOperands<T>,
        features: u32,
        seed: u64,
    ) -> Result<Self, Error> {
        let shape = (a.cols(), features as usize);
        let length = shape.0 * shape.1;
        let x = dense.upload(device, length)?;
        let host_x = ArrayView2::from_shape(shape, &dense.elements[..length]);
        Ok(Self {
            x,
            y: device.uninitialized(a.rows() * shape.1)?,
            verified: VerifiedRows::choose(a.view(), features, seed),
            features,
            host_x: host_x.expect("the length is that of the shape"),
        })
    }

    /// Fills Y with NaN until a GPU that has idled for that time is as fast as ever.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn wake(&mut self, device: &Device, idle: Duration) -> Result<(), Error> {
        let mut worked = Duration::ZERO;
        while worked < idle.min(WAKING) && !self.y.is_empty() {
            let timer = device.start_timer()?;
            for _ in 0..8 {
                self.poison()?;
            }
            match timer.stop()? {
                Some(time) => worked += time,
                None => break,
            }
        }
        Ok(())
    }

    /// Fills Y with NaN, so that what an implementation does not write is wrong.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn poison(&mut self) -> Result<(), Error> {
        Ok(self.y.fill_bytes(0xff)?)
    }

    /// Fetches Y and compares it with the product in f64: within the error of the plan that computed it, or else of any
    /// order of summation. Without a plan, of a large Y only the sample of rows.
    ///
    /// # Errors
    ///
    /// The device's: that of a launch before, above all.
    pub fn verify(&self, plan: Option<&Spmm<T>>) -> Result<Found, Error> {
        let longest = self.verified.longest_row();
        let depth = plan.map(|plan| plan.summation_depth(longest, self.features as usize));
        let all_rows = plan.is_some() || self.y.len() <= MOST_OF_PEER;
        (self.verified).verify(self.host_x, &self.y, depth, all_rows)
    }

    /// Multiplications of a nonzero of A and an element of X.
    pub fn multiplications(&self) -> u64 {
        self.verified.nonzeros() as u64 * u64::from(self.features)
    }

    /// Whether every entry of the product of small whole numbers is exact, by a plan for them: that of the same
    /// nonzeros and options as the plan that was measured, as a plan keeps its values.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn is_exact(&mut self, plan: &Spmm<T>, whole: &WholeProduct<T>) -> Result<bool, Error> {
        let features = self.features as usize;
        let x = whole.x();
        let x = plan
            .device()
            .upload(x.as_slice().expect("a new array is contiguous"))?;
        self.poison()?;
        plan.run(&x, features, &mut self.y)?;
        let rows_at_once = (FETCHED / features.max(1)).max(1);
        let parts = self.y.len().div_ceil(MOST_EXACT_ELEMENTS).max(1);
        for first in (0..plan.rows()).step_by(parts * rows_at_once) {
            let count = rows_at_once.min(plan.rows() - first);
            let mut rows = Array2::from_elem((count, features), T::ONE);
            let elements = rows.as_slice_mut().expect("a new array is contiguous");
            self.y.copy_part_to_slice(first * features, elements)?;
            let found = whole.verify_rows(first, rows.view());
            if !found.ok() {
                eprintln!("small whole numbers by {plan}: {found}");
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warprow::{Spmm, SpmmOptions};

    #[test]
    fn a_result_of_an_earlier_product_does_not_pass_for_that_of_a_later_one() {
        let device = Device::emulator(Default::default());
        let a = generate::uniform::<f32>(31, 7, 60, 1).unwrap();
        let mut dense = DenseOperands::new(50, 1).unwrap();
        let mut operands = Operands::new(&device, &a, &mut dense, 3, 1).unwrap();
        operands.poison().unwrap();
        assert!(!operands.verify(None).unwrap().ok());
        let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        spmm.run(&operands.x, 3, &mut operands.y).unwrap();
        assert!(operands.verify(Some(&spmm)).unwrap().ok());
        operands.poison().unwrap();
        assert!(!operands.verify(None).unwrap().ok());
    }

    #[test]
    fn a_product_of_whole_numbers_is_exact_and_not_that_of_other_numbers() {
        let device = Device::emulator(Default::default());
        let a = generate::uniform::<f32>(31, 7, 60, 1).unwrap();
        let mut dense = DenseOperands::new(50, 1).unwrap();
        let mut operands = Operands::new(&device, &a, &mut dense, 3, 1).unwrap();
        let whole = WholeProduct::<f32>::new(a.view(), 3, 1);
        let plan = |a| Spmm::plan(&device, a, SpmmOptions::default()).unwrap();
        assert!(operands.is_exact(&plan(whole.a()), &whole).unwrap());
        assert!(!operands.is_exact(&plan(a.view()), &whole).unwrap());
    }

    #[test]
    fn the_elements_of_a_width_are_those_that_it_has_alone() {
        let mut dense = DenseOperands::<f32>::new(200_000, 5).unwrap();
        let device = Device::emulator(Default::default());
        let x = dense.upload(&device, 70_000).unwrap().download().unwrap();
        let alone = generate::dense::<f32>(7_000, 10, 5).unwrap();
        assert_eq!(x, alone.as_slice().unwrap());
    }
}
