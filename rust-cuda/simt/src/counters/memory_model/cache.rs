//! A cache with lines of four sectors.

use std::collections::HashMap;

use crate::memory::regions::{OFFSET_BITS, SLOTS};

/// Sectors of a line.
pub(super) const SECTORS: u64 = 4;
/// Lines of a set.
const WAYS: usize = 16;
/// Bytes of a line.
const LINE: u64 = 128;
/// Lines of a region of addresses, which all buffers of an emulator share.
const REGION_LINES: u64 = ((SLOTS as u64) << OFFSET_BITS) / LINE;
/// One cache. A sector of it is valid, or it has some bytes that were written, or it has nothing.
///
/// Most launches use a small part of an L2 cache. What starts as zero takes neither time nor memory until it is used.
pub(super) struct Cache {
    /// The numbers of the lines of each set, plus one; zero for an empty line. The line that was used last comes first.
    numbers: Vec<[u64; WAYS]>,
    /// For each line, a bit for each sector that is valid, and above them one for each that was written in part.
    states: Vec<[u8; WAYS]>,
    /// The bytes that were written of each sector that is not valid.
    written: HashMap<u64, u32>,
}

/// The place of the bits of sectors that were written in part.
const PART: u32 = SECTORS as u32;

impl Cache {
    /// An empty cache.
    pub fn new(bytes: u64) -> Self {
        let sets = (bytes / LINE / WAYS as u64).max(1) as usize;
        Self {
            numbers: vec![[0; WAYS]; sets],
            states: vec![[0; WAYS]; sets],
            written: HashMap::new(),
        }
    }

    /// Reads sectors of a line. Returns those that were missing; now they are valid.
    #[inline]
    pub fn read(&mut self, line: u64, sectors: u8) -> u8 {
        let set = self.get(line);
        let missing = sectors & !self.states[set][0];
        self.fill(set, line, missing);
        missing
    }

    /// Writes whole sectors of a line.
    pub fn write(&mut self, line: u64, sectors: u8) {
        let set = self.get(line);
        self.fill(set, line, sectors);
    }

    /// Writes bytes of a sector. A sector is valid when all its bytes have been written.
    pub fn write_part(&mut self, sector: u64, bytes: u32) {
        let (line, bit) = (sector / SECTORS, 1 << (sector % SECTORS));
        let set = self.get(line);
        if self.states[set][0] & bit == 0 {
            self.states[set][0] |= bit << PART;
            let written = self.written.entry(sector).or_default();
            *written |= bytes;
            if *written == u32::MAX {
                self.fill(set, line, bit);
            }
        }
    }

    /// Makes sectors of a line invalid.
    pub fn forget(&mut self, line: u64, sectors: u8) {
        let set = self.set(line);
        if let Some(way) = self.find(set, line) {
            self.states[set][way] &= !sectors;
        }
    }

    /// The set of a line.
    #[inline]
    fn set(&self, line: u64) -> usize {
        // Multiplied by 2^64 divided by the golden ratio, neighbouring numbers lie far apart. Without the number of the
        // region, each emulator of a process gets the same result.
        let hash = (line % REGION_LINES).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(hash) * self.numbers.len() as u128) >> 64) as usize
    }

    /// The place of a line in its set, if it is there.
    #[inline]
    fn find(&self, set: usize, line: u64) -> Option<usize> {
        let is_line = |&number: &u64| number == line + 1;
        self.numbers[set].iter().position(is_line)
    }

    /// Makes a line the first of its set, which is returned. If the cache does not have it, it replaces the one that
    /// was not used for the longest time, without valid sectors.
    #[inline]
    fn get(&mut self, line: u64) -> usize {
        let set = self.set(line);
        if self.numbers[set][0] == line + 1 {
            return set;
        }
        let way = self.find(set, line).unwrap_or_else(|| {
            self.replace_last(set, line);
            WAYS - 1
        });
        self.numbers[set][..=way].rotate_right(1);
        self.states[set][..=way].rotate_right(1);
        set
    }

    /// Puts a line in the place of the last one of a set.
    #[inline]
    fn replace_last(&mut self, set: usize, line: u64) {
        let state = std::mem::take(&mut self.states[set][WAYS - 1]);
        let old = std::mem::replace(&mut self.numbers[set][WAYS - 1], line + 1);
        if state >> PART != 0 {
            self.forget_written(old - 1, state >> PART);
        }
    }

    /// Makes sectors of the first line of a set valid.
    #[inline]
    fn fill(&mut self, set: usize, line: u64, sectors: u8) {
        let state = &mut self.states[set][0];
        let parts = *state >> PART & sectors;
        *state = (*state | sectors) & !(parts << PART);
        if parts != 0 {
            self.forget_written(line, parts);
        }
    }

    /// Forgets what was written of some sectors of a line.
    #[cold]
    fn forget_written(&mut self, line: u64, sectors: u8) {
        for bit in 0..SECTORS {
            if sectors >> bit & 1 != 0 {
                self.written.remove(&(line * SECTORS + bit));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of one set.
    fn small() -> Cache {
        Cache::new(WAYS as u64 * LINE)
    }

    #[test]
    fn a_sector_is_missing_once() {
        let mut cache = small();
        assert_eq!(cache.read(7, 0b0011), 0b0011);
        assert_eq!(cache.read(7, 0b0110), 0b0100);
        assert_eq!(cache.read(7, 0b0111), 0);
        assert_eq!(cache.read(0, 0b0001), 0b0001);
    }

    #[test]
    fn the_line_that_was_not_used_for_the_longest_time_leaves() {
        let mut cache = small();
        for line in 0..16 {
            assert_eq!(cache.read(line, 1), 1);
        }
        assert_eq!(cache.read(0, 1), 0);
        // Line 1 leaves, and then line 2.
        assert_eq!(cache.read(16, 1), 1);
        assert_eq!(cache.read(0, 1), 0);
        assert_eq!(cache.read(1, 1), 1);
        assert_eq!(cache.read(3, 1), 0);
        assert_eq!(cache.read(2, 1), 1);
    }

    #[test]
    fn a_cache_holds_nearly_as_many_bytes_as_it_has() {
        let mut cache = Cache::new(1 << 20);
        let lines = 1 << 12;
        let mut missing = |line| cache.read(line, 0b1111) != 0;
        assert_eq!((0..lines).filter(|&line| missing(line)).count(), 1 << 12);
        assert_eq!((0..lines).filter(|&line| missing(line)).count(), 0);
    }

    #[test]
    fn whole_sectors_that_were_written_need_no_read() {
        let mut cache = small();
        cache.write(3, 0b0101);
        assert_eq!(cache.read(3, 0b1111), 0b1010);
    }

    #[test]
    fn a_sector_that_was_written_in_parts_is_valid_when_it_is_full() {
        let mut cache = small();
        cache.write_part(4 * 3 + 1, 0x0000_ffff);
        cache.write_part(4 * 3 + 2, 0x0000_ffff);
        cache.write_part(4 * 3 + 1, 0xffff_0000);
        assert_eq!(cache.read(3, 0b0110), 0b0100);
        // A write to a valid sector leaves it valid.
        cache.write_part(4 * 3 + 2, 1);
        assert_eq!(cache.read(3, 0b0110), 0);
    }

    #[test]
    fn forgotten_sectors_are_missing() {
        let mut cache = small();
        cache.read(5, 0b1111);
        cache.forget(5, 0b0010);
        cache.forget(6, 0b0010);
        assert_eq!(cache.read(5, 0b1111), 0b0010);
    }
}
