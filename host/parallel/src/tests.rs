//! Every loop meets each number once, in any number of threads, and returns what a plain loop returns.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

const COUNTS: [usize; 7] = [0, 1, 2, 15, 33, 1000, 4097];

fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(work)
}

fn for_all(check: impl Fn(usize) + Sync) {
    for threads in [1, 2, 5] {
        on_threads(threads, || COUNTS.into_iter().for_each(&check));
    }
}

#[test]
fn each_number_is_met_once() {
    for_all(|count| {
        let met: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
        each(count, |number| {
            met[number].fetch_add(1, Ordering::Relaxed);
        });
        assert!(met.iter().all(|met| met.load(Ordering::Relaxed) == 1));
    });
}

#[test]
fn chunks_have_the_size_that_is_asked_for_and_the_last_one_the_rest() {
    for_all(|count| {
        for size in [1, 7, 1000, usize::MAX] {
            let chunks = map_chunks(count, size, |chunk| chunk);
            let mut next = 0;
            for chunk in &chunks {
                assert_eq!(chunk.start, next);
                assert!(!chunk.is_empty());
                assert!(chunk.len() == size || chunk.end == count);
                next = chunk.end;
            }
            assert_eq!(next, count);
        }
    });
}

#[test]
fn results_come_in_order() {
    for_all(|count| {
        let wanted: Vec<usize> = (0..count).map(|number| number * number).collect();
        assert_eq!(map(count, |number| number * number), wanted);
        let mut filled = vec![0; count];
        fill(&mut filled, |number| number * number);
        assert_eq!(filled, wanted);
        let repeated = flat_map(count, |number, list| {
            list.extend(std::iter::repeat_n(number, number % 3));
        });
        let wanted: Vec<usize> = (0..count)
            .flat_map(|number| vec![number; number % 3])
            .collect();
        assert_eq!(repeated, wanted);
    });
}

#[test]
fn reductions_keep_the_order_of_the_numbers() {
    for_all(|count| {
        let text = reduce(
            count,
            String::new,
            |number| format!("{number},"),
            |one, other| one + &other,
        );
        let wanted: String = (0..count).map(|number| format!("{number},")).collect();
        assert_eq!(text, wanted);
    });
}

#[test]
fn rows_are_whole_and_the_last_one_may_be_shorter() {
    for_all(|count| {
        for width in [1, 3, 64] {
            let mut elements = vec![(usize::MAX, 0); count];
            each_row_mut(&mut elements, width, |row, elements| {
                let length = elements.len();
                elements.fill((row, length));
            });
            for (number, &(row, length)) in elements.iter().enumerate() {
                assert_eq!(row, number / width);
                assert_eq!(length, width.min(count - row * width));
            }
        }
    });
}

#[test]
fn each_task_is_done_once() {
    for_all(|count| {
        let sum = Mutex::new(0);
        each_task((0..count).collect(), |task| {
            *sum.lock().unwrap() += task + 1
        });
        assert_eq!(sum.into_inner().unwrap(), count * (count + 1) / 2);
    });
}

#[test]
fn the_first_of_several_is_found() {
    for_all(|count| {
        let found = find_first(count, &|number| number % 20 == 14);
        assert_eq!(found, (count > 14).then_some(14));
    });
}

#[test]
fn numbers_are_sorted() {
    let scrambled = |count: usize| (0..count).map(move |number| number * 7919 % count.max(1));
    for_all(|count| {
        let mut short: Vec<u32> = scrambled(count).map(|number| number as u32).collect();
        let mut long: Vec<u64> = scrambled(count).map(|number| number as u64).collect();
        let (mut wanted_short, mut wanted_long) = (short.clone(), long.clone());
        wanted_short.sort_unstable();
        wanted_long.sort_unstable();
        sort_u32(&mut short);
        sort_u64(&mut long);
        assert_eq!(short, wanted_short);
        assert_eq!(long, wanted_long);
    });
}

#[test]
fn a_panic_of_a_body_reaches_the_caller() {
    let work = || each(100, |number| assert_ne!(number, 50, "number 50 panics"));
    let panic = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("number 50 panics"), "{text}");
}
