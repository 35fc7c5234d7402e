//! New values for the nonzeros of a plan, whose structure stays.

use super::Spmm;
use super::error::SpmmError;
use super::options::{SpmmElement, SpmmOptions};
use crate::csr::{DeviceCsr, ReorderedPattern, Sign, copy_values};
use crate::device::{DeviceBuffer, DeviceSlice};
use crate::operand::{check_device, check_len};
use std::sync::Arc;
use warprow_kernels::matrix::Operand;
use warprow_kernels::spmm::Reduction;

/// Where the caller's values go in a plan that takes new ones.
#[derive(Debug)]
pub(super) struct ValueOrder<E: SpmmElement> {
    /// The number in the caller's order of each nonzero in the plan's; `None` if the orders are the same.
    source: Option<Arc<DeviceBuffer<u32>>>,
    sign: Sign,
    /// Values of the host in the caller's order, if the plan's are others; made when there are some.
    staged: Option<DeviceBuffer<E::Sum>>,
    /// Values of the host, converted to the type of sums; without elements if they have this type.
    widened: Vec<E::Sum>,
}

impl<E: SpmmElement> ValueOrder<E> {
    /// The matrix of a plan: the nonzeros of `stored` in their order in the plan. With it, if the options ask for that,
    /// what new values need.
    pub fn of_plan(
        a: ReorderedPattern,
        stored: &DeviceCsr<E::Sum>,
        options: SpmmOptions,
    ) -> Result<(DeviceCsr<E::Sum>, Option<Self>), SpmmError> {
        // The kernel takes the maximum of the negative values.
        let sign = match options.reduction {
            Reduction::Min => Sign::Flipped,
            _ => Sign::Kept,
        };
        let is_same = a.source.is_none() && sign == Sign::Kept;
        let values = if is_same && !options.updatable {
            Arc::clone(stored.shared_values())
        } else {
            let mut values = stored.device().uninitialized(a.pattern.nnz())?;
            copy_values(
                a.source.as_deref(),
                stored.values().as_slice(),
                sign,
                &mut values,
            )?;
            Arc::new(values)
        };
        let order = options.updatable.then_some(Self {
            source: a.source,
            sign,
            staged: None,
            widened: Vec::new(),
        });
        Ok((DeviceCsr::from_parts(a.pattern, values), order))
    }

    /// Puts the caller's values into the plan's order.
    fn arrange(
        &self,
        from: DeviceSlice<'_, E::Sum>,
        to: &mut DeviceBuffer<E::Sum>,
    ) -> Result<(), SpmmError> {
        Ok(copy_values(self.source.as_deref(), from, self.sign, to)?)
    }

    /// Uploads the caller's values and puts them into the plan's order.
    fn upload(
        &mut self,
        values: &[E::Sum],
        to: &mut DeviceBuffer<E::Sum>,
    ) -> Result<(), SpmmError> {
        if self.source.is_none() && self.sign == Sign::Kept {
            return Ok(to.copy_from_slice(values)?);
        }
        let mut staged = match self.staged.take() {
            Some(staged) => staged,
            None => to.device().uninitialized(values.len())?,
        };
        let arranged = match staged.copy_from_slice(values) {
            Ok(()) => self.arrange(staged.as_slice(), to),
            Err(error) => Err(error.into()),
        };
        self.staged = Some(staged);
        arranged
    }
}

impl<E: SpmmElement> Spmm<E> {
    /// Replaces the values of A; its structure stays. Runs from now on use the new values, and give the same bits as
    /// those of a new plan. The options must have asked for it: [`SpmmOptions::updatable`].
    ///
    /// `values` has an element for each nonzero, in the order in which the plan got them: that of the matrix's
    /// `data()`, also if the plan is for the transpose or the matrix was stored by columns.
    ///
    /// The device puts them into the plan's order, which reads and writes each value once. The first call allocates
    /// room for the values on the device if that order is not the caller's; later calls allocate nothing.
    ///
    /// ```
    /// use sprs::CsMatI;
    /// use warprow::{Device, Spmm, SpmmOptions};
    ///
    /// # fn main() -> Result<(), warprow::Error> {
    /// // [ . 2 ]
    /// // [ 1 . ]
    /// let a = CsMatI::<f32, u32, u32>::new((2, 2), vec![0, 1, 2], vec![1, 0], vec![2.0, 1.0]);
    /// let x = ndarray::array![[1.0], [10.0]];
    /// let device = Device::open()?;
    /// let mut plan = Spmm::plan(&device, a.view(), SpmmOptions::new().updatable(true))?;
    /// assert_eq!(plan.multiply(x.view())?, ndarray::array![[20.0], [1.0]]);
    /// plan.set_values(&[3.0, 4.0])?;
    /// assert_eq!(plan.multiply(x.view())?, ndarray::array![[30.0], [4.0]]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SpmmError::NotUpdatable`]; another number of values than nonzeros; too little device memory; the driver's.
    pub fn set_values(&mut self, values: &[E]) -> Result<(), SpmmError> {
        let (order, to) = self.order_for(values.len())?;
        if size_of::<E>() == size_of::<E::Sum>() {
            return order.upload(&E::to_sums(values), to);
        }
        let mut widened = std::mem::take(&mut order.widened);
        widened.clear();
        widened.extend(values.iter().map(|&value| Operand::widen(value)));
        let uploaded = order.upload(&widened, to);
        order.widened = widened;
        uploaded
    }

    /// As [`set_values`](Self::set_values), for values of the type of sums: f32 with an X of f16 or bf16.
    ///
    /// # Errors
    ///
    /// Those of [`set_values`](Self::set_values).
    pub fn set_values_wide(&mut self, values: &[E::Sum]) -> Result<(), SpmmError> {
        let (order, to) = self.order_for(values.len())?;
        order.upload(values, to)
    }

    /// As [`set_values_wide`](Self::set_values_wide), for values that are on the device. It is one launch, allocates
    /// nothing, does not wait for the device, and can be [recorded](crate::Device::record).
    ///
    /// # Errors
    ///
    /// [`SpmmError::NotUpdatable`]; another number of values than nonzeros; values on another device; the driver's.
    pub fn set_values_device<'v>(
        &mut self,
        values: impl Into<DeviceSlice<'v, E::Sum>>,
    ) -> Result<(), SpmmError> {
        let values = values.into();
        check_device(&self.device, "the list of values", values)?;
        let (order, to) = self.order_for(values.len())?;
        order.arrange(values, to)
    }

    /// Where new values go, and their buffer.
    fn order_for(
        &mut self,
        len: usize,
    ) -> Result<(&mut ValueOrder<E>, &mut DeviceBuffer<E::Sum>), SpmmError> {
        self.device.refuse_during_progress("to set values")?;
        check_len("the list of values", len as u64, self.nnz() as u64)?;
        let order = self.value_order.as_mut().ok_or(SpmmError::NotUpdatable)?;
        Ok((order, self.a.own_values()))
    }
}
