//! Parallel loops on rayon's threads that compile fast.
//!
//! A generic function that calls rayon itself makes each crate that uses it compile some eighty functions of rayon for
//! each loop and each type. Here rayon is called by functions that are not generic: [`each_part`] and its like. They
//! call the body of a loop through a pointer, once for each part of the loop. What is generic is a plain loop over a
//! part: it is written with `for`, as adapters of iterators would be compiled for each body again.
//!
//! Results come in the order of the numbers, whatever the threads do.

mod sort;

pub use sort::{sort_u32, sort_u64};

use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts of a loop for each thread: a thread that is done early takes another one.
const PARTS_OF_THREAD: usize = 16;

/// The numbers of a part, for a loop over so many.
fn part_size(count: usize) -> usize {
    let parts = PARTS_OF_THREAD * rayon::current_num_threads();
    count.div_ceil(parts).max(1)
}

/// The numbers of a part if each thread has about two parts: for parts that need much memory of their own.
#[must_use]
pub fn size_of_few_parts(count: usize) -> usize {
    count.div_ceil(2 * rayon::current_num_threads()).max(1)
}

/// Calls `work` with each part of `0..count`. All parts but the last have `size` numbers.
///
/// # Panics
///
/// If `size` is 0, or `work` panics.
pub fn each_part(count: usize, size: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    (0..count.div_ceil(size)).into_par_iter().for_each(|part| {
        let start = part * size;
        work(start..count.min(start.saturating_add(size)));
    });
}

/// Calls `work` with each number of `0..count`.
pub fn each(count: usize, work: impl Fn(usize) + Sync) {
    each_part(count, part_size(count), &|part| {
        for number in part {
            work(number);
        }
    });
}

/// What `of` returns for each part of `0..count`, in order. All parts but the last have `size` numbers.
///
/// # Panics
///
/// If `size` is 0, or `of` panics.
pub fn map_parts<R: Send>(
    count: usize,
    size: usize,
    of: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let results = empty_places(count.div_ceil(size));
    each_part(count, size, &|part| {
        let place = &results[part.start / size];
        let result = of(part);
        *lock(place) = Some(result);
    });
    in_order(results)
}

fn empty_places<R>(count: usize) -> Vec<Mutex<Option<R>>> {
    let mut places = Vec::new();
    places.resize_with(count, || Mutex::new(None));
    places
}

fn in_order<R>(results: Vec<Mutex<Option<R>>>) -> Vec<R> {
    let results = results.into_iter();
    let results = results.map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
    results.flatten().collect()
}

/// Locks what one part of a loop alone uses: it waits for nobody, and nobody has panicked with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `of` returns for each number of `0..count`, in order.
pub fn map<R: Send>(count: usize, of: impl Fn(usize) -> R + Sync) -> Vec<R> {
    collect(count, |number, list| list.push(of(number)))
}

/// All that `of` appends to a list for the numbers of `0..count`, in order.
pub fn collect<R: Send>(count: usize, of: impl Fn(usize, &mut Vec<R>) + Sync) -> Vec<R> {
    let parts = map_parts(count, part_size(count), |part| {
        // Most loops append one element for each number.
        let mut list = Vec::with_capacity(part.len());
        for number in part {
            of(number, &mut list);
        }
        list
    });
    concatenate(parts)
}

fn concatenate<R>(parts: Vec<Vec<R>>) -> Vec<R> {
    let mut all = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    for mut part in parts {
        all.append(&mut part);
    }
    all
}

/// What `of` returns for all numbers of `0..count`, merged; `empty` if there are none. `merge` must be associative, and
/// `empty` its neutral element.
pub fn reduce<R: Send>(
    count: usize,
    empty: impl Fn() -> R + Sync,
    of: impl Fn(usize) -> R + Sync,
    merge: impl Fn(R, R) -> R + Sync,
) -> R {
    let parts = map_parts(count, part_size(count), |part| {
        let mut merged = empty();
        for number in part {
            merged = merge(merged, of(number));
        }
        merged
    });
    let mut merged = empty();
    for part in parts {
        merged = merge(merged, part);
    }
    merged
}

/// The least number of `0..count` for which `is_wanted` returns true.
#[must_use]
pub fn find_first(count: usize, is_wanted: &(dyn Fn(usize) -> bool + Sync)) -> Option<usize> {
    let numbers = (0..count).into_par_iter();
    numbers.find_first(|&number| is_wanted(number))
}

/// Calls `work` with the number of each chunk of `size` elements, and the chunk. The last chunk may be shorter.
fn each_chunk_mut<T: Send>(elements: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let chunks: Vec<Mutex<&mut [T]>> = elements.chunks_mut(size).map(Mutex::new).collect();
    each_part(chunks.len(), 1, &|part| {
        work(part.start, &mut lock(&chunks[part.start]));
    });
}

/// Calls `work` with the number of each row of `width` elements, and the row. The last row may be shorter.
///
/// # Panics
///
/// If `width` is 0, or `work` panics.
pub fn each_row_mut<T: Send>(
    elements: &mut [T],
    width: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let rows = part_size(elements.len().div_ceil(width));
    each_chunk_mut(elements, rows * width, |chunk, elements| {
        for (row, elements) in (chunk * rows..).zip(elements.chunks_mut(width)) {
            work(row, elements);
        }
    });
}

/// Sets each element to what `of` returns for its number.
pub fn fill<T: Send>(elements: &mut [T], of: impl Fn(usize) -> T + Sync) {
    let size = part_size(elements.len());
    each_chunk_mut(elements, size, |chunk, elements| {
        for (number, element) in (chunk * size..).zip(elements) {
            *element = of(number);
        }
    });
}

/// Calls `work` with each task.
pub fn each_task<T: Send>(tasks: Vec<T>, work: impl Fn(T) + Sync) {
    let mut tasks: Vec<Option<T>> = tasks.into_iter().map(Some).collect();
    let size = part_size(tasks.len());
    each_chunk_mut(&mut tasks, size, |_, tasks| {
        for task in tasks {
            if let Some(task) = task.take() {
                work(task);
            }
        }
    });
}

#[cfg(test)]
mod tests;
