//! Tests of the sizes of tasks, and of the ways to join them.

use super::*;

fn sizes(max_task_size: Option<u32>, resident: Option<u64>, prefer_joined: bool) -> ItemSizes {
    ItemSizes {
        requested: None,
        max_task_size,
        resident: resident.map(|count| ResidentTasks {
            count,
            prefer_joined,
        }),
        even_row: None,
        wave: None,
        lanes_of_nonzero: 2,
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

#[test]
fn tasks_of_few_even_rows_have_whole_rows() {
    let of = |steps, row, resident, requested| {
        let sizes = ItemSizes {
            requested,
            even_row: Some(row),
            ..sizes(None, resident, false)
        };
        let sizes = TaskSizes::of_steps(steps, 10_000, sizes);
        (sizes.few_split_rows, sizes.least_split_row)
    };
    // Without even rows, tasks have 154 steps.
    assert_eq!(of(7_700_000, 130, None, None), (130, 260));
    assert_eq!(of(7_700_000, 100, None, None), (200, 300));
    assert_eq!(of(7_700_000, 66, None, None), (132, 198));
    assert_eq!(of(7_700_000, 42, None, None), (168, 210));
    assert_eq!(of(7_700_000, 256, None, None), (256, 512));
    // A part of a row, and many rows.
    assert_eq!(of(7_700_000, 257, None, None), (154, 64));
    assert_eq!(of(7_700_000, 38, None, None), (154, 64));
    assert_eq!(of(7_700_000, 130, None, Some(77)), (77, 1));
    // All run at the same time.
    assert_eq!(of(1_500_000, 130, Some(10_000), None), (150, 64));
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
