//! The items of the kernel [`row_bins`], made on the device: rows in bins of similar length, and parts of long rows.

use super::bin_sizes::{GroupSizes, KernelWarps, RowLengths, log_longest, resident_warps};
use super::tasks::{LaunchArguments, RunArguments};
use crate::csr::{DevicePattern, number};
use crate::device::{DeviceBuffer, Scratch, ZeroCounters, optional_pointer};
use crate::operand::count;
use crate::primitives::scan::exclusive_scan;
use crate::primitives::sort::sort_pairs;
use crate::spmm::error::SpmmError;
use crate::spmm::options::SpmmElement;
use cuda_std::memory::{Global, GlobalMut};
use std::fmt;
use std::ops::RangeInclusive;
use warprow_kernels::spmm;
use warprow_kernels::spmm::plan::row_bins as plan;
use warprow_kernels::spmm::product::row_bins::{self, BLOCK};
use warprow_kernels::spmm::{Items, LargeItems, RowMarks};

/// The longest row that is not cut, if the caller asks for one.
const REQUESTED: RangeInclusive<u32> = 1..=1 << 30;

/// How a run takes rows in bins.
#[derive(Clone, Copy, Debug)]
pub struct BinnedRun {
    /// Lanes of a nonzero.
    pub lanes_of_nonzero: u32,
    /// Whether X is in shared memory.
    pub has_shared_x: bool,
}

/// The bins for a number of lanes of a nonzero.
#[derive(Clone, Copy, Debug)]
struct Bins {
    sizes: GroupSizes,
    bins: spmm::RowBins,
    blocks: u32,
}

impl Bins {
    /// Those of so many parts, and of classes of rows that are not cut, the longest first: the power of two above the
    /// lengths of a class, and its rows.
    fn new(
        lanes_of_nonzero: u32,
        warps: KernelWarps,
        (parts, longest): (u32, u32),
        classes: &[(u32, u32)],
    ) -> Self {
        let rows = classes
            .iter()
            .map(|&(above, rows)| (above, f64::from(rows)));
        let of_parts = (parts.into(), longest.into());
        let sizes = GroupSizes::new(lanes_of_nonzero, warps, of_parts, rows);
        let ends = [32, 16, 8, 4, 2, 1].map(|lanes| {
            let has_enough = |(above, _): &&(u32, u32)| sizes.of_rows_below(*above) >= lanes;
            let in_bins = classes.iter().take_while(has_enough);
            parts + in_bins.map(|(_, rows)| rows).sum::<u32>()
        });
        let (bins, blocks) = spmm::RowBins::new(parts, ends);
        Self {
            sizes,
            bins,
            blocks,
        }
    }
}

/// The rows of a matrix in bins.
#[derive(Debug)]
pub struct RowBins<E: SpmmElement> {
    log_longest: u32,
    cut_rows: u32,
    parts: u32,
    /// The number of rows that are not cut and of parts.
    count: u32,
    /// For 1, 2, 4 lanes of a nonzero and so on up to 32; where X is in global memory, and in shared memory.
    bins: Box<[[Bins; 2]; 6]>,
    items: DeviceBuffer<u32>,
    /// For the first part of each row, how many of its parts have been stored: 0 between runs.
    arrivals: ZeroCounters,
    /// A row of partial sums for each part; for the widest X so far.
    partial_sums: Scratch<E::Sum>,
}

impl<E: SpmmElement> RowBins<E> {
    /// Sorts the rows of a matrix into bins. `requested` is the length of the longest row that is not cut, rounded down
    /// to a power of two; by default it is chosen for the lanes that a nonzero is planned to have. `original_row` has
    /// the row of Y for each row, if it is another. It waits for the device.
    pub fn new(
        a: &DevicePattern,
        original_row: Option<&DeviceBuffer<u32>>,
        requested: Option<u32>,
        lanes_of_nonzero: u32,
    ) -> Result<Self, SpmmError> {
        let device = a.device();
        let multiprocessors = device.properties().multiprocessors;
        let resident_warps = resident_warps(multiprocessors);
        let log_longest = match requested {
            Some(longest) => longest.clamp(*REQUESTED.start(), *REQUESTED.end()).ilog2(),
            None => {
                let of = RowLengths {
                    rows: a.rows,
                    nonzeros: a.nonzeros(),
                    longest: a.longest_row,
                };
                log_longest(of, resident_warps, lanes_of_nonzero)
            }
        };
        let empty_class = plan::empty_class(log_longest);
        let (row_ptr, rows) = (a.row_ptr.read_only(), a.rows);
        let mut class = device.uninitialized::<u32>(rows as usize)?;
        let mut order = number(device, rows)?;
        if rows > 0 {
            let arguments = (rows, row_ptr, log_longest, class.mutable());
            // SAFETY: the matrix has `rows + 1` row pointers, `class` a number for each row.
            unsafe { device.launch(&plan::classes(), plan::launch(rows), arguments)? };
        }
        let bits = u32::BITS - empty_class.leading_zeros();
        sort_pairs(device, &mut class, &mut order, bits)?;
        let mut before = device.uninitialized::<u32>(rows as usize + 1)?;
        let mut first = device.uninitialized::<u32>(empty_class as usize + 2)?;
        let arguments = (
            rows,
            row_ptr,
            log_longest,
            order.read_only(),
            class.read_only(),
            before.mutable(),
            first.mutable(),
        );
        // SAFETY: the rows in the order of their classes; a number for each row and the end, and for each class and the
        // end.
        unsafe {
            device.launch(
                &plan::count_items(),
                plan::launch_rows_and_end(rows),
                arguments,
            )?;
        }
        let items = exclusive_scan(device, &mut before)?;
        // The kernel adds the threads of a block to the number of an item.
        let last = items + u64::from(BLOCK);
        let items = count("the number of rows and of parts of rows", last)? - BLOCK;
        let first = first.download()?;
        let cut_rows = first[1];
        // All other rows have an item each.
        let parts = items - (rows - cut_rows);
        // Class 0 has the rows that are cut.
        let above = (1..).map(|class| plan::above(class, log_longest));
        let rows_of_class = first[1..].windows(2).map(|first| first[1] - first[0]);
        let classes: Vec<(u32, u32)> = above.zip(rows_of_class).collect();
        let warps = [
            KernelWarps::new(multiprocessors),
            KernelWarps::with_shared_x(multiprocessors),
        ];
        let of_parts = (parts, 1 << log_longest);
        let bins = [1, 2, 4, 8, 16, 32]
            .map(|lanes| warps.map(|warps| Bins::new(lanes, warps, of_parts, &classes)));
        let numbers = items as usize * row_bins::NUMBERS_OF_ITEM as usize;
        let mut list = device.uninitialized::<u32>(numbers)?;
        if items > 0 {
            let arguments = (
                rows,
                row_ptr,
                log_longest,
                order.read_only(),
                optional_pointer(original_row),
                before.read_only(),
                items,
                list.mutable(),
            );
            // SAFETY: the items before each row, and room for the numbers of all.
            unsafe { device.launch(&plan::list_items(), plan::launch(items), arguments)? };
        }
        Ok(Self {
            log_longest,
            cut_rows,
            parts,
            count: items,
            bins: Box::new(bins),
            items: list,
            arrivals: ZeroCounters::new(device, parts as usize),
            partial_sums: Scratch::new(device),
        })
    }

    /// The bins for a run.
    fn bins(&self, run: BinnedRun) -> &Bins {
        let log_lanes = run.lanes_of_nonzero.clamp(1, 32).ilog2();
        &self.bins[log_lanes as usize][usize::from(run.has_shared_x)]
    }

    /// The number of blocks of the bins.
    pub fn blocks(&self, run: BinnedRun) -> u32 {
        self.bins(run).blocks
    }

    /// The maximum number of roundings between a product and the sum of its row of `terms` nonzeros. Lanes that have the
    /// same features add up the nonzeros of a row one after the other, and a tree joins them; the same again for the
    /// parts of a row.
    pub fn summation_depth(&self, terms: usize, run: BinnedRun) -> usize {
        const TREE: usize = 5;
        let together = (32 / run.lanes_of_nonzero.clamp(1, 32)) as usize;
        let longest = 1 << self.log_longest;
        let sizes = self.bins(run).sizes;
        let of_lane = sizes.nonzeros_of_lane(terms.min(longest));
        let parts = terms.div_ceil(longest);
        1 + of_lane + TREE + parts.div_ceil(together) + TREE
    }

    /// Launches the kernel. It joins the parts of long rows itself.
    pub fn run(
        &self,
        run: &RunArguments<E>,
        launch: impl Fn(LaunchArguments<E>) -> Result<(), SpmmError>,
    ) -> Result<(), SpmmError> {
        let &Bins { bins, blocks, .. } = self.bins(run.binned);
        let with = |partial, arrivals| {
            launch(LaunchArguments {
                row_ptr: run.row_ptr,
                items: Items {
                    count: blocks,
                    task_size: 1 << self.log_longest,
                    large: LargeItems::NONE,
                    row: self.items.read_only(),
                    start: Global::from_address(0),
                    partial,
                    arrivals,
                    original_row: run.original_row,
                    marks: RowMarks::NONE,
                    bins,
                },
                scaling: run.scaling,
            })
        };
        if self.parts == 0 {
            return with(GlobalMut::from_address(0), GlobalMut::from_address(0));
        }
        let parts = u64::from(self.parts);
        let sums = &self.partial_sums;
        sums.with(parts, run.y.cols.into(), |partial| {
            self.arrivals.with(|arrivals| with(partial, arrivals))
        })
    }
}

impl<E: SpmmElement> fmt::Display for RowBins<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, longest) = (self.count, 1_u64 << self.log_longest);
        write!(f, "{items} rows and parts of rows")?;
        match self.cut_rows {
            0 => Ok(()),
            cut => write!(
                f,
                ", {cut} rows of more than {longest} nonzeros in {} parts",
                self.parts
            ),
        }
    }
}
