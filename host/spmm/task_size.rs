//! The size of [tasks](super::tasks).

use super::items::ItemSizes;
use crate::csr::DevicePattern;
use crate::device::Device;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;

/// Tasks for each sub-warp that a GPU runs at a time: the more, the better a long task is made up for by the others.
const TASKS_PER_SLOT: u64 = 8;

/// Sub-warps of 8 lanes that a multiprocessor runs at a time, of kernels with some 64 registers a thread.
const SLOTS_PER_MULTIPROCESSOR: u64 = 128;

/// The least and the largest task, in steps. On an H200 tasks of 32 took up to 1.1 times as long as of 64 on most
/// graphs, for a task's own cost, and tasks of 1024 up to 1.2 times as long as of 256, for want of balance.
const TASK_SIZES: [u64; 2] = [64, 256];

/// Sub-warps that a multiprocessor runs at a time, at most, of any kernel on any GPU.
const MOST_SUB_WARPS: u64 = 2048 / 8;

/// Steps of a task of a matrix.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskSizes {
    /// If few rows are cut, or if it makes no difference.
    pub(super) any: u32,
    /// If many rows are cut.
    pub(super) if_many_are_cut: u32,
}

impl TaskSizes {
    /// Those of a matrix, whose row pointers are those of its blocks of columns.
    pub(super) fn of(a: &DevicePattern, sizes: ItemSizes) -> Self {
        Self::of_steps(steps(a), slots(a.device()), sizes)
    }

    fn of_steps(steps: u64, slots: u64, sizes: ItemSizes) -> Self {
        let at_a_time = sizes.at_a_time.filter(|all| !all.prefers_joined);
        let if_many_are_cut = ItemSizes { at_a_time, ..sizes };
        Self {
            any: task_size(steps, slots, sizes),
            if_many_are_cut: task_size(steps, slots, if_many_are_cut),
        }
    }
}

/// Sub-warps of 8 lanes that a device runs at a time.
pub(super) fn slots(device: &Device) -> u64 {
    u64::from(device.properties().multiprocessors.max(1)) * SLOTS_PER_MULTIPROCESSOR
}

/// Steps of all tasks of a matrix: each row ends in each block of columns.
fn steps(a: &DevicePattern) -> u64 {
    let ends = a.row_ptr.len().saturating_sub(1) as u64;
    u64::from(ROW_STEPS) * ends + u64::from(a.nonzeros())
}

/// Whether a device may run all tasks of a matrix at a time, if they are no larger than any.
pub(super) fn may_run_at_once(a: &DevicePattern) -> bool {
    let [_, largest] = TASK_SIZES;
    let multiprocessors = u64::from(a.device().properties().multiprocessors);
    steps(a) <= largest * MOST_SUB_WARPS * multiprocessors
}

/// A task's size for a matrix of that many steps on a device that runs so many sub-warps of 8 lanes at a time, if the caller does not say: as
/// small as tasks can be that all run at a time, if it is known how many do; else no more than `most_of_task`, if other tasks are as small.
///
/// Tasks that all run at a time end together; where there are one and a half times as many, half of the device waits for the last. On an H200, as a part of
/// the time with tasks of 64 steps: 169,343 rows of 1.2 million nonzeros 0.83 to 0.97 at 32 to 64 features, but 1.03 at 33 with hubs, where tasks are better
/// joined; 235,868 rows of 2.4 million 0.90 to 0.96 at 32. Tasks of a few percent more steps are as good, of a few less 1.06 to 1.13 times as slow. Tasks that run
/// in two waves, neither of them in part, gain little: 0.94 to 1.02.
fn task_size(steps: u64, slots: u64, sizes: ItemSizes) -> u32 {
    if let Some(wanted) = sizes.wanted {
        return wanted.max(1);
    }
    let [least, largest] = TASK_SIZES;
    let at_once = sizes.at_a_time.map(|all| steps.div_ceil(all.tasks.max(1)));
    if let Some(size) = at_once.filter(|size| *size <= largest) {
        return size.max(least) as u32;
    }
    let most = sizes.most_of_task;
    let most = most.map_or(largest, |most| u64::from(most).clamp(least, largest));
    (steps / (slots * TASKS_PER_SLOT)).clamp(least, most) as u32
}

#[cfg(test)]
mod tests {
    use super::super::items::AtATime;
    use super::*;

    fn sizes(most_of_task: Option<u32>, tasks: Option<u64>, prefers_joined: bool) -> ItemSizes {
        ItemSizes {
            wanted: None,
            most_of_task,
            at_a_time: tasks.map(|tasks| AtATime {
                tasks,
                prefers_joined,
            }),
        }
    }

    fn size(steps: u64, most_of_task: Option<u32>, tasks_at_a_time: Option<u64>) -> u32 {
        task_size(steps, 10_000, sizes(most_of_task, tasks_at_a_time, false))
    }

    #[test]
    fn tasks_that_can_all_run_at_once_do() {
        assert_eq!(size(1_500_000, None, Some(10_000)), 150);
        assert_eq!(size(1_500_001, None, Some(10_000)), 151);
        assert_eq!(size(1_500_000, Some(80), Some(10_000)), 150);
        assert_eq!(size(1_000, None, Some(10_000)), 64, "small enough");
        assert_eq!(size(0, None, Some(0)), 64);
    }

    #[test]
    fn where_many_rows_are_cut_small_tasks_may_be_joined_instead() {
        for (prefers_joined, if_many_are_cut) in [(false, 150), (true, 64)] {
            let sizes = sizes(None, Some(10_000), prefers_joined);
            let sizes = TaskSizes::of_steps(1_500_000, 10_000, sizes);
            assert_eq!((sizes.any, sizes.if_many_are_cut), (150, if_many_are_cut));
        }
    }

    #[test]
    fn tasks_of_large_matrices_are_so_many_that_long_ones_do_not_matter() {
        for at_a_time in [None, Some(10_000)] {
            assert_eq!(size(8_000_000, None, at_a_time), 100);
            assert_eq!(size(1 << 40, None, at_a_time), 256);
            assert_eq!(size(8_000_000, Some(80), at_a_time), 80);
            assert_eq!(size(8_000_000, Some(8), at_a_time), 64);
        }
        assert_eq!(size(1_500_000, None, None), 64);
    }
}
