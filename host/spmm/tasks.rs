//! The tasks of a matrix, made on the device: see [`tasks`].

use super::SpmmElement;
use super::items::{ItemSizes, Launch, Product, grow};
use crate::csr::DevicePattern;
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use cuda_std::memory::{Global, GlobalMut};
use std::fmt;
use std::sync::Mutex;
use warprow_kernels::spmm::tasks::{self, Cuts, ROW_STEPS};
use warprow_kernels::spmm::{Epilogue, Items, Large, vector};

/// Tasks for each sub-warp that a GPU runs at a time: the more, the better a long task is made up for by the others.
const TASKS_PER_SLOT: u64 = 8;

/// Sub-warps of 8 lanes that a multiprocessor runs at a time, of kernels with some 64 registers a thread.
const SLOTS_PER_MULTIPROCESSOR: u64 = 128;

/// Pairs of tasks for each of them, at least, where tasks are joined, a sub-warp of more lanes or several tiles of features being as many more. On
/// an H200 f32 with all tasks in pairs took 1.04 times as long with 1.4 for each slot, and 0.94 to 1 times with 2.8 and more, 0.89 to 0.93 at 33
/// features.
const JOINED_PER_SLOT: u64 = 2;

/// Eighths of the tasks that are in large items where many rows are cut, and the logarithm of how many an item has. The first if each sub-warp of 32 lanes
/// that the device runs at a time has [so many](LARGE_PER_SLOT) of them at least.
///
/// Measured on an H200, R-MAT .57, as parts of the time with all tasks in pairs: eight tasks an item at 64 features 0.95 to 1 where there are so many, at
/// 128 and 256 0.97 to 1, but up to 1.11 with one large item a slot or less; four tasks 0.96 to 1 at any number. All other fractions of the tasks
/// from a half to seven eighths are as good within 1 % where there are many items, and up to 1.1 times as slow where there are few: a part of
/// the sub-warps then has one large item more than the others.
const TAPERS: [(u32, u32); 2] = [(6, 3), (5, 2)];

/// See [`TAPERS`].
const LARGE_PER_SLOT: u64 = 2;

/// The same where few rows are cut, and where rows that are near each other share their columns: all tasks in pairs.
const PAIRS: (u32, u32) = (8, 1);

/// Groups of tasks for a row that is cut between them, at most, where many rows are cut. Skewed graphs (R-MAT .57) have one for two to four groups,
/// others (.35) one for 26 or almost none. Where many are cut, several tasks are one item, and such rows have fewer parts; others took up to 1.08
/// times as long so.
const LEAST_CUT: u64 = 16;

/// Where many rows are cut, those are that have a part of a task's size, this one; else only those that have more than a task. Skewed graphs took
/// 0.95 to 0.99 times as long so at 32 features and 0.97 to 1.01 at 128, with a half 0.96 to 0.99 and as long; others, of which many rows would then be
/// cut that are not, up to 1.1 times.
const FINER_CUTS: u32 = 4;

/// The least and the largest task, in steps. On an H200 tasks of 32 took up to 1.1 times as long as of 64 on most
/// graphs, for a task's own cost, and tasks of 1024 up to 1.2 times as long as of 256, for want of balance.
const TASK_SIZES: [u64; 2] = [64, 256];

/// The tasks of a matrix or of a block of its columns.
#[derive(Debug)]
pub(super) struct Tasks<E: SpmmElement> {
    starts: Starts,
    /// Which items have several tasks where tasks are joined.
    large: Large,
    /// Whether many rows are cut between blocks.
    many_are_cut: bool,
    /// The rows that are cut between groups of tasks, for each size of a group, and those of joined tasks.
    cut_rows: [CutRows; vector::GROUPS.len() + 1],
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
    few_count: u32,
    many_count: u32,
    few: DeviceBuffer<u32>,
    many: DeviceBuffer<u32>,
}

/// Sub-warps of 8 lanes that a device runs at a time.
fn slots(device: &Device) -> u64 {
    u64::from(device.properties().multiprocessors.max(1)) * SLOTS_PER_MULTIPROCESSOR
}

/// Which items have several tasks where tasks are joined: of so many tasks, on a device with so many slots.
fn large(tasks: u32, slots: u64, tapers: bool) -> Large {
    let of = |(eighths, shift): (u32, u32)| Large {
        // Not more than there are tasks.
        count: ((u64::from(tasks) * u64::from(eighths) / 8) >> shift) as u32,
        shift,
    };
    if !tapers {
        return of(PAIRS);
    }
    let [many, few] = TAPERS.map(of);
    let slots_of_32_lanes = slots / 4;
    if u64::from(many.count) >= LARGE_PER_SLOT * slots_of_32_lanes {
        many
    } else {
        few
    }
}

/// A task's size for a matrix of that many steps on a device, no more than `most` if other tasks are as small.
fn task_size(device: &Device, steps: u64, most: Option<u32>) -> u32 {
    let [least, largest] = TASK_SIZES;
    let most = most.map_or(largest, |most| u64::from(most).clamp(least, largest));
    (steps / (slots(device) * TASKS_PER_SLOT)).clamp(least, most) as u32
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
        let ends = u64::from(a.rows) * blocks as u64;
        let steps = u64::from(ROW_STEPS) * ends + u64::from(a.nonzeros());
        let size = sizes
            .wanted
            .unwrap_or_else(|| task_size(a.device(), steps, sizes.most_of_task))
            // Two of them have a size, too.
            .clamp(1, u32::MAX / 2);
        starts
            .windows(2)
            .enumerate()
            .map(|(block, ends)| {
                let row_ptr = a.row_ptr.read_only().offset(block * a.rows as usize);
                let nonzeros = ends[1] - ends[0];
                // It is there that the planner limits tasks.
                let near_share = sizes.most_of_task.is_some();
                Self::make(a.device(), a.rows, nonzeros, row_ptr, size, near_share)
            })
            .collect()
    }

    fn make(
        device: &Device,
        rows: u32,
        nonzeros: u32,
        row_ptr: Global<u32>,
        size: u32,
        near_share: bool,
    ) -> Result<Self, Error> {
        let make = |longest| Starts::make(device, rows, nonzeros, row_ptr, size, longest);
        let cut_rows = |starts: &Starts, large, group| {
            let nothing = (GlobalMut::from_address(0), Global::from_address(0));
            let items = starts.items::<u32>(large, nothing.0, nothing.1);
            CutRows::find(device, rows, row_ptr, items, group)
        };
        let [eight, four] = vector::GROUPS;
        let mut starts = make(size)?;
        let mut of_eight = cut_rows(&starts, Large::NONE, eight)?;
        let (cut, groups) = (u64::from(of_eight.count()), starts.count / eight);
        let many_are_cut = cut > 0 && cut * LEAST_CUT >= groups.into();
        if many_are_cut {
            starts = make(size / FINER_CUTS)?;
            of_eight = cut_rows(&starts, Large::NONE, eight)?;
        }
        let of_four = cut_rows(&starts, Large::NONE, four)?;
        let large = large(starts.count, slots(device), many_are_cut && !near_share);
        let of_joined = cut_rows(&starts, large, four)?;
        Ok(Self {
            cut_rows: [of_eight, of_four, of_joined],
            starts,
            large,
            many_are_cut,
            partial: Mutex::new(device.uninitialized(0)?),
        })
    }

    /// The items of several tasks.
    fn large(&self, joined: bool) -> Large {
        if joined { self.large } else { Large::NONE }
    }

    /// How many items there are.
    pub(super) fn count(&self, joined: bool) -> u32 {
        self.large(joined).item_of(self.starts.count)
    }

    /// Whether it is better to take several as one item, where each has so many times eight lanes, that load single elements or more.
    pub(super) fn are_worth_joining(&self, eights: u64, singles: bool) -> bool {
        let items = u64::from(self.starts.count / 2) * eights;
        // Where a load brings a lane 4 bytes and not 16, a task's own cost is more of its time: 0.94 to 0.99 times as long at 33 features of
        // f32, whether rows are cut (R-MAT .57) or not (.35).
        (self.many_are_cut || singles) && items >= slots(self.starts.row.device()) * JOINED_PER_SLOT
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
            group, joined, y, ..
        } = *product;
        let place = vector::GROUPS.iter().position(|&other| other == group);
        let place = place.expect("the kernel's groups are those planned for");
        let cut_rows = &self.cut_rows[place + usize::from(joined)];
        if cut_rows.any() {
            let parts = 2 * u128::from(self.count(joined).div_ceil(group));
            grow(device, &mut partial, parts * u128::from(y.cols))?;
        }
        let row_ptr = product.row_ptr.offset(block * product.rows as usize);
        let mut epilogue: Epilogue<E::Sum> = product.epilogue;
        if block > 0 {
            epilogue.beta = <E::Sum as cuda_std::float::Real>::ONE;
        }
        let items =
            (self.starts).items(self.large(joined), partial.mutable(), product.original_row);
        launch(Launch {
            row_ptr,
            items,
            epilogue,
        })?;
        if !cut_rows.any() {
            return Ok(());
        }
        let config =
            |tile| tasks::launch_combine(cut_rows.few_count, cut_rows.many_count, y.cols, tile);
        let cuts = cut_rows.pointers();
        // SAFETY: the kernel before has written the parts of the cut rows; y is this run's, and the bias has an element for each of
        // its columns.
        unsafe {
            if let Some(layer) = &product.combine {
                let arguments = (items, cuts, y, layer.bias);
                return device.launch(&layer.kernel, config(layer.tile), arguments);
            }
            let (handle, tile) = tasks::combine_handle::<E>(y.cols, product.reduction);
            device.launch(&handle, config(tile), (items, cuts, y, epilogue))
        }
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
    fn find(
        device: &Device,
        rows: u32,
        row_ptr: Global<u32>,
        items: Items<u32>,
        group: u32,
    ) -> Result<Self, Error> {
        let groups = items.count.div_ceil(group);
        let mut counts = device.zeros::<u32>(2)?;
        let mut few = device.uninitialized::<u32>(4 * groups as usize)?;
        let mut many = device.uninitialized::<u32>(4 * groups as usize)?;
        let lists = (counts.mutable(), few.mutable(), many.mutable());
        let arguments = (rows, row_ptr, items, group, lists.0, lists.1, lists.2);
        // SAFETY: the lists have room for four numbers for each group.
        unsafe { device.launch(&tasks::find_cuts(), tasks::launch(groups), arguments)? };
        let counts = counts.download()?;
        Ok(Self {
            few_count: counts[0],
            many_count: counts[1],
            few,
            many,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_is_of_one_item_and_the_items_have_all_tasks() {
        for slots in [16, 1 << 20] {
            for tasks in [0, 1, 2, 5, 31, 32, 33, 1000, 4099] {
                for tapers in [false, true] {
                    let large = large(tasks, slots, tapers);
                    let items = large.item_of(tasks);
                    let mut task = 0;
                    for item in 0..items {
                        assert_eq!(large.first_task(item), task, "{large:?}");
                        let next = large.first_task(item + 1);
                        assert!((task..next).all(|task| large.item_of(task) == item));
                        assert_eq!(next - task == 1, item >= large.count || large.shift == 0);
                        task = next;
                    }
                    assert_eq!(task, tasks, "{large:?}");
                }
            }
        }
    }

    #[test]
    fn items_are_larger_where_each_slot_has_several() {
        let shift = |tasks, tapers| large(tasks, 128, tapers).shift;
        assert_eq!(shift(100, true), TAPERS[1].1);
        assert_eq!(shift(10_000, true), TAPERS[0].1);
        assert_eq!(shift(10_000, false), PAIRS.1);
        // Three quarters of u32::MAX tasks, eight an item, which 32 bits cannot hold times six.
        assert_eq!(large(u32::MAX, 128, true).count, 402_653_183);
    }
}
