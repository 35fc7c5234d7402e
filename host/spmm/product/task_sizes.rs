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

/// Minimum and maximum number of steps of a task, if the caller does not ask for a size.
const MIN_TASK_SIZE: u64 = 64;
const MAX_TASK_SIZE: u64 = 256;

/// The minimum where all tasks run at the same time: the time of a small matrix is that of one task.
const MIN_RESIDENT_TASK_SIZE: u64 = 16;

/// How large items may be.
#[derive(Clone, Copy, Debug)]
pub struct ItemSizes {
    /// The size that the caller asks for.
    pub requested: Option<u32>,
    /// Maximum number of steps of a task, if the caller asks for none.
    pub max_task_size: Option<u32>,
    /// The tasks that the device runs at the same time, if they may be all of the matrix's.
    pub resident: Option<ResidentTasks>,
    /// The blocks of teams that the device runs at the same time, if it knows.
    pub wave: Option<Wave>,
    /// Nonzeros that the warp of a warp task takes at a time.
    pub chunk: u32,
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
    /// Rows of fewer nonzeros are not split, however small tasks are: parts cost more than a sub-warp that works alone.
    pub least_split_row: u32,
}

impl TaskSizes {
    /// The sizes for a matrix, which may be in blocks of columns.
    pub fn new(a: &DevicePattern, sizes: ItemSizes) -> Self {
        Self::of_steps(steps(a), slots(a.device()), sizes)
    }

    fn of_steps(steps: u64, slots: u64, sizes: ItemSizes) -> Self {
        let resident = sizes.resident.filter(|tasks| !tasks.prefer_joined);
        Self {
            few_split_rows: task_size(steps, slots, sizes),
            many_split_rows: (sizes.refine)
                .then(|| task_size(steps, slots, ItemSizes { resident, ..sizes })),
            least_split_row: match sizes.requested {
                Some(_) => 1,
                None => MIN_TASK_SIZE as u32,
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
    let of_resident = |tasks: ResidentTasks| steps.div_ceil(tasks.count.max(1));
    if let Some(size) = sizes
        .resident
        .map(of_resident)
        .filter(|size| *size <= MAX_TASK_SIZE)
    {
        return size.max(MIN_RESIDENT_TASK_SIZE) as u32;
    }
    let most = sizes.max_task_size;
    let most = most.map_or(MAX_TASK_SIZE, |most| {
        u64::from(most).clamp(MIN_TASK_SIZE, MAX_TASK_SIZE)
    });
    (steps / (slots * TASKS_PER_SLOT)).clamp(MIN_TASK_SIZE, most) as u32
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
mod tests {
    use super::*;

    fn sizes(max_task_size: Option<u32>, resident: Option<u64>, prefer_joined: bool) -> ItemSizes {
        ItemSizes {
            requested: None,
            max_task_size,
            resident: resident.map(|count| ResidentTasks {
                count,
                prefer_joined,
            }),
            wave: None,
            chunk: 32,
            refine: true,
        }
    }

    fn size(steps: u64, max_task_size: Option<u32>, resident: Option<u64>) -> u32 {
        task_size(steps, 10_000, sizes(max_task_size, resident, false))
    }

    #[test]
    fn tasks_that_can_all_be_resident_are() {
        assert_eq!(size(1_500_000, None, Some(10_000)), 150);
        assert_eq!(size(1_500_001, None, Some(10_000)), 151);
        assert_eq!(size(1_500_000, Some(80), Some(10_000)), 150);
        assert_eq!(size(400_000, None, Some(10_000)), 40);
        assert_eq!(size(1_000, None, Some(10_000)), 16, "small enough");
        assert_eq!(size(0, None, Some(0)), 16);
    }

    #[test]
    fn where_many_rows_are_split_small_tasks_may_be_joined_instead() {
        for (prefer_joined, many_split_rows) in [(false, 150), (true, 64)] {
            let sizes = sizes(None, Some(10_000), prefer_joined);
            let sizes = TaskSizes::of_steps(1_500_000, 10_000, sizes);
            assert_eq!(
                (sizes.few_split_rows, sizes.many_split_rows),
                (150, Some(many_split_rows))
            );
        }
    }

    #[test]
    fn tasks_of_large_matrices_are_so_many_that_long_ones_do_not_matter() {
        for resident in [None, Some(10_000)] {
            assert_eq!(size(8_000_000, None, resident), 160);
            assert_eq!(size(1 << 40, None, resident), 256);
            assert_eq!(size(8_000_000, Some(80), resident), 80);
            assert_eq!(size(8_000_000, Some(8), resident), 64);
        }
        assert_eq!(size(1_500_000, None, None), 64);
    }

    const PLANNED: Joining = Joining {
        requested: None,
        slots_per_task: 1,
        loads_single_elements: false,
    };

    #[test]
    fn each_task_is_of_one_item_and_the_items_have_all_tasks() {
        for tasks in [0, 1, 2, 5, 31, 32, 33, 1000, 4099] {
            for many_rows_are_split in [false, true] {
                let groupings = Groupings::new(tasks, many_rows_are_split, false);
                for large in groupings.all().chain([LargeItems::NONE]) {
                    let items = large.item_of(tasks);
                    let mut task = 0;
                    for item in 0..items {
                        assert_eq!(large.first_task(item), task, "{large:?}");
                        let next = large.first_task(item + 1);
                        assert!((task..next).all(|task| large.item_of(task) == item));
                        assert_eq!(next - task > 1, item < large.count, "{large:?}");
                        task = next;
                    }
                    assert_eq!(task, tasks, "{large:?}");
                }
            }
        }
    }

    #[test]
    fn items_are_as_large_as_there_are_enough_of_them() {
        let of_run = |tasks, joining| {
            Groupings::new(tasks, true, false)
                .of_run(joining, 1000)
                .shift
        };
        // 1250 items of eight tasks, 500 of four, 500 of two.
        assert_eq!(of_run(13_334, PLANNED), 3);
        assert_eq!(of_run(13_333, PLANNED), 2);
        assert_eq!(of_run(3_200, PLANNED), 2);
        assert_eq!(of_run(3_199, PLANNED), 1);
        assert_eq!(of_run(1_600, PLANNED), 1);
        assert_eq!(of_run(1_599, PLANNED), 0);
        // A sub-warp of all lanes is four of eight.
        let slots_per_task = 4;
        assert_eq!(
            of_run(
                3_339,
                Joining {
                    slots_per_task,
                    ..PLANNED
                }
            ),
            3
        );
        assert_eq!(
            of_run(
                3_338,
                Joining {
                    slots_per_task,
                    ..PLANNED
                }
            ),
            2
        );
    }

    #[test]
    fn tasks_are_joined_and_left_single_as_wanted() {
        let (few, many) = (
            Groupings::new(10, true, false),
            Groupings::new(100_000, true, false),
        );
        let wanted = |requested| Joining {
            requested,
            ..PLANNED
        };
        assert_eq!(few.of_run(wanted(Some(true)), 1000).shift, 1);
        assert_eq!(many.of_run(wanted(Some(true)), 1000).shift, 3);
        assert_eq!(many.of_run(wanted(Some(false)), 1000), LargeItems::NONE);
        assert_eq!(many.of_run(Joining::NONE, 1000), LargeItems::NONE);
    }

    #[test]
    fn without_many_split_rows_pairs_are_for_single_elements() {
        let groupings = Groupings::new(100_000, false, false);
        assert_eq!(groupings.of_run(PLANNED, 1000), LargeItems::NONE);
        let loads_single_elements = true;
        assert_eq!(
            groupings
                .of_run(
                    Joining {
                        loads_single_elements,
                        ..PLANNED
                    },
                    1000
                )
                .shift,
            1
        );
        let pairs =
            |groupings: &Groupings| groupings.all().map(|large| large.shift).collect::<Vec<_>>();
        assert_eq!(pairs(&groupings), [1]);
        assert_eq!(pairs(&Groupings::new(100_000, true, true)), [1]);
    }

    #[test]
    fn the_tasks_of_the_largest_matrices_are_counted_in_64_bits() {
        let large: Vec<LargeItems> = Groupings::new(u32::MAX, true, false).all().collect();
        assert_eq!(large[0].count, 402_653_183);
    }
}
