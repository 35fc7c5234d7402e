//! That the memory taken is in the order of the input's size, measured by an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use proptest::prelude::*;
use warprow::matrix_market::ReadOptions;

use super::{GENERAL, PATTERN, SYMMETRIC, gzip};

/// What a reader holds whatever it reads: the chunk of text and the decompressor's window.
const FIXED: usize = 1 << 20;

/// Bytes for a byte of text: the shortest entry, `1 1` and a line end, takes two triplets if it is symmetric.
const FOR_A_BYTE: usize = 32;

/// The system's allocator; counts what each thread holds and the most it held.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST_HELD: Cell<usize> = const { Cell::new(0) };
}

fn count(allocated: usize, freed: usize) {
    // Memory that another thread allocated may be freed here.
    let held = (HELD.get() + allocated).saturating_sub(freed);
    HELD.set(held);
    MOST_HELD.set(MOST_HELD.get().max(held));
}

// SAFETY: every call goes to the system's allocator with the arguments given; counting neither allocates nor unwinds,
// and its thread locals have no destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are held while the content is copied.
        count(size, 0);
        count(0, layout.size());
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were held at a time while `text` was read, besides those held before.
fn most_held(options: &ReadOptions, text: &[u8]) -> usize {
    let before = HELD.get();
    MOST_HELD.set(before);
    let _ = options.parse::<f64>(text, "");
    MOST_HELD.get() - before
}

fn without_sparse_rows() -> ReadOptions {
    ReadOptions::default().max_sparse_rows(0)
}

#[test]
fn a_header_alone_takes_no_memory() {
    for header in [
        format!("{GENERAL}1000000 1000000 4000000000\n1 1 1\n"),
        format!("{GENERAL}4294967294 4294967295 4294967295\n1 1 1\n"),
        format!("{GENERAL}4294967294 1 0\n"),
    ] {
        assert!(
            most_held(&ReadOptions::default(), header.as_bytes()) < FIXED,
            "{header}"
        );
    }
}

#[test]
fn rows_without_entries_take_the_memory_documented() {
    let rows = 1 << 22;
    let text = format!("{GENERAL}{rows} 1 0\n");
    let held = most_held(
        &ReadOptions::default().max_sparse_rows(rows),
        text.as_bytes(),
    );
    assert!(
        (4 * rows as usize..4 * rows as usize + FIXED).contains(&held),
        "{held}"
    );
}

#[test]
fn the_shortest_entries_take_memory_in_proportion() {
    let entries = 300_000;
    for (banner, entry) in [
        (PATTERN, "1 1\n"),
        (GENERAL, "2 1 1\n"),
        (SYMMETRIC, "2 1 1\n"),
    ] {
        let text = format!(
            "{banner}{entries} {entries} {entries}\n{}",
            entry.repeat(entries)
        );
        let held = most_held(&without_sparse_rows(), text.as_bytes());
        assert!(
            held < FIXED + FOR_A_BYTE * text.len(),
            "{held} for {}",
            text.len()
        );
    }
}

#[test]
fn a_comment_without_end_takes_no_memory() {
    let comment = [GENERAL.as_bytes(), &b"%".repeat(1 << 24)].concat();
    assert!(most_held(&ReadOptions::default(), &comment) < FIXED);
    // Below the length from which on the ratio counts.
    assert!(most_held(&ReadOptions::default(), &gzip(&comment[..15 << 20])) < FIXED);
}

proptest! {
    #[test]
    fn no_text_takes_memory_out_of_proportion(
        rows in any::<u32>(),
        columns in any::<u32>(),
        entries in any::<u32>(),
        rest in "([0-9]{1,4} [0-9]{1,4} [0-9]\n){0,100}",
        compress in any::<bool>(),
    ) {
        let text = format!("{GENERAL}{rows} {columns} {entries}\n{rest}").into_bytes();
        let bytes = if compress { gzip(&text) } else { text };
        prop_assert!(most_held(&without_sparse_rows(), &bytes) < FIXED);
    }
}
