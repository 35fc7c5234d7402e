//! The order of a matrix's rows in a plan: the caller's, one that the caller asks for, or one that pays.

use super::locality::{RowSample, distinct_share, shared_beside_first_column};
use super::row_keys::{by_first_column, by_frequent_column, clustered, longest_first};
use super::search::{Search, share_enough_for_clusters};
use super::statistics::Statistics;
use crate::csr::{DevicePattern, ReorderedPattern};
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
    match order {
        RowOrder::Given => Ok(None),
        RowOrder::FirstColumn => by_first_column(pattern).map(Some),
        RowOrder::FrequentColumn => by_frequent_column(pattern).map(Some),
        RowOrder::Clustered => clustered(pattern, &by_first_column(pattern)?).map(Some),
    }
}

/// The order that a kernel needs, if the caller asks for none.
pub fn default(kernel: SpmmKernel) -> Option<RowOrder> {
    (kernel == SpmmKernel::Reordered).then_some(RowOrder::FirstColumn)
}

/// The order of the rows of a plan's matrix. Clones share its memory.
#[derive(Clone, Debug)]
pub struct OrderedRows {
    order: RowOrder,
    /// The number of each row in the caller's order, if it is another.
    original: Option<Arc<DeviceBuffer<u32>>>,
    /// The device's time for the search; `None` if there was none, and on the emulator.
    time: Option<Duration>,
    /// The localities of 64 rows in the caller's order and in the others that were compared with it.
    compared: Vec<(RowOrder, f64)>,
}

impl OrderedRows {
    /// Puts the rows of a matrix into an order, and tells the search its locality.
    pub fn reorder(
        order: RowOrder,
        search: Option<&mut Search>,
        a: ReorderedPattern,
    ) -> Result<(ReorderedPattern, Self), SpmmError> {
        let timer = a.pattern.device().start_timer()?;
        let mut a = a;
        let mut ordered = Self {
            order,
            ..Self::given()
        };
        if let Some(original) = rows_in(order, &a.pattern)? {
            if let Some(search) = search.filter(|search| !search.statistics().are_assumed) {
                let given = search.statistics();
                let sample =
                    RowSample::measure(&a.pattern, &given.columns.counts, Some(&original))?;
                search.set_statistics(given.ordered(sample.locality));
            }
            a = a.permute_rows(&original)?;
            ordered.original = Some(Arc::new(original));
            ordered.time = timer.stop()?;
        }
        Ok((a, ordered))
    }

    /// Puts the rows of a matrix into the order of their first columns, or into clusters, if that pays by the cost
    /// model. If rows with nearly the same first columns share no others, it does not look for clusters; if they share
    /// many, it does not consider the order of their first columns. A plan that measures takes an order for any
    /// predicted gain, because it times the caller's order too.
    pub fn choose(
        search: &mut Search,
        a: ReorderedPattern,
        measures: bool,
    ) -> Result<(ReorderedPattern, Self), SpmmError> {
        let given = search.statistics();
        if !search.order_may_pay() {
            return Ok((a, Self::given()));
        }
        let timer = a.pattern.device().start_timer()?;
        let mut compared = vec![(RowOrder::Given, given.locality.middle)];
        let mut in_order = |order, rows: &DeviceBuffer<u32>| -> Result<Statistics, SpmmError> {
            let sample = RowSample::measure(&a.pattern, &given.columns.counts, Some(rows))?;
            compared.push((order, sample.locality.middle));
            Ok(given.ordered(sample.locality))
        };
        let mut rows = by_first_column(&a.pattern)?;
        let mut best = None;
        let shared = shared_beside_first_column(&a.pattern, &given.columns.counts, &rows)?;
        let mut looks_for_clusters = share_enough_for_clusters(shared);
        if !looks_for_clusters {
            let of_first = in_order(RowOrder::FirstColumn, &rows)?;
            looks_for_clusters = search.clusters_may_pay(&of_first, shared);
            best = Some((RowOrder::FirstColumn, of_first));
        }
        if looks_for_clusters {
            let clusters = clustered(&a.pattern, &rows)?;
            let of_clusters = in_order(RowOrder::Clustered, &clusters)?;
            let gain = |statistics| search.gain(statistics);
            if (best.as_ref()).is_none_or(|(_, of_first)| gain(&of_clusters) > gain(of_first)) {
                best = Some((RowOrder::Clustered, of_clusters));
                rows = clusters;
            }
        }
        let best = best.filter(|(_, statistics)| match measures {
            true => search.gains_by_order(statistics),
            false => search.prefers_order(statistics),
        });
        let mut a = a;
        let mut ordered = Self {
            compared,
            ..Self::given()
        };
        if let Some((order, statistics)) = best {
            search.set_statistics(statistics);
            a = a.permute_rows(&rows)?;
            ordered.order = order;
            ordered.original = Some(Arc::new(rows));
        }
        ordered.time = timer.stop()?;
        Ok((a, ordered))
    }

    /// Whether teams keep the order, because neighbours share more columns in it than in the rows sorted by length.
    /// It may wait for the device.
    pub fn keeps_for_teams(
        &self,
        search: &Option<Search>,
        a: &DevicePattern,
    ) -> Result<bool, SpmmError> {
        if self.original.is_some() {
            return Ok(true);
        }
        let Some(statistics) = search.as_ref().map(Search::statistics) else {
            return Ok(false);
        };
        if a.nonzeros() == 0 || statistics.are_assumed || statistics.any_rows_share() {
            return Ok(false);
        }
        let sorted = distinct_share(a, Some(&longest_first(a)?))?;
        Ok(statistics.distinct_share < MAX_SHARE_OF_KEPT_ORDER * sorted)
    }

    /// The caller's order.
    pub fn given() -> Self {
        Self {
            order: RowOrder::Given,
            original: None,
            time: None,
            compared: Vec::new(),
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
        self.original.as_deref()
    }
}

impl fmt::Display for OrderedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.original.is_none() && self.compared.is_empty() {
            return Ok(());
        }
        write!(f, ", the rows in the order {}", self.order.name())?;
        for (place, (order, locality)) in self.compared.iter().enumerate() {
            let text = match place {
                0 => "; of the distinct columns of rows at random, 64 rows have",
                _ => ",",
            };
            write!(f, "{text} {:.0} % in {}", 100.0 * locality, order.name())?;
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
    use crate::CsrMatrix;
    use crate::csr::DeviceCsr;
    use crate::device::{Device, DeviceProfile, EmulatorOptions};
    use crate::generate::{self, Communities};
    use crate::spmm::options::SpmmOptions;

    /// An H200 with an L2 cache of so many bytes, and a memory that is slow, so that an order of few rows pays.
    fn device(l2_bytes: u64) -> Device {
        let mut profile = DeviceProfile::h200();
        profile.hardware.l2_bytes = l2_bytes;
        profile.rates.memory_bytes_per_second /= 100;
        Device::emulator_of(&profile, EmulatorOptions::default())
    }

    /// What is chosen for 2000 rows of 20 nonzeros with 85 % of them in communities, for so many runs.
    fn chosen(shuffled: bool, l2_bytes: u64, runs: u32) -> OrderedRows {
        let communities = Communities {
            sizes: 40..=160,
            inside: 0.85,
            shuffled,
        };
        let a = generate::communities::<f32>(2000, 40_000, &communities, 1).unwrap();
        chosen_for(&a, l2_bytes, runs)
    }

    fn chosen_for(a: &CsrMatrix<f32>, l2_bytes: u64, runs: u32) -> OrderedRows {
        let device = device(l2_bytes);
        let a = DeviceCsr::upload(&device, a.view()).unwrap();
        let options = SpmmOptions::new().features(64).runs(runs);
        // Rows of `in_step` share columns in any order, so a search for one pays for `vector` only.
        let kernel = Some(SpmmKernel::Vector);
        let search = Search::new::<f32>(a.pattern(), kernel, options).unwrap();
        let pattern = ReorderedPattern::new(a.pattern());
        OrderedRows::choose(&mut search.unwrap(), pattern, false)
            .unwrap()
            .1
    }

    const SMALL_CACHE: u64 = 64 << 10;

    #[test]
    fn shuffled_communities_are_put_together_if_the_cache_is_too_small_for_x() {
        let ordered = chosen(true, SMALL_CACHE, 100);
        assert_eq!(ordered.order(), RowOrder::Clustered, "{ordered}");
        assert!(ordered.to_string().contains("% in clustered"), "{ordered}");
    }

    #[test]
    fn rows_that_are_together_stay_where_they_are() {
        let ordered = chosen(false, SMALL_CACHE, 100);
        assert_eq!(ordered.order(), RowOrder::Given, "{ordered}");
    }

    #[test]
    fn no_order_is_looked_for_that_so_few_runs_cannot_pay_back() {
        let ordered = chosen(true, SMALL_CACHE, 1);
        assert_eq!(ordered.order(), RowOrder::Given);
        assert_eq!(ordered.to_string(), "", "nothing was compared");
    }

    /// The rows of a matrix in an order.
    fn rows_of(a: &CsrMatrix<f32>, order: RowOrder) -> Vec<u32> {
        let a = DeviceCsr::upload(&device(SMALL_CACHE), a.view()).unwrap();
        rows_in(order, a.pattern())
            .unwrap()
            .unwrap()
            .download()
            .unwrap()
    }

    #[test]
    fn uniform_rows_that_share_their_first_columns_are_sorted_by_them_and_nobody_looks_for_clusters()
     {
        for cols in [10_000, 20_000] {
            let a = generate::uniform::<f32>(10_000, cols, 60_000, 1).unwrap();
            let ordered = chosen_for(&a, SMALL_CACHE, 10);
            assert_eq!(ordered.order(), RowOrder::FirstColumn, "{ordered}");
            let rows = ordered.original().unwrap().download().unwrap();
            assert_eq!(rows, rows_of(&a, RowOrder::FirstColumn));
            let text = ordered.to_string();
            assert!(!text.contains("clustered"), "{text}");
        }
    }

    #[test]
    fn long_uniform_rows_stay_where_they_are() {
        for cols in [10_000, 20_000] {
            let a = generate::uniform::<f32>(2000, cols, 80_000, 1).unwrap();
            let ordered = chosen_for(&a, SMALL_CACHE, 10);
            assert_eq!(ordered.order(), RowOrder::Given, "{ordered}");
            let text = ordered.to_string();
            assert!(text.contains("% in first_column"), "{text}");
            assert!(!text.contains("clustered"), "{text}");
        }
    }

    #[test]
    fn the_better_of_clusters_and_first_columns_is_taken_if_rows_share_a_little_beside_these() {
        for (inside, sizes, wanted) in [
            (0.7, 60..=300, RowOrder::FirstColumn),
            (0.9, 100..=400, RowOrder::Clustered),
        ] {
            let communities = Communities {
                sizes,
                inside,
                shuffled: true,
            };
            let a = generate::communities::<f32>(4000, 20_000, &communities, 1).unwrap();
            let ordered = chosen_for(&a, SMALL_CACHE, 100);
            let text = ordered.to_string();
            for compared in ["% in first_column", "% in clustered"] {
                assert!(text.contains(compared), "{text}");
            }
            assert_eq!(ordered.order(), wanted, "{text}");
            let rows = ordered.original().unwrap().download().unwrap();
            assert_eq!(rows, rows_of(&a, wanted), "{text}");
        }
    }

    #[test]
    fn rows_without_nonzeros_are_in_no_order_to_keep() {
        let device = device(SMALL_CACHE);
        for shape in [(0, 0), (0, 4), (4, 0), (9, 9)] {
            let a = DeviceCsr::upload(&device, sprs::CsMatI::<f32, u32, u32>::zero(shape).view());
            let a = a.unwrap();
            let search = Search::new::<f32>(a.pattern(), None, SpmmOptions::new()).unwrap();
            let keeps = OrderedRows::given().keeps_for_teams(&search, a.pattern());
            assert!(!keeps.unwrap(), "{shape:?}");
        }
    }

    #[test]
    fn nothing_is_looked_for_if_the_cache_holds_x() {
        let ordered = chosen(true, 64 << 20, 100);
        assert_eq!(ordered.order(), RowOrder::Given);
        assert_eq!(ordered.to_string(), "");
    }
}
