//! Which tasks are one item of a run: see [`Large`].

use warprow_kernels::spmm::Large;

/// What a run knows of that.
#[derive(Clone, Copy, Debug)]
pub struct Joining {
    /// Whether the tasks are to be joined; what is best if it is not said.
    pub wanted: Option<bool>,
    /// How many times eight lanes a task has, in all tiles of features.
    pub eights: u64,
    /// Whether a load brings a lane a single element.
    pub singles: bool,
}

impl Joining {
    /// Each task is an item.
    pub const NONE: Self = Self {
        wanted: Some(false),
        eights: 1,
        singles: false,
    };
}

/// A way to join tasks: a part of them in large items, which come first.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Eighths of the tasks that are in large items.
    eighths: u32,
    /// The logarithm of how many tasks a large item has.
    shift: u32,
    /// Large items, at least, for each sub-warp of these lanes that the device runs at a time, in quarters.
    per_slot: u64,
}

/// The ways for a matrix of which many rows are cut, the first of them that has enough large items.
///
/// Measured on an H200, R-MAT .57, as parts of the time with all tasks in pairs or, where there were too few of them for that, single. Eight tasks an item: 0.95 to
/// 0.99 with 1.3 to 4 large items for each slot, 0.94 and 1.05 with 1, 1 and 1.1 with a half. Four: 0.94 to 1 with a half and more, 0.97 and 1.04 with
/// 0.4. Two: 0.93 with 0.9. Of fractions from a quarter to seven eighths all are as good within 1 % where there are many items; where there are few,
/// some are up to 1.1 times as slow, as a part of the sub-warps then has one large item more than the others.
const TAPERED: [Way; 3] = [
    Way {
        eighths: 6,
        shift: 3,
        per_slot: 5,
    },
    Way {
        eighths: 5,
        shift: 2,
        per_slot: 2,
    },
    Way {
        eighths: 5,
        shift: 1,
        per_slot: 2,
    },
];

/// The way for other matrices: all tasks in pairs. On an H200 f32 took 0.89 to 0.93 times as long so at 33 features with many pairs, and 1.04 times with
/// 1.4 for each slot.
const PAIRS: [Way; 1] = [Way {
    eighths: 8,
    shift: 1,
    per_slot: 8,
}];

/// The ways to join the tasks of a matrix.
#[derive(Clone, Debug)]
pub struct Ways {
    ways: &'static [Way],
    tasks: u32,
    /// Whether they are worth it at any width of loads.
    for_all: bool,
}

impl Ways {
    /// Those of a matrix of so many tasks; where rows that are near each other share their columns, large items would tear them apart.
    pub fn of(tasks: u32, many_rows_are_cut: bool, near_rows_share: bool) -> Self {
        let ways: &[Way] = if many_rows_are_cut && !near_rows_share {
            &TAPERED
        } else {
            &PAIRS
        };
        Self {
            ways,
            tasks,
            for_all: many_rows_are_cut,
        }
    }

    /// The large items of each way.
    pub fn all(&self) -> impl Iterator<Item = Large> + '_ {
        self.ways.iter().map(|way| {
            let in_large = u64::from(self.tasks) * u64::from(way.eighths) / 8;
            Large {
                // No more than there are tasks.
                count: (in_large >> way.shift) as u32,
                shift: way.shift,
            }
        })
    }

    /// The large items of a run on a device with so many sub-warps of 8 lanes at a time: those of a way, or none.
    pub fn of_run(&self, joining: Joining, slots: u64) -> Large {
        let has_enough = |(way, large): &(&Way, Large)| {
            4 * u64::from(large.count) * joining.eights >= way.per_slot * slots
        };
        let best = self.ways.iter().zip(self.all()).find(has_enough);
        let best = best.map(|(_, large)| large);
        // Where a load brings a lane 4 bytes and not 16, a task's own cost is more of its time.
        let are_worth_it = self.for_all || joining.singles;
        let large = match joining.wanted {
            Some(false) => None,
            Some(true) => best.or(self.all().last()),
            None => best.filter(|_| are_worth_it),
        };
        large.unwrap_or(Large::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANNED: Joining = Joining {
        wanted: None,
        eights: 1,
        singles: false,
    };

    #[test]
    fn each_task_is_of_one_item_and_the_items_have_all_tasks() {
        for tasks in [0, 1, 2, 5, 31, 32, 33, 1000, 4099] {
            for many_rows_are_cut in [false, true] {
                let ways = Ways::of(tasks, many_rows_are_cut, false);
                for large in ways.all().chain([Large::NONE]) {
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
        let of_run = |tasks, joining| Ways::of(tasks, true, false).of_run(joining, 1000).shift;
        // 1250 items of eight tasks, 500 of four, 500 of two.
        assert_eq!(of_run(13_334, PLANNED), 3);
        assert_eq!(of_run(13_333, PLANNED), 2);
        assert_eq!(of_run(3_200, PLANNED), 2);
        assert_eq!(of_run(3_199, PLANNED), 1);
        assert_eq!(of_run(1_600, PLANNED), 1);
        assert_eq!(of_run(1_599, PLANNED), 0);
        // A sub-warp of all lanes is four of eight.
        let eights = 4;
        assert_eq!(of_run(3_339, Joining { eights, ..PLANNED }), 3);
        assert_eq!(of_run(3_338, Joining { eights, ..PLANNED }), 2);
    }

    #[test]
    fn tasks_are_joined_and_left_single_as_wanted() {
        let (few, many) = (Ways::of(10, true, false), Ways::of(100_000, true, false));
        let wanted = |wanted| Joining { wanted, ..PLANNED };
        assert_eq!(few.of_run(wanted(Some(true)), 1000).shift, 1);
        assert_eq!(many.of_run(wanted(Some(true)), 1000).shift, 3);
        assert_eq!(many.of_run(wanted(Some(false)), 1000), Large::NONE);
        assert_eq!(many.of_run(Joining::NONE, 1000), Large::NONE);
    }

    #[test]
    fn without_many_cut_rows_pairs_are_for_single_elements() {
        let ways = Ways::of(100_000, false, false);
        assert_eq!(ways.of_run(PLANNED, 1000), Large::NONE);
        let singles = true;
        assert_eq!(ways.of_run(Joining { singles, ..PLANNED }, 1000).shift, 1);
        let pairs = |ways: &Ways| ways.all().map(|large| large.shift).collect::<Vec<_>>();
        assert_eq!(pairs(&ways), [1]);
        assert_eq!(pairs(&Ways::of(100_000, true, true)), [1]);
    }

    #[test]
    fn the_tasks_of_the_largest_matrices_are_counted_in_64_bits() {
        let large: Vec<Large> = Ways::of(u32::MAX, true, false).all().collect();
        assert_eq!(large[0].count, 402_653_183);
    }
}
