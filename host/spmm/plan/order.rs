//! The order of a matrix's rows in a plan.

use super::planner::Planner;
use super::reuse::distinct_share;
use super::row_keys::{first_columns, frequent_columns, labels, longest_first, sorted};
use crate::csr::{DeviceCsr, DevicePattern, gather, number};
use crate::device::DeviceBuffer;
use crate::spmm::error::SpmmError;
use crate::spmm::options::RowOrder;
use cuda_std::element::Element;
use std::fmt;
use std::time::Duration;
use warprow_kernels::spmm::{Ending, SpmmKernel};

/// Teams keep an order in which the different columns of neighbouring rows are fewer than that part of what they would be in the order
/// of the rows' lengths.
const KEEPING: f64 = 0.9;

/// The rows of `a` in an order, by their numbers in the given one; `None` if it is that.
fn rows_in<T: Element>(
    order: RowOrder,
    a: &DeviceCsr<T>,
) -> Result<Option<DeviceBuffer<u32>>, SpmmError> {
    let pattern = a.pattern();
    if pattern.rows == 0 {
        return Ok(None);
    }
    let given = || number(a.device(), pattern.rows);
    match order {
        RowOrder::Given => Ok(None),
        RowOrder::FirstColumn => sorted(given()?, first_columns(pattern)?, pattern.cols).map(Some),
        RowOrder::FrequentColumn => {
            sorted(given()?, frequent_columns(pattern)?, pattern.cols).map(Some)
        }
        RowOrder::Clustered => {
            let by_first_column = sorted(given()?, first_columns(pattern)?, pattern.cols)?;
            let label = gather(&by_first_column, &labels(a)?)?;
            sorted(by_first_column, label, pattern.cols).map(Some)
        }
    }
}

/// The order for a kernel that is for one, if none is asked for.
pub fn default(kernel: SpmmKernel) -> Option<RowOrder> {
    (kernel == SpmmKernel::Reordered).then_some(RowOrder::FirstColumn)
}

/// The order of the rows of a plan's matrix.
#[derive(Debug)]
pub struct OrderedRows {
    order: RowOrder,
    /// The number of each row in the given order, if it is another.
    original: Option<DeviceBuffer<u32>>,
    /// The device's time to make it, or to find that it is not worth it; `None` where none was looked for, and on the emulator.
    time: Option<Duration>,
    /// The different columns of neighbouring rows, as a part of their nonzeros, in the given order and as clusters, where the
    /// planner compared them.
    distinct: Option<[f64; 2]>,
}

impl OrderedRows {
    /// The matrix with its rows in that order, of which the planner takes note.
    pub fn put<T: Element>(
        order: RowOrder,
        planner: Option<&mut Planner>,
        a: DeviceCsr<T>,
    ) -> Result<(DeviceCsr<T>, Self), SpmmError> {
        let timer = a.device().start_timer()?;
        let mut a = a;
        let mut ordered = Self {
            order,
            ..Self::given()
        };
        if let Some(original) = rows_in(order, &a)? {
            a = a.permute_rows(&original)?;
            ordered.original = Some(original);
            ordered.time = timer.stop()?;
        }
        if let Some(planner) = planner {
            planner.measure_locality(a.pattern())?;
        }
        Ok((a, ordered))
    }

    /// The matrix with its rows in clusters, if the planner finds that worth it.
    pub fn choose<T: Element>(
        planner: &mut Planner,
        a: DeviceCsr<T>,
    ) -> Result<(DeviceCsr<T>, Self), SpmmError> {
        planner.measure_locality(a.pattern())?;
        if !planner.hopes_for_order() {
            return Ok((a, Self::given()));
        }
        let timer = a.device().start_timer()?;
        let mut a = a;
        let mut ordered = Self::given();
        if let Some(original) = rows_in(RowOrder::Clustered, &a)? {
            let distinct = distinct_shares(&a, &original)?;
            ordered.distinct = Some(distinct);
            let local = planner.locality_in(a.pattern(), &original)?;
            if planner.wants_clusters(distinct, local) {
                planner.take_order(local);
                a = a.permute_rows(&original)?;
                ordered.order = RowOrder::Clustered;
                ordered.original = Some(original);
            }
        }
        ordered.time = timer.stop()?;
        Ok((a, ordered))
    }

    /// Whether teams are to keep the order, as neighbours share more columns in it than they would sorted by length. It may wait for the
    /// device.
    pub fn suits_teams(
        &self,
        planner: &Option<Planner>,
        a: &DevicePattern,
    ) -> Result<bool, SpmmError> {
        if self.original.is_some() {
            return Ok(true);
        }
        if a.nonzeros() == 0 || planner.as_ref().is_none_or(Planner::any_rows_share) {
            return Ok(false);
        }
        let given = match self.distinct {
            Some([given, _]) => given,
            None => distinct_share(a, None)?,
        };
        Ok(given < KEEPING * distinct_share(a, Some(&longest_first(a)?))?)
    }

    fn given() -> Self {
        Self {
            order: RowOrder::Given,
            original: None,
            time: None,
            distinct: None,
        }
    }

    pub fn order(&self) -> RowOrder {
        self.order
    }

    /// How the kernel ends its rows, if it does nothing to them or scales them.
    pub fn ending(&self, scales: bool) -> Ending {
        match self.original {
            _ if scales => Ending::Scaled,
            Some(_) => Ending::AnyOrder,
            None => Ending::Plain,
        }
    }

    /// The device's time for it, where one was looked for.
    pub fn time(&self) -> Option<Duration> {
        self.time
    }

    /// The number of each row in the given order, if it is another.
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
        if let Some([given, clustered]) = self.distinct {
            let (given, clustered) = (100.0 * given, 100.0 * clustered);
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

/// The different columns of neighbouring rows, as a part of their nonzeros, in the given order and in another.
fn distinct_shares<T: Element>(
    a: &DeviceCsr<T>,
    order: &DeviceBuffer<u32>,
) -> Result<[f64; 2], SpmmError> {
    Ok([
        distinct_share(a.pattern(), None)?,
        distinct_share(a.pattern(), Some(order))?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut planner = Planner::with_cache(a.pattern(), lines * LINE_BYTES).unwrap();
        OrderedRows::choose(&mut planner, a).unwrap().1
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
            let planner = Planner::with_cache(a.pattern(), LINE_BYTES).unwrap();
            let keeps = OrderedRows::given().suits_teams(&Some(planner), a.pattern());
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
