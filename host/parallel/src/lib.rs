//! Parallel loops on rayon's threads that compile fast.
//!
//! A generic function that calls rayon itself makes each crate that uses it compile some eighty functions of rayon for
//! each loop and each type. Here rayon is called by functions that are not generic, such as [`each_chunk`]. They call
//! the body of a loop through a pointer, mostly once for a chunk of numbers. What is generic is a plain loop over a
//! chunk. It is written with `for`, because iterator adapters would be compiled for each body again.
//!
//! Results come in the order of the numbers, whatever the threads do. If the body panics, the loop panics.

mod sort;

pub use sort::{sort_u32, sort_u64};

use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Threads that finish early take over chunks of other threads. Smaller chunks balance uneven rows better, but each
/// chunk costs a call and a lock.
const CHUNKS_PER_THREAD: usize = 64;

/// The chunk size of a loop over `count` numbers.
fn chunk_size(count: usize) -> usize {
    let chunks = CHUNKS_PER_THREAD * rayon::current_num_threads();
    count.div_ceil(chunks).max(1)
}

/// The chunk size for eight chunks per thread: for loops whose chunks allocate much memory.
#[must_use]
pub fn large_chunk_size(count: usize) -> usize {
    count.div_ceil(8 * rayon::current_num_threads()).max(1)
}

/// Calls `work` with each chunk of `0..count`. All chunks but the last have `size` numbers.
///
/// # Panics
///
/// If `size` is 0.
pub fn each_chunk(count: usize, size: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let chunks = (0..count.div_ceil(size)).into_par_iter();
    // Otherwise rayon may run several chunks as one piece, which other threads cannot take over.
    chunks.with_max_len(1).for_each(|chunk| {
        let start = chunk * size;
        work(start..count.min(start.saturating_add(size)));
    });
}

/// Calls `work` with each number of `0..count`.
pub fn each(count: usize, work: impl Fn(usize) + Sync) {
    each_chunk(count, chunk_size(count), &|chunk| {
        for number in chunk {
            work(number);
        }
    });
}

/// What `compute` returns for each chunk of `0..count`, in order. All chunks but the last have `size` numbers.
///
/// # Panics
///
/// If `size` is 0.
pub fn map_chunks<R: Send>(
    count: usize,
    size: usize,
    compute: impl Fn(Range<usize>) -> R + Sync,
) -> Vec<R> {
    let results = empty_places(count.div_ceil(size));
    each_chunk(count, size, &|chunk| {
        let place = &results[chunk.start / size];
        let result = compute(chunk);
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

/// Locks let several threads write without `unsafe`. They are held for a moment, so hardly anybody waits for one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `compute` returns for each number of `0..count`, in order.
pub fn map<R: Send>(count: usize, compute: impl Fn(usize) -> R + Sync) -> Vec<R> {
    flat_map(count, |number, list| list.push(compute(number)))
}

/// All that `append` pushes for the numbers of `0..count`, in order.
pub fn flat_map<R: Send>(count: usize, append: impl Fn(usize, &mut Vec<R>) + Sync) -> Vec<R> {
    let parts = map_chunks(count, chunk_size(count), |chunk| {
        // Most loops push one element for each number.
        let mut list = Vec::with_capacity(chunk.len());
        for number in chunk {
            append(number, &mut list);
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

/// What `compute` returns for all numbers of `0..count`, merged; `identity` if there are none. `merge` must be
/// associative, and `identity` its neutral element: how the numbers are grouped depends on the number of threads.
pub fn reduce<R: Send>(
    count: usize,
    identity: impl Fn() -> R + Sync,
    compute: impl Fn(usize) -> R + Sync,
    merge: impl Fn(R, R) -> R + Sync,
) -> R {
    let parts = map_chunks(count, chunk_size(count), |chunk| {
        let mut merged = identity();
        for number in chunk {
            merged = merge(merged, compute(number));
        }
        merged
    });
    let mut merged = identity();
    for part in parts {
        merged = merge(merged, part);
    }
    merged
}

/// The smallest number of `0..count` for which `is_wanted` returns true.
#[must_use]
pub fn find_first(count: usize, is_wanted: &(dyn Fn(usize) -> bool + Sync)) -> Option<usize> {
    let numbers = (0..count).into_par_iter();
    numbers.find_first(|&number| is_wanted(number))
}

/// Calls `work` with the number of each chunk of `size` elements, and the chunk. The last chunk may be shorter.
fn each_chunk_mut<T: Send>(elements: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let count = elements.len().div_ceil(size);
    let chunks = Mutex::new(elements.chunks_mut(size).enumerate());
    each_chunk(count, 1, &|_| {
        // The lock is held while a chunk is taken, not while it is worked on.
        let next = lock(&chunks).next();
        if let Some((number, chunk)) = next {
            work(number, chunk);
        }
    });
}

/// Calls `work` with the number of each row of `width` elements, and the row. The last row may be shorter.
///
/// # Panics
///
/// If `width` is 0.
pub fn each_row_mut<T: Send>(
    elements: &mut [T],
    width: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let rows = chunk_size(elements.len().div_ceil(width));
    each_chunk_mut(elements, rows * width, |chunk, elements| {
        for (row, elements) in (chunk * rows..).zip(elements.chunks_mut(width)) {
            work(row, elements);
        }
    });
}

/// Sets each element to what `compute` returns for its number.
pub fn fill<T: Send>(elements: &mut [T], compute: impl Fn(usize) -> T + Sync) {
    let size = chunk_size(elements.len());
    each_chunk_mut(elements, size, |chunk, elements| {
        for (number, element) in (chunk * size..).zip(elements) {
            *element = compute(number);
        }
    });
}

/// Calls `work` with each task.
pub fn each_task<T: Send>(tasks: Vec<T>, work: impl Fn(T) + Sync) {
    let mut tasks: Vec<Option<T>> = tasks.into_iter().map(Some).collect();
    let size = chunk_size(tasks.len());
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
