//! The sizes of [tasks](super::tasks), and the items in which a run joins several of them.
//!
//! A *slot* is a sub-warp of 8 lanes that the device runs at the same time as all others. Small tasks balance the
//! load of the slots; large ones have fewer starts and split fewer rows. A sub-warp of 16 or 32 lanes can take
//! several consecutive tasks as one item ([`LargeItems`]).

use super::teams::Wave;
use crate::csr::DevicePattern;
use crate::device::Device;
use warprow_kernels::spmm::LargeItems;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;

/// Tasks for each slot: the more, the better the others balance a long one; the fewer, the fewer rows they split.
const TASKS_PER_SLOT: u64 = 5;

/// Slots of a multiprocessor, for kernels with some 64 registers a thread.
const SLOTS_PER_MULTIPROCESSOR: u64 = 128;

/// Maximum number of slots of a multiprocessor, for any kernel on any GPU.
const MAX_SLOTS_PER_MULTIPROCESSOR: u64 = 2048 / 8;

/// Minimum and maximum number of steps of a task, if the caller does not ask for a size. Tasks of [whole
/// rows](whole_rows) have 43 to 340 steps. Where few rows are split, those of up to the minimum are not.
pub const MIN_TASK_SIZE: u64 = 64;
const MAX_TASK_SIZE: u64 = 256;

/// The minimum where all tasks run at the same time: the time of a small matrix is that of one task.
pub const MIN_RESIDENT_TASK_SIZE: u64 = 16;

/// Rows of a task up to which it has a whole number of rows, if all have nearly the same length.
const MAX_WHOLE_ROWS: u64 = 4;

/// How large items may be.
#[derive(Clone, Copy, Debug)]
pub struct ItemSizes {
    /// The size that the caller asks for.
    pub requested: Option<u32>,
    /// Maximum number of steps of a task, if the caller asks for none.
    pub max_task_size: Option<u32>,
    /// Steps of a row, if all rows have nearly the same number.
    pub even_row: Option<u32>,
    /// The tasks that the device runs at the same time, if they may be all of the matrix's.
    pub resident: Option<ResidentTasks>,
    /// The blocks of teams that the device runs at the same time, if it knows.
    pub wave: Option<Wave>,
    /// Lanes of a nonzero in `row_bins`.
    pub lanes_of_nonzero: u32,
    /// Whether the plan finds out if many rows are split, and how to join tasks. It costs some 50 microseconds, which
    /// a single run does not gain.
    pub refine: bool,
}

/// The tasks that a device runs at the same time.
#[derive(Clone, Copy, Debug)]
pub struct ResidentTasks {
    /// How many.
    pub count: u64,
    /// Whether, for a matrix with many split rows, small tasks in joined items are faster than tasks that are all
    /// resident.
    pub prefer_joined: bool,
}

/// Steps of a task of a matrix.
#[derive(Clone, Copy, Debug)]
pub struct TaskSizes {
    /// If few rows are split.
    pub few_split_rows: u32,
    /// If many rows are split; `None` if the plan does not find out.
    pub many_split_rows: Option<u32>,
    /// Rows of up to so many nonzeros are not split, however small tasks are, unless many rows are: parts cost more than
    /// a sub-warp that works alone.
    pub least_split_row: u32,
}

impl TaskSizes {
    /// The sizes for a matrix, which may be in blocks of columns.
    pub fn new(a: &DevicePattern, sizes: ItemSizes) -> Self {
        Self::of_steps(steps(a), slots(a.device()), sizes)
    }

    fn of_steps(steps: u64, slots: u64, sizes: ItemSizes) -> Self {
        let resident = sizes.resident.filter(|tasks| !tasks.prefer_joined);
        let few_split_rows = task_size(steps, slots, sizes);
        let many_split_rows =
            (sizes.refine).then(|| task_size(steps, slots, ItemSizes { resident, ..sizes }));
        let least_split_row = match sizes.requested {
            Some(_) => 1,
            None => MIN_TASK_SIZE as u32,
        };
        let whole_rows = (sizes.even_row)
            .filter(|_| sizes.requested.is_none() && resident_size(steps, sizes).is_none())
            .and_then(|row| Some((row, whole_rows(few_split_rows, row)?)));
        match whole_rows {
            Some((row, size)) => Self {
                few_split_rows: size,
                many_split_rows,
                // A row that is a little longer than the others stays whole.
                least_split_row: least_split_row.max(size + row),
            },
            None => Self {
                few_split_rows,
                many_split_rows,
                least_split_row,
            },
        }
    }
}

/// The slots of a device.
pub fn slots(device: &Device) -> u64 {
    u64::from(device.properties().multiprocessors.max(1)) * SLOTS_PER_MULTIPROCESSOR
}

/// Steps of all tasks of a matrix: each row ends in each block of columns.
fn steps(a: &DevicePattern) -> u64 {
    let row_ends = a.row_ptr.len().saturating_sub(1) as u64;
    u64::from(ROW_STEPS) * row_ends + u64::from(a.nonzeros())
}

/// Whether a device may run all tasks of a matrix at the same time.
pub fn may_all_be_resident(a: &DevicePattern) -> bool {
    let multiprocessors = u64::from(a.device().properties().multiprocessors);
    steps(a) <= MAX_TASK_SIZE * MAX_SLOTS_PER_MULTIPROCESSOR * multiprocessors
}

/// The size of the tasks of a matrix of `steps` steps: the size that the caller asks for; else the smallest with
/// which all tasks are resident, as they end together then; else one with which a slot has several tasks.
fn task_size(steps: u64, slots: u64, sizes: ItemSizes) -> u32 {
    if let Some(requested) = sizes.requested {
        return requested.max(1);
    }
    if let Some(size) = resident_size(steps, sizes) {
        return size.max(MIN_RESIDENT_TASK_SIZE) as u32;
    }
    let most = sizes.max_task_size;
    let most = most.map_or(MAX_TASK_SIZE, |most| {
        u64::from(most).clamp(MIN_TASK_SIZE, MAX_TASK_SIZE)
    });
    (steps / (slots * TASKS_PER_SLOT)).clamp(MIN_TASK_SIZE, most) as u32
}

/// The size with which all tasks run at the same time, if it is not too large.
fn resident_size(steps: u64, sizes: ItemSizes) -> Option<u64> {
    let of_resident = |tasks: ResidentTasks| steps.div_ceil(tasks.count.max(1));
    let size = sizes.resident.map(of_resident);
    size.filter(|size| *size <= MAX_TASK_SIZE)
}

/// The size next to `size` that is a whole number of rows of `row` steps each; `None` where a task has so many rows
/// that one more does not matter, or a part of a row. Else most blocks of threads have a task of one row more than the
/// others, and wait for it.
fn whole_rows(size: u32, row: u32) -> Option<u32> {
    let (size, row) = (u64::from(size), u64::from(row.max(1)));
    let matters = row <= MAX_TASK_SIZE && size < MAX_WHOLE_ROWS * row;
    let rows = (2 * size + row) / (2 * row);
    // At most 340 steps.
    matters.then(|| (rows.max(1) * row) as u32)
}

/// What decides whether a run joins tasks.
#[derive(Clone, Copy, Debug)]
pub struct Joining {
    /// Whether the caller wants it; default: if it pays.
    pub requested: Option<bool>,
    /// The slots that a task occupies, in all tiles of features.
    pub slots_per_task: u64,
    /// Whether a lane loads a single element at a time: a task's own instructions count more then.
    pub loads_single_elements: bool,
}

impl Joining {
    /// Each task is an item.
    pub const NONE: Self = Self {
        requested: Some(false),
        slots_per_task: 1,
        loads_single_elements: false,
    };
}

/// A way to join tasks: the first part of them in items of several, the rest one by one.
#[derive(Clone, Copy, Debug)]
struct Grouping {
    /// The part, in eighths.
    joined_eighths: u32,
    /// The logarithm of the number of tasks in an item of several.
    shift: u32,
    /// Minimum number of these items for each slot, in quarters.
    min_quarters_per_slot: u64,
}

/// For a matrix with many split rows: the first that has enough items of several tasks. The single tasks at the end
/// fill the time until the last large item ends.
const TAPERED: [Grouping; 3] = [
    Grouping {
        joined_eighths: 6,
        shift: 3,
        min_quarters_per_slot: 5,
    },
    Grouping {
        joined_eighths: 5,
        shift: 2,
        min_quarters_per_slot: 2,
    },
    Grouping {
        joined_eighths: 5,
        shift: 1,
        min_quarters_per_slot: 2,
    },
];

/// For other matrices: all tasks in pairs.
const PAIRS: [Grouping; 1] = [Grouping {
    joined_eighths: 8,
    shift: 1,
    min_quarters_per_slot: 8,
}];

/// The ways to join the tasks of a matrix.
#[derive(Clone, Debug)]
pub struct Groupings {
    groupings: &'static [Grouping],
    tasks: u32,
    /// Whether they pay for loads of any width, or for single elements alone.
    pay_for_all_loads: bool,
}

impl Groupings {
    /// The ways for a matrix of `tasks` tasks. If consecutive rows share columns, large items would separate them.
    pub fn new(tasks: u32, many_rows_are_split: bool, consecutive_rows_share: bool) -> Self {
        let groupings: &[Grouping] = if many_rows_are_split && !consecutive_rows_share {
            &TAPERED
        } else {
            &PAIRS
        };
        Self {
            groupings,
            tasks,
            pay_for_all_loads: many_rows_are_split,
        }
    }

    /// No way: each task is an item.
    pub fn none(tasks: u32) -> Self {
        Self {
            groupings: &[],
            tasks,
            pay_for_all_loads: false,
        }
    }

    /// The items of several tasks, in each way.
    pub fn all(&self) -> impl Iterator<Item = LargeItems> + '_ {
        self.groupings.iter().map(|grouping| {
            let joined = u64::from(self.tasks) * u64::from(grouping.joined_eighths) / 8;
            LargeItems {
                // No more than there are tasks.
                count: (joined >> grouping.shift) as u32,
                shift: grouping.shift,
            }
        })
    }

    /// The items of several tasks in a run on a device with so many slots.
    pub fn of_run(&self, joining: Joining, slots: u64) -> LargeItems {
        let has_enough = |(grouping, large): &(&Grouping, LargeItems)| {
            4 * u64::from(large.count) * joining.slots_per_task
                >= grouping.min_quarters_per_slot * slots
        };
        let best = self.groupings.iter().zip(self.all()).find(has_enough);
        let best = best.map(|(_, large)| large);
        let pays = self.pay_for_all_loads || joining.loads_single_elements;
        let large = match joining.requested {
            Some(false) => None,
            Some(true) => best.or(self.all().last()),
            None => best.filter(|_| pays),
        };
        large.unwrap_or(LargeItems::NONE)
    }
}

#[cfg(test)]
mod tests;
