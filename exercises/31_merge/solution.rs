//! A binary search for the first element of the other list that stands behind.

use cuda_std::prelude::*;

/// The number of elements of the sorted `list` that stand before `element`: those that are less, and with `or_equal`
/// those that are equal.
///
/// # Safety
///
/// `list` holds `length` elements.
unsafe fn count_before(list: Global<u32>, length: usize, element: u32, or_equal: bool) -> usize {
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = (low + high) / 2;
        // SAFETY: `middle` is less than `high`, which is at most the length.
        let other = unsafe { list.load(middle) };
        if other < element || or_equal && other == element {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// `c` = the elements of `a` and `b`, sorted; one thread for each element.
///
/// # Safety
///
/// `a` and `b` hold as many elements as their lengths say, sorted; none is twice in one list. `c` holds as many as
/// both.
#[kernel]
pub unsafe fn merge(
    a_length: u32,
    b_length: u32,
    a: Global<u32>,
    b: Global<u32>,
    c: GlobalMut<u32>,
) {
    let i = thread::index_1d() as usize;
    let (a_length, b_length) = (a_length as usize, b_length as usize);
    // SAFETY: each branch checks that its element of `a` or of `b` exists. An element's place is its index in its own
    // list plus a count of elements of the other list, so it is less than the length of `c`. No two elements have the
    // same place: equal ones of `a` and `b` count each other in one direction only.
    unsafe {
        if i < a_length {
            let element = a.load(i);
            c.store(i + count_before(b, b_length, element, false), element);
        } else if i - a_length < b_length {
            let element = b.load(i - a_length);
            c.store(
                i - a_length + count_before(a, a_length, element, true),
                element,
            );
        }
    }
}
