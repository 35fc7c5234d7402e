//! A cache with lines of four sectors.

use crate::regions::{OFFSET_BITS, SLOTS};

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
    /// The number of each line, plus one; zero if it is empty. A set has `WAYS` lines.
    numbers: Vec<u64>,
    /// The time of the last access to each line; zero if it is empty.
    used: Vec<u64>,
    /// For each line, a bit for each sector that is valid.
    valid: Vec<u8>,
    /// For each sector of a line that is not valid, a bit for each byte that was written.
    written: Vec<[u32; SECTORS as usize]>,
    /// The number of accesses so far.
    time: u64,
}

impl Cache {
    /// An empty cache.
    pub fn new(bytes: u64) -> Self {
        let sets = (bytes / LINE / WAYS as u64).max(1) as usize;
        Self {
            numbers: vec![0; sets * WAYS],
            used: vec![0; sets * WAYS],
            valid: vec![0; sets * WAYS],
            written: vec![[0; SECTORS as usize]; sets * WAYS],
            time: 0,
        }
    }

    /// Reads sectors of a line. Returns those that were missing; now they are valid.
    pub fn read(&mut self, line: u64, sectors: u8) -> u8 {
        let place = self.get(line);
        let missing = sectors & !self.valid[place];
        self.fill(place, missing);
        missing
    }

    /// Writes whole sectors of a line.
    pub fn write(&mut self, line: u64, sectors: u8) {
        let place = self.get(line);
        self.fill(place, sectors & !self.valid[place]);
    }

    /// Writes bytes of a sector. A sector is valid when all its bytes have been written.
    pub fn write_part(&mut self, sector: u64, bytes: u32) {
        let place = self.get(sector / SECTORS);
        let bit = sector % SECTORS;
        if self.valid[place] >> bit & 1 == 0 {
            let written = &mut self.written[place][bit as usize];
            *written |= bytes;
            if *written == u32::MAX {
                self.fill(place, 1 << bit);
            }
        }
    }

    /// Makes sectors of a line invalid.
    pub fn forget(&mut self, line: u64, sectors: u8) {
        if let Some(place) = self.find(self.set(line), line) {
            self.valid[place] &= !sectors;
        }
    }

    /// The place of the first line of a line's set.
    fn set(&self, line: u64) -> usize {
        let sets = (self.numbers.len() / WAYS) as u128;
        // Multiplied by 2^64 divided by the golden ratio, neighbouring numbers lie far apart. Without the number of the
        // region, each emulator of a process gets the same result.
        let hash = (line % REGION_LINES).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(hash) * sets) >> 64) as usize * WAYS
    }

    /// The place of a line in its set, if it is there.
    fn find(&self, set: usize, line: u64) -> Option<usize> {
        let numbers = &self.numbers[set..set + WAYS];
        let place = numbers.iter().position(|&number| number == line + 1);
        place.map(|place| set + place)
    }

    /// The place of a line. If the cache does not have it, it replaces the one that was not used for the longest time,
    /// without valid sectors.
    fn get(&mut self, line: u64) -> usize {
        self.time += 1;
        let set = self.set(line);
        let place = self.find(set, line).unwrap_or_else(|| {
            let oldest = (set..set + WAYS).min_by_key(|&place| self.used[place]);
            let oldest = oldest.unwrap_or(set);
            self.numbers[oldest] = line + 1;
            if self.used[oldest] != 0 {
                self.valid[oldest] = 0;
                self.written[oldest] = [0; SECTORS as usize];
            }
            oldest
        });
        self.used[place] = self.time;
        place
    }

    /// Makes sectors valid that are not.
    fn fill(&mut self, place: usize, sectors: u8) {
        // Most sectors have no bytes that were written in part, and then nothing is touched.
        if sectors & !self.valid[place] != 0 {
            self.valid[place] |= sectors;
            for (bit, written) in self.written[place].iter_mut().enumerate() {
                if sectors >> bit & 1 != 0 && *written != 0 {
                    *written = 0;
                }
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
