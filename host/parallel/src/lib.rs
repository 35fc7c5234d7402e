//! Parallel loops on rayon's threads that compile fast.
//!
//! A generic function that calls rayon itself makes each crate that uses it compile some eighty functions of rayon for
//! each loop and each type. Here rayon is called by functions that are not generic: [`each_part`] and its like. They
//! call the body of a loop through a pointer, once for each part of the loop; what is generic is a plain loop over a
//! part.
//!
//! Parts are the same whatever the threads do, and results come in the order of the numbers.

mod sort;

pub use sort::{sort_u32, sort_u64};

use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

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
    each_part(count, part_size(count), &|part| part.for_each(&work));
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
    let mut results: Vec<Option<R>> = Vec::new();
    results.resize_with(count.div_ceil(size), || None);
    each_with(&mut results, |part, result| {
        let start = part * size;
        *result = Some(of(start..count.min(start.saturating_add(size))));
    });
    results.into_iter().flatten().collect()
}

/// Calls `work` with the number and the element of each place.
fn each_with<T: Send>(elements: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    each_row_mut(elements, 1, |number, element| work(number, &mut element[0]));
}

/// What `of` returns for each number of `0..count`, in order.
pub fn map<R: Send>(count: usize, of: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let parts = map_parts(count, part_size(count), |part| {
        part.map(&of).collect::<Vec<R>>()
    });
    concatenate(count, parts)
}

/// All that `of` appends to a list for the numbers of `0..count`, in order.
pub fn collect<R: Send>(count: usize, of: impl Fn(usize, &mut Vec<R>) + Sync) -> Vec<R> {
    let parts = map_parts(count, part_size(count), |part| {
        let mut list = Vec::new();
        part.for_each(|number| of(number, &mut list));
        list
    });
    concatenate(parts.iter().map(Vec::len).sum(), parts)
}

fn concatenate<R>(length: usize, parts: Vec<Vec<R>>) -> Vec<R> {
    let mut all = Vec::with_capacity(length);
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
        part.map(&of).fold(empty(), &merge)
    });
    parts.into_iter().fold(empty(), merge)
}

/// The least number of `0..count` for which `is_wanted` returns true.
#[must_use]
pub fn find_first(count: usize, is_wanted: &(dyn Fn(usize) -> bool + Sync)) -> Option<usize> {
    let numbers = (0..count).into_par_iter();
    numbers.find_first(|&number| is_wanted(number))
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
    let rows = elements.len().div_ceil(width);
    let size = part_size(rows);
    let parts: Vec<Mutex<&mut [T]>> = elements.chunks_mut(size * width).map(Mutex::new).collect();
    each_part(rows, size, &|part| {
        // Nobody else locks it, so a panic has not happened here before.
        let elements = parts[part.start / size].lock();
        let mut elements = elements.unwrap_or_else(PoisonError::into_inner);
        for (row, elements) in part.zip(elements.chunks_mut(width)) {
            work(row, elements);
        }
    });
}

/// Sets each element to what `of` returns for its number.
pub fn fill<T: Send>(elements: &mut [T], of: impl Fn(usize) -> T + Sync) {
    each_with(elements, |number, element| *element = of(number));
}

/// Calls `work` with each task.
pub fn each_task<T: Send>(tasks: Vec<T>, work: impl Fn(T) + Sync) {
    let mut tasks: Vec<Option<T>> = tasks.into_iter().map(Some).collect();
    each_with(&mut tasks, |_, task| {
        if let Some(task) = task.take() {
            work(task);
        }
    });
}

#[cfg(test)]
mod tests;
