//! The different numbers among a few, such as the sectors of a request.

/// Maximum number of different numbers.
const MAX_DISTINCT: usize = 64;
/// Slots of the hash table, twice as many.
pub(crate) const SLOTS: usize = 2 * MAX_DISTINCT;

/// Up to 64 different numbers, in the order in which they were added: a hash table.
pub(crate) struct Distinct {
    numbers: [u64; SLOTS],
    /// Whether a slot has a number.
    used: [bool; SLOTS],
    /// The slots of the numbers, in the order in which they were added.
    order: [u8; MAX_DISTINCT],
    len: usize,
}

impl Distinct {
    pub const fn new() -> Self {
        Self {
            numbers: [0; SLOTS],
            used: [false; SLOTS],
            order: [0; MAX_DISTINCT],
            len: 0,
        }
    }

    /// Forgets all numbers.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.len = 0;
        self.used = [false; SLOTS];
    }

    /// The slots of the numbers, and the numbers, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let slots = self.order[..self.len].iter().map(|&slot| usize::from(slot));
        slots.map(|slot| (slot, self.numbers[slot]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a number, if it is not there. Returns its slot, which is less than [`SLOTS`], and whether it is new.
    #[inline(always)]
    pub fn add(&mut self, number: u64) -> (usize, bool) {
        // Multiplied by 2^64 divided by the golden ratio, neighbouring numbers lie far apart.
        let mut slot = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize;
        while self.used[slot] {
            if self.numbers[slot] == number {
                return (slot, false);
            }
            slot = (slot + 1) % SLOTS;
        }
        self.used[slot] = true;
        self.numbers[slot] = number;
        self.order[self.len] = slot as u8;
        self.len += 1;
        (slot, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_order_in_which_they_came_first() {
        let mut distinct = Distinct::new();
        let new = [7, 0, 7, u64::MAX, 0, 9].map(|number| distinct.add(number).1);
        assert_eq!(new, [true, true, false, true, false, true]);
        let numbers: Vec<_> = distinct.iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, [7, 0, u64::MAX, 9]);
        distinct.clear();
        assert_eq!((distinct.len(), distinct.add(9).1), (0, true));
    }

    #[test]
    fn as_many_as_fit_are_told_apart() {
        for stride in [1, 128, 1 << 32, 0x9e37_79b9] {
            let mut distinct = Distinct::new();
            let numbers = (0..MAX_DISTINCT as u64).map(|number| number.wrapping_mul(stride));
            let slots: Vec<_> = numbers.clone().map(|number| distinct.add(number)).collect();
            for (number, (slot, is_new)) in numbers.zip(slots) {
                assert!(is_new, "{number}, stride {stride}");
                assert_eq!(distinct.add(number), (slot, false), "stride {stride}");
            }
            assert_eq!(distinct.len(), MAX_DISTINCT);
        }
    }
}
