//! Buckets of equal width over the columns of a row, in the order of the columns.
//!
//! ```text
//! columns 3 to 18, four buckets     3..6   7..10   11..14   15..18
//! column 12                         (12 - 3) >> 2 = bucket 2
//! ```

/// The buckets of the columns of a row.
#[derive(Clone, Copy)]
pub struct ColumnBuckets {
    /// The first column of the first bucket.
    first: u32,
    /// The binary logarithm of the columns of a bucket.
    shift: u32,
}

impl ColumnBuckets {
    /// At most `count` buckets, a power of two from 2 on, for `span` columns from `first` on. The
    /// span is at least 1.
    #[inline(always)]
    pub fn new(first: u32, span: u32, count: u32) -> Self {
        let bits = u32::BITS - (span - 1).leading_zeros();
        Self {
            first,
            shift: bits.saturating_sub(count.trailing_zeros()),
        }
    }

    /// The bucket of a column of the span.
    #[inline(always)]
    pub fn of(self, column: u32) -> usize {
        ((column - self.first) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::ColumnBuckets;

    #[test]
    fn buckets_are_as_many_as_asked_and_ascend_with_the_columns() {
        for (first, span, count) in [
            (0, 1, 2),
            (7, 1, 128),
            (3, 16, 4),
            (3, 17, 4),
            (5, 4096, 512),
            (5, 4097, 512),
            (0, u32::MAX, 8192),
        ] {
            let buckets = ColumnBuckets::new(first, span, count);
            let last = first + (span - 1);
            assert_eq!(buckets.of(first), 0);
            assert!(buckets.of(last) < count as usize, "{first} {span} {count}");
            // With half as many columns in a bucket they would not be enough.
            if span > count {
                assert!(buckets.of(last) >= count as usize / 2);
            }
            let middle = first + span / 2;
            assert!(buckets.of(middle) <= buckets.of(last));
        }
    }
}
