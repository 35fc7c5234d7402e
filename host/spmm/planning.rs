//! Planning a product: of a matrix of the host, or of one that is already on the device.

use super::building::OrderedMatrix;
use super::error::SpmmError;
use super::measuring::{Clock, DeviceClock, measure};
use super::options::{SpmmElement, SpmmOptions};
use super::plan::order::{self, OrderedRows};
use super::plan::requested_kernel;
use super::plan::search::Search;
use super::{PlanTimes, Spmm};
use crate::csr::{DeviceCsr, ReorderedPattern};
use crate::device::Device;
use sprs::CsMatViewI;
use std::borrow::Cow;
use std::time::Instant;

impl<E: SpmmElement> Spmm<E> {
    /// Uploads A and chooses how to multiply it. The device does the rest: it transposes A if it is stored by columns
    /// (CSC), puts rows and columns into the plan's order, and makes the kernel's items. 16-bit values are converted
    /// to f32, exactly, on the host.
    ///
    /// # Errors
    ///
    /// 2^32 rows or columns or more; lists that are no matrix; a requested kernel that cannot do what the options say
    /// with elements of this type; too little device memory; the driver's.
    pub fn plan(
        device: &Device,
        a: CsMatViewI<'_, E, u32, u32>,
        options: SpmmOptions,
    ) -> Result<Self, SpmmError> {
        Self::upload_and_plan(device, a, options, E::to_sums)
    }

    /// As [`plan`](Self::plan), for an A whose values are of the type of sums: f32 with an X of f16 or bf16.
    ///
    /// # Errors
    ///
    /// Those of [`plan`](Self::plan).
    pub fn plan_wide(
        device: &Device,
        a: CsMatViewI<'_, E::Sum, u32, u32>,
        options: SpmmOptions,
    ) -> Result<Self, SpmmError> {
        Self::upload_and_plan(device, a, options, |values| values.into())
    }

    /// As [`plan`](Self::plan), for an A that is already on its device, such as a product of SpGEMM. Its values are of
    /// the type of sums: f32 with an X of f16 or bf16.
    ///
    /// The plan shares the memory of A as far as it keeps A as it is, and copies what it changes. A stays as it is and
    /// can be planned again, for its transpose say. If its values are overwritten, the plan keeps the old ones: see
    /// [`set_values`](Self::set_values).
    ///
    /// ```
    /// use warprow::{Device, DeviceCsr, Spmm, SpmmOptions, SpgemmOptions, generate, spgemm};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::open()?;
    /// let a = generate::uniform::<f32>(100, 100, 500, 1)?;
    /// let a = DeviceCsr::upload(&device, a.view())?;
    /// let square = spgemm::multiply(&a, &a, SpgemmOptions::default())?.c;
    /// let plan = Spmm::<f32>::plan_device(&square, SpmmOptions::default())?;
    /// let x = ndarray::Array2::ones((100, 8));
    /// assert_eq!(plan.multiply(x.view())?.dim(), (100, 8));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A requested kernel that cannot do what the options say with elements of this type; too little device memory; the
    /// driver's.
    pub fn plan_device(a: &DeviceCsr<E::Sum>, options: SpmmOptions) -> Result<Self, SpmmError> {
        Self::plan_stored(
            a,
            options.transpose,
            options,
            PlanTimes::default(),
            Instant::now(),
        )
    }

    fn upload_and_plan<V: Clone>(
        device: &Device,
        a: CsMatViewI<'_, V, u32, u32>,
        options: SpmmOptions,
        to_sums: fn(&[V]) -> Cow<'_, [E::Sum]>,
    ) -> Result<Self, SpmmError> {
        requested_kernel::<E>(options)?;
        let mut times = PlanTimes::default();
        let started = Instant::now();
        let stored = DeviceCsr::upload_outer(device, &a, &to_sums(a.data()))?;
        device.synchronize_stream()?;
        times.upload = started.elapsed();
        // A matrix that is stored by columns is its transpose by rows.
        let transposes = a.is_csc() != options.transpose;
        Self::plan_stored(&stored, transposes, options, times, started)
    }

    /// Plans for a matrix as it is stored, or for its transpose.
    fn plan_stored(
        stored: &DeviceCsr<E::Sum>,
        transposes: bool,
        options: SpmmOptions,
        times: PlanTimes,
        started: Instant,
    ) -> Result<Self, SpmmError> {
        let clock = DeviceClock::default();
        let mut plan = Self::plan_with_clock(stored, transposes, options, clock)?;
        stored.device().synchronize_stream()?;
        plan.times.upload = times.upload;
        plan.times.preprocessing = started.elapsed().saturating_sub(times.upload);
        Ok(plan)
    }

    /// As [`plan_stored`](Self::plan_stored), with a clock for the candidates if the options want them measured.
    pub(super) fn plan_with_clock(
        stored: &DeviceCsr<E::Sum>,
        transposes: bool,
        options: SpmmOptions,
        clock: impl Clock<E>,
    ) -> Result<Self, SpmmError> {
        let kernel = requested_kernel::<E>(options)?;
        let mut a = ReorderedPattern::new(stored.pattern());
        if transposes {
            a = a.transpose()?;
        }
        let mut times = PlanTimes::default();
        let begun = Instant::now();
        let mut search = Search::new::<E>(&a.pattern, kernel, options)?;
        if search.as_ref().is_some_and(Search::has_counted) {
            times.statistics = Some(begun.elapsed());
        }
        // From here on, the options say whether the plan measures.
        let measures = options.measure.unwrap_or_else(|| {
            let is_timed = matches!(options.features, Some(1..)) && clock.has_time(stored.device());
            let pays = || search.as_ref().is_some_and(Search::measuring_pays);
            options.runs.is_some() && is_timed && pays()
        });
        let options = options.measure(measures);
        let order = options
            .tuning
            .order
            .or_else(|| kernel.and_then(order::default));
        // A plan that measures compares the caller's order with the one that it chooses.
        let given =
            (measures && order.is_none()).then(|| OrderedMatrix::given(a.clone(), search.clone()));
        let (a, rows_in_order) = match (order, &mut search) {
            (None, Some(search)) => OrderedRows::choose(search, a, measures)?,
            (order, search) => OrderedRows::reorder(order.unwrap_or_default(), search.as_mut(), a)?,
        };
        times.ordering = rows_in_order.time();
        let is_given = rows_in_order.original().is_none();
        let chosen = OrderedMatrix {
            a,
            rows_in_order,
            search,
        };
        let mut plan = if measures {
            let begun = Instant::now();
            let (first, other) = match given.filter(|_| !is_given) {
                Some(given) => predicted_first(given, chosen),
                None => (chosen, None),
            };
            let plan = measure(stored, first, other, kernel, options, clock)?;
            times.measuring = Some(begun.elapsed());
            plan
        } else {
            Self::build(stored, chosen, kernel, options)?
        };
        plan.times = times;
        Ok(plan)
    }
}

/// A matrix in the caller's order and in another: first the order of a plan that cannot measure.
fn predicted_first(
    given: OrderedMatrix,
    other: OrderedMatrix,
) -> (OrderedMatrix, Option<OrderedMatrix>) {
    let prefers_other = match (&given.search, &other.search) {
        (Some(search), Some(ordered)) => search.prefers_order(ordered.statistics()),
        _ => true,
    };
    match prefers_other {
        true => (other, Some(given)),
        false => (given, Some(other)),
    }
}
