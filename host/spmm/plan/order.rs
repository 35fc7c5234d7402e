//! The order of a matrix's rows in a plan: the caller's, one that the caller asks for, or clusters if they pay.

use super::cost_model::CostModel;
use super::locality::{DistinctShares, distinct_share};
use super::row_keys::{first_columns, frequent_columns, labels, longest_first, sorted};
use crate::csr::{DevicePattern, ReorderedPattern, gather, number};
use crate::device::DeviceBuffer;
use crate::spmm::error::SpmmError;
use crate::spmm::options::RowOrder;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use warprow_kernels::spmm::{EpilogueKind, SpmmKernel};

/// Teams keep the order of the rows if its [`distinct_share`] is below this multiple of that of the rows sorted by
/// length.
const MAX_SHARE_OF_KEPT_ORDER: f64 = 0.9;

/// The rows of a matrix in an order, by their numbers in the caller's; `None` if it is the caller's.
pub fn rows_in(
    order: RowOrder,
    pattern: &Arc<DevicePattern>,
) -> Result<Option<DeviceBuffer<u32>>, SpmmError> {
    if pattern.rows == 0 {
        return Ok(None);
    }
    let given = || number(pattern.device(), pattern.rows);
    match order {
        RowOrder::Given => Ok(None),
        RowOrder::FirstColumn => sorted(given()?, first_columns(pattern)?, pattern.cols).map(Some),
        RowOrder::FrequentColumn => {
            sorted(given()?, frequent_columns(pattern)?, pattern.cols).map(Some)
        }
        RowOrder::Clustered => {
            let by_first_column = sorted(given()?, first_columns(pattern)?, pattern.cols)?;
            let label = gather(&by_first_column, &labels(pattern)?)?;
            sorted(by_first_column, label, pattern.cols).map(Some)
        }
    }
}

/// The order that a kernel needs, if the caller asks for none.
pub fn default(kernel: SpmmKernel) -> Option<RowOrder> {
    (kernel == SpmmKernel::Reordered).then_some(RowOrder::FirstColumn)
}

/// The order of the rows of a plan's matrix.
#[derive(Debug)]
pub struct OrderedRows {
    order: RowOrder,
    /// The number of each row in the caller's order, if it is another.
    original: Option<DeviceBuffer<u32>>,
    /// The device's time for the search; `None` if there was none, and on the emulator.
    time: Option<Duration>,
    /// In the caller's order and in clusters, if the cost model compared them.
    distinct: Option<DistinctShares>,
}

impl OrderedRows {
    /// Puts the rows of a matrix into an order, and has the cost model measure its locality.
    pub fn reorder(
        order: RowOrder,
        model: Option<&mut CostModel>,
        a: ReorderedPattern,
    ) -> Result<(ReorderedPattern, Self), SpmmError> {
        let timer = a.pattern.device().start_timer()?;
        let mut a = a;
        let mut ordered = Self {
            order,
            ..Self::given()
        };
        if let Some(original) = rows_in(order, &a.pattern)? {
            a = a.permute_rows(&original)?;
            ordered.original = Some(original);
            ordered.time = timer.stop()?;
        }
        if let Some(model) = model {
            model.measure_locality(&a.pattern)?;
        }
        Ok((a, ordered))
    }

    /// Puts the rows of a matrix into clusters if that pays by the cost model.
    pub fn choose(
        model: &mut CostModel,
        a: ReorderedPattern,
    ) -> Result<(ReorderedPattern, Self), SpmmError> {
        model.measure_locality(&a.pattern)?;
        if !model.order_may_pay() {
            return Ok((a, Self::given()));
        }
        let timer = a.pattern.device().start_timer()?;
        let mut a = a;
        let mut ordered = Self::given();
        if let Some(original) = rows_in(RowOrder::Clustered, &a.pattern)? {
            let distinct = DistinctShares {
                given: distinct_share(&a.pattern, None)?,
                ordered: distinct_share(&a.pattern, Some(&original))?,
            };
            ordered.distinct = Some(distinct);
            let locality = model.locality_in(&a.pattern, &original)?;
            if model.order_pays(distinct, locality) {
                model.set_locality(locality);
                a = a.permute_rows(&original)?;
                ordered.order = RowOrder::Clustered;
                ordered.original = Some(original);
            }
        }
        ordered.time = timer.stop()?;
        Ok((a, ordered))
    }

    /// Whether teams keep the order, because neighbours share more columns in it than in the rows sorted by length.
    /// It may wait for the device.
    pub fn keeps_for_teams(
        &self,
        model: &Option<CostModel>,
        a: &DevicePattern,
    ) -> Result<bool, SpmmError> {
        if self.original.is_some() {
            return Ok(true);
        }
        if a.nonzeros() == 0 || model.as_ref().is_none_or(CostModel::any_rows_share) {
            return Ok(false);
        }
        let given = match self.distinct {
            Some(shares) => shares.given,
            None => distinct_share(a, None)?,
        };
        Ok(given < MAX_SHARE_OF_KEPT_ORDER * distinct_share(a, Some(&longest_first(a)?))?)
    }

    fn given() -> Self {
        Self {
            order: RowOrder::Given,
            original: None,
            time: None,
            distinct: None,
        }
    }

    /// The order.
    pub fn order(&self) -> RowOrder {
        self.order
    }

    /// How a kernel ends rows that it scales, or stores as they are.
    pub fn epilogue_kind(&self, scales: bool) -> EpilogueKind {
        match self.original {
            _ if scales => EpilogueKind::Scaled,
            Some(_) => EpilogueKind::AnyOrder,
            None => EpilogueKind::Plain,
        }
    }

    /// The device's time for the search, if there was one.
    pub fn time(&self) -> Option<Duration> {
        self.time
    }

    /// The number of each row in the caller's order, if it is another.
    pub fn original(&self) -> Option<&DeviceBuffer<u32>> {
        self.original.as_ref()
    }
}

impl fmt::Display for OrderedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.original.is_none() && self.distinct.is_none() {
            return Ok(());
        }
        write!(f, ", the rows in the order {}", self.order.name())?;
        if let Some(DistinctShares { given, ordered }) = self.distinct {
            let (given, clustered) = (100.0 * given, 100.0 * ordered);
            write!(
                f,
                ", as the columns of 64 rows are {given:.0} % different in the given one, {clustered:.0} % in clusters"
            )?;
        }
        match self.time {
            Some(time) => write!(f, " ({:.2} ms)", time.as_secs_f64() * 1e3),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::DeviceCsr;
    use crate::device::{Device, EmulatorOptions};
    use crate::generate::{self, Communities};

    /// What is chosen for 2000 rows of 20 nonzeros with 85 % of them in communities, and an L2 cache of so many lines.
    fn chosen(shuffled: bool, lines: u64) -> OrderedRows {
        let communities = Communities {
            sizes: 40..=160,
            inside: 0.85,
            shuffled,
        };
        let a = generate::communities::<f32>(2000, 40_000, &communities, 1).unwrap();
        let device = Device::emulator(EmulatorOptions::default());
        let a = DeviceCsr::upload(&device, a.view()).unwrap();
        let mut model = CostModel::for_cache(a.pattern(), lines * LINE_BYTES).unwrap();
        OrderedRows::choose(&mut model, ReorderedPattern::new(a.pattern()))
            .unwrap()
            .1
    }

    const LINE_BYTES: u64 = 128;

    #[test]
    fn shuffled_communities_are_put_together_if_the_cache_is_too_small_for_x() {
        let ordered = chosen(true, 300);
        assert_eq!(ordered.order(), RowOrder::Clustered, "{ordered}");
        assert!(ordered.to_string().contains("in clusters"), "{ordered}");
    }

    #[test]
    fn rows_that_are_together_stay_where_they_are() {
        let ordered = chosen(false, 300);
        assert_eq!(ordered.order(), RowOrder::Given, "{ordered}");
        assert!(ordered.to_string().contains("in clusters"), "{ordered}");
    }

    #[test]
    fn rows_without_nonzeros_are_in_no_order_to_keep() {
        let device = Device::emulator(EmulatorOptions::default());
        for shape in [(0, 0), (0, 4), (4, 0), (9, 9)] {
            let a = DeviceCsr::upload(&device, sprs::CsMatI::<f32, u32, u32>::zero(shape).view());
            let a = a.unwrap();
            let model = CostModel::for_cache(a.pattern(), LINE_BYTES).unwrap();
            let keeps = OrderedRows::given().keeps_for_teams(&Some(model), a.pattern());
            assert!(!keeps.unwrap(), "{shape:?}");
        }
    }

    #[test]
    fn nothing_is_looked_for_if_the_cache_holds_x() {
        let ordered = chosen(true, 30_000);
        assert_eq!(ordered.order(), RowOrder::Given);
        assert_eq!(ordered.to_string(), "");
    }
}
