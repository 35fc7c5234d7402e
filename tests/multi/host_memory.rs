//! Results are gathered without a second full copy.

use ndarray::Array2;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::NonZeroUsize;
use warprow::device::EmulatorOptions;
use warprow::multi::{
    Devices, DivisionOptions, MultiSpgemmOptions, MultiSpmmOptions, Spgemm, Spmm,
};
use warprow::{RowOrder, generate};

/// The system's allocator, which counts what each thread has allocated.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// Bytes that this thread has allocated and not freed, and the most of them so far.
    static LIVE: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(bytes: isize) {
    // A thread that ends has no counters any more.
    let _ = LIVE.try_with(|live| {
        let (now, most) = live.get();
        let now = now + bytes;
        live.set((now, most.max(now)));
    });
}

// SAFETY: the system's allocator does all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(address, layout) }
    }
}

/// The most bytes that this thread has allocated at a time during `work`.
fn most_allocated<R>(work: impl FnOnce() -> R) -> (R, usize) {
    LIVE.set((0, 0));
    let result = work();
    (result, LIVE.get().1 as usize)
}

fn devices(count: usize) -> Devices {
    let count = NonZeroUsize::new(count).unwrap();
    Devices::emulators(count, EmulatorOptions::default()).unwrap()
}

#[test]
fn a_list_is_counted_until_it_is_freed() {
    let (_, most) = most_allocated(|| {
        drop(vec![1_u8; 1000]);
        vec![0_u8; 500]
    });
    assert_eq!(most, 1000);
}

#[test]
fn a_sparse_product_is_gathered_with_the_memory_of_one_copy() {
    let a = generate::uniform::<f32>(500, 500, 6000, 1).unwrap();
    let given = MultiSpgemmOptions::default();
    let ordered = given.division(DivisionOptions::new().order(RowOrder::FirstColumn));
    for options in [given, ordered] {
        let spgemm = Spgemm::plan(&devices(3), a.view(), a.view(), options).unwrap();
        let parts = spgemm.compute().unwrap();
        let (c, most) = most_allocated(|| spgemm.gather(&parts).unwrap());
        let bytes = c.nnz() * (size_of::<u32>() + size_of::<f32>());
        assert!(most >= bytes, "C itself is counted: {most} of {bytes}");
        assert!(most < bytes + bytes / 4, "{most} bytes for {bytes}");
    }
}

#[test]
fn a_dense_product_is_gathered_with_at_most_a_part_more_than_one_copy() {
    let a = generate::uniform::<f32>(800, 800, 4000, 1).unwrap();
    let x = Array2::from_elem((800, 40), 1.0_f32);
    let bytes = 800 * 40 * size_of::<f32>();
    for (order, parts_more) in [(RowOrder::Given, 0), (RowOrder::FirstColumn, 1)] {
        let options = MultiSpmmOptions::new().division(DivisionOptions::new().order(order));
        let spmm = Spmm::plan(&devices(4), a.view(), options).unwrap();
        let mut x = spmm.upload(x.view()).unwrap();
        let mut y = spmm.result(40).unwrap();
        spmm.run(&mut x, &mut y).unwrap();
        let (whole, most) = most_allocated(|| spmm.download(&y).unwrap());
        assert_eq!(whole.len() * size_of::<f32>(), bytes);
        let bound = bytes + bytes * 3 / 10 * parts_more + bytes / 20;
        assert!(most >= bytes && most < bound, "{most} bytes for {bytes}");
    }
}
