//! The different numbers among a few, such as the sectors of a request.

/// Maximum number of different numbers.
pub(crate) const MAX_DISTINCT: usize = 64;
/// Slots of the hash table, twice as many.
const SLOTS: usize = 2 * MAX_DISTINCT;
/// A slot without a number.
const FREE: u8 = u8::MAX;

/// Up to [`MAX_DISTINCT`] different numbers, in the order in which they were added.
pub(crate) struct Distinct {
    numbers: [u64; MAX_DISTINCT],
    len: usize,
    /// The place of a number in `numbers`, at the first free slot from its hash on.
    slots: [u8; SLOTS],
}

impl Distinct {
    pub const fn new() -> Self {
        Self {
            numbers: [0; MAX_DISTINCT],
            len: 0,
            slots: [FREE; SLOTS],
        }
    }

    /// Forgets all numbers.
    pub fn clear(&mut self) {
        self.len = 0;
        self.slots = [FREE; SLOTS];
    }

    /// The numbers in their order.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers[..self.len]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a number, if it is not there. Returns whether it was not.
    pub fn is_new(&mut self, number: u64) -> bool {
        let len = self.len;
        self.add(number) == len
    }

    /// Adds a number, if it is not there. Returns its place.
    #[inline(always)]
    pub fn add(&mut self, number: u64) -> usize {
        // Multiplied by 2^64 divided by the golden ratio, neighbouring numbers lie far apart.
        let mut slot = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize;
        loop {
            let place = usize::from(self.slots[slot]);
            if place == usize::from(FREE) {
                self.slots[slot] = self.len as u8;
                self.numbers[self.len] = number;
                self.len += 1;
                return self.len - 1;
            }
            if self.numbers[place] == number {
                return place;
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_place_in_the_order_of_the_first() {
        let mut distinct = Distinct::new();
        let added = [7, 0, 7, u64::MAX, 0, 9].map(|number| distinct.add(number));
        assert_eq!(added, [0, 1, 0, 2, 1, 3]);
        assert_eq!(distinct.numbers(), [7, 0, u64::MAX, 9]);
    }

    #[test]
    fn as_many_as_fit_are_told_apart() {
        for stride in [1, 128, 1 << 32, 0x9e37_79b9] {
            let mut distinct = Distinct::new();
            for round in 0..2 {
                for number in 0..MAX_DISTINCT as u64 {
                    let place = distinct.add(number.wrapping_mul(stride));
                    assert_eq!(place as u64, number, "round {round}, stride {stride}");
                }
            }
            assert_eq!(distinct.len(), MAX_DISTINCT);
        }
    }
}
