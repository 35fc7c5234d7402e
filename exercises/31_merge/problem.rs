//! # 31: Merging two sorted lists
//!
//! The first step of adding two sparse rows merges their sorted lists of columns. Equal columns stay, side by side; a
//! later step adds their values up. One thread could merge the lists step by step. Many threads can merge them at once:
//! each thread takes one element and computes its place in the result:
//!
//! ```text
//! a     2   5   9             place of a[1] = 1 + (elements of b less than 5: two) = 3
//! b     1   3   9             place of b[2] = 2 + (elements of a up to 9: three) = 5
//! c     1   2   3   5   9   9
//! ```
//!
//! If both lists have an element, that of `a` comes first. So the thread of an element of `a` counts the elements of
//! `b` that are less. The thread of an element of `b` counts the elements of `a` that are less or equal. If both
//! counted in the same way, equal elements would get the same place.
//!
//! The kernel as delivered counts one element after the other. The result is right, but it needs many loads.
//!
//! Your task: use a binary search.
//!
//! The file as delivered fails with too many "load requests to global memory; the maximum is 300".

use cuda_std::prelude::*;

/// The number of elements of the sorted `list` that stand before `element`: those that are less, and with `or_equal`
/// those that are equal.
///
/// # Safety
///
/// `list` holds `length` elements.
unsafe fn count_before(list: Global<u32>, length: usize, element: u32, or_equal: bool) -> usize {
    let mut count = 0;
    while count < length {
        // SAFETY: `count` is less than the length.
        let other = unsafe { list.load(count) };
        if other > element || !or_equal && other == element {
            break;
        }
        count += 1;
    }
    count
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
