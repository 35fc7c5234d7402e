//! The tasks of a matrix, made on the device: see [`tasks`].

use super::SpmmElement;
use super::items::{ItemSizes, Launch, Product, grow};
use super::joining::{Joining, Ways};
use super::task_size::{TaskSizes, slots};
use crate::csr::DevicePattern;
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use cuda_std::memory::{Global, GlobalMut};
use std::fmt;
use std::sync::Mutex;
use warprow_kernels::spmm::product::tasks;
use warprow_kernels::spmm::product::tasks::Cuts;
use warprow_kernels::spmm::product::vector;
use warprow_kernels::spmm::{Epilogue, Items, Large};

/// Groups of tasks for a row that is cut between them, at most, where many rows are cut. Skewed graphs (R-MAT .57) have one for two to four groups,
/// others (.35) one for 26 or almost none. Where many are cut, several tasks are one item, and such rows have fewer parts; others took up to 1.08
/// times as long so.
const LEAST_CUT: u64 = 16;

/// Where many rows are cut, those are that have a part of a task's size, this one; else only those that have more than a task. Skewed graphs took
/// 0.95 to 0.99 times as long so at 32 features and 0.97 to 1.01 at 128, with a half 0.96 to 0.99 and as long; others, of which many rows would then be
/// cut that are not, up to 1.1 times.
const FINER_CUTS: u32 = 4;

/// The tasks of a matrix or of a block of its columns.
#[derive(Debug)]
pub(super) struct Tasks<E: SpmmElement> {
    starts: Starts,
    /// How tasks can be joined.
    ways: Ways,
    /// The rows that are cut between groups of items: for [each size of a group](vector::GROUPS), and for each of the ways.
    cut_rows: Vec<CutRows>,
    /// Two rows of sums for each group, if a row is cut: made for the widest X so far.
    partial: Mutex<DeviceBuffer<E::Sum>>,
}

/// Where tasks start: the row and the nonzero of each, and the end of the matrix.
#[derive(Debug)]
struct Starts {
    count: u32,
    /// Steps of a task.
    size: u32,
    row: DeviceBuffer<u32>,
    start: DeviceBuffer<u32>,
}

/// How many rows are cut into few parts and into many, and the lists of them.
#[derive(Debug)]
struct CutRows {
    /// Items of a group, and which of them have several tasks.
    group: u32,
    large: Large,
    few_count: u32,
    many_count: u32,
    few: DeviceBuffer<u32>,
    many: DeviceBuffer<u32>,
}

impl<E: SpmmElement> Tasks<E> {
    /// The tasks of each block of columns of a matrix, which has `rows` row pointers for each, and one at the end.
    pub(super) fn of_blocks(a: &DevicePattern, sizes: ItemSizes) -> Result<Vec<Self>, Error> {
        let blocks = (a.row_ptr.len() - 1)
            .checked_div(a.rows as usize)
            .unwrap_or(1);
        let mut starts = vec![0, a.nonzeros()];
        for block in 1..blocks {
            let mut start = [0];
            a.row_ptr
                .copy_part_to_slice(block * a.rows as usize, &mut start)?;
            starts.insert(block, start[0]);
        }
        let task_sizes = TaskSizes::of(a, sizes);
        starts
            .windows(2)
            .enumerate()
            .map(|(block, ends)| {
                let row_ptr = a.row_ptr.read_only().offset(block * a.rows as usize);
                let nonzeros = ends[1] - ends[0];
                // The planner limits tasks of no other matrices.
                let near_share = sizes.most_of_task.is_some();
                Self::make(
                    a.device(),
                    a.rows,
                    nonzeros,
                    row_ptr,
                    task_sizes,
                    near_share,
                )
            })
            .collect()
    }

    fn make(
        device: &Device,
        rows: u32,
        nonzeros: u32,
        row_ptr: Global<u32>,
        sizes: TaskSizes,
        near_share: bool,
    ) -> Result<Self, Error> {
        let make = |size, longest| Starts::make(device, rows, nonzeros, row_ptr, size, longest);
        let find = |starts: &Starts, kinds: &[(u32, Large)]| {
            CutRows::find(device, rows, row_ptr, starts, kinds)
        };
        let [eight, four] = vector::GROUPS;
        let of_eight = (eight, Large::NONE);
        let mut starts = make(sizes.any, sizes.any)?;
        let mut cut_rows = find(&starts, &[of_eight])?;
        let (cut, groups) = (u64::from(cut_rows[0].count()), starts.count / eight);
        let many_are_cut = cut > 0 && cut * LEAST_CUT >= groups.into();
        let mut kinds = Vec::new();
        if many_are_cut {
            let size = sizes.if_many_are_cut;
            starts = make(size, size / FINER_CUTS)?;
            cut_rows.clear();
            kinds.push(of_eight);
        }
        let ways = Ways::of(starts.count, many_are_cut, near_share);
        kinds.push((four, Large::NONE));
        kinds.extend(ways.all().map(|large| (four, large)));
        cut_rows.extend(find(&starts, &kinds)?);
        Ok(Self {
            starts,
            ways,
            cut_rows,
            partial: Mutex::new(device.uninitialized(0)?),
        })
    }

    /// Which items of a run have several tasks.
    fn large(&self, joining: Joining) -> Large {
        let device = self.starts.row.device();
        self.ways.of_run(joining, slots(device))
    }

    /// How many items there are.
    pub(super) fn count(&self, joining: Joining) -> u32 {
        self.large(joining).item_of(self.starts.count)
    }

    /// Launches the kernel on the tasks of the block, and joins the parts of the rows that are cut.
    pub(super) fn run(
        &self,
        device: &Device,
        product: &Product<E>,
        block: usize,
        launch: &impl Fn(Launch<E>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // Locked until all is launched: the next run's kernels come after this one's on the device.
        let mut partial = self
            .partial
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let Product {
            group, joining, y, ..
        } = *product;
        let large = self.large(joining);
        let is_of_run = |cut_rows: &&CutRows| (cut_rows.group, cut_rows.large) == (group, large);
        let cut_rows = self.cut_rows.iter().find(is_of_run);
        let cut_rows = cut_rows.expect("the kernel's groups are those planned for");
        if cut_rows.any() {
            let items = large.item_of(self.starts.count);
            let parts = 2 * u128::from(items.div_ceil(group));
            grow(device, &mut partial, parts * u128::from(y.cols))?;
        }
        let row_ptr = product.row_ptr.offset(block * product.rows as usize);
        let mut epilogue: Epilogue<E::Sum> = product.epilogue;
        if block > 0 {
            epilogue.beta = <E::Sum as cuda_std::float::Real>::ONE;
        }
        let items = (self.starts).items(large, partial.mutable(), product.original_row);
        launch(Launch {
            row_ptr,
            items,
            epilogue,
        })?;
        if !cut_rows.any() {
            return Ok(());
        }
        let config = tasks::launch_combine(cut_rows.few_count, cut_rows.many_count, y.cols);
        let handle = tasks::combine_handle::<E>(product.reduction);
        let arguments = (items, cut_rows.pointers(), y, epilogue);
        // SAFETY: the kernel before has written the parts of the cut rows; y is this run's.
        unsafe { device.launch(&handle, config, arguments) }
    }
}

impl Starts {
    /// Those of tasks of `size` steps, which cut rows of more than `longest` nonzeros.
    fn make(
        device: &Device,
        rows: u32,
        nonzeros: u32,
        row_ptr: Global<u32>,
        size: u32,
        longest: u32,
    ) -> Result<Self, Error> {
        let count = tasks::count(rows, nonzeros, size);
        let count = u32::try_from(count).map_err(|_| Error::TooLarge {
            what: "the number of tasks",
            found: count.into(),
            most: u32::MAX.into(),
        })?;
        let mut row = device.uninitialized::<u32>(count as usize + 1)?;
        let mut start = device.uninitialized::<u32>(count as usize + 1)?;
        let places = (row.mutable(), start.mutable());
        let arguments = (rows, row_ptr, size, longest, count, places.0, places.1);
        // SAFETY: the buffers have the lengths that the kernel's contract asks for.
        unsafe { device.launch(&tasks::starts(), tasks::launch(count), arguments)? };
        Ok(Self {
            count,
            size,
            row,
            start,
        })
    }

    /// The items as a kernel gets them.
    fn items<T>(&self, large: Large, partial: GlobalMut<T>, original_row: Global<u32>) -> Items<T> {
        Items {
            count: large.item_of(self.count),
            task_size: self.size,
            large,
            row: self.row.read_only(),
            start: self.start.read_only(),
            partial,
            original_row,
        }
    }
}

impl CutRows {
    /// Those between groups of so many items, for each of some kinds of groups and of items.
    fn find(
        device: &Device,
        rows: u32,
        row_ptr: Global<u32>,
        starts: &Starts,
        kinds: &[(u32, Large)],
    ) -> Result<Vec<Self>, Error> {
        let mut counts = device.zeros::<u32>(2 * kinds.len())?;
        let nothing = (GlobalMut::from_address(0), Global::from_address(0));
        let mut lists = Vec::new();
        for (kind, &(group, large)) in kinds.iter().enumerate() {
            let items = starts.items::<u32>(large, nothing.0, nothing.1);
            let groups = items.count.div_ceil(group);
            let mut few = device.uninitialized::<u32>(4 * groups as usize)?;
            let mut many = device.uninitialized::<u32>(4 * groups as usize)?;
            let places = (few.mutable(), many.mutable());
            let counts = counts.mutable().offset(2 * kind);
            let arguments = (rows, row_ptr, items, group, counts, places.0, places.1);
            // SAFETY: the lists have room for four numbers for each group, and each kind has two counts.
            unsafe { device.launch(&tasks::find_cuts(), tasks::launch(groups), arguments)? };
            lists.push((group, large, few, many));
        }
        let counts = counts.download()?;
        let found = lists.into_iter().zip(counts.chunks_exact(2));
        let found = found.map(|((group, large, few, many), counts)| Self {
            group,
            large,
            few_count: counts[0],
            many_count: counts[1],
            few,
            many,
        });
        Ok(found.collect())
    }

    fn count(&self) -> u32 {
        self.few_count + self.many_count
    }

    fn any(&self) -> bool {
        self.count() > 0
    }

    fn pointers(&self) -> Cuts {
        Cuts {
            few_count: self.few_count,
            many_count: self.many_count,
            few: self.few.read_only(),
            many: self.many.read_only(),
        }
    }
}

impl<E: SpmmElement> fmt::Display for Tasks<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = &self.cut_rows[0];
        write!(
            f,
            "{} tasks of {} steps, {} rows cut between blocks",
            self.starts.count,
            self.starts.size,
            cut.count()
        )
    }
}
