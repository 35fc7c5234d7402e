//! With `low = middle` the distance does not shrink if it is 1.

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
        let other = unsafe { list.load(middle) };
        if other < element || or_equal && other == element {
            low = middle;
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
