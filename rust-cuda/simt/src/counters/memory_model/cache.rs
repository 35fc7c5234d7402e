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
/// The number of a line that is empty.
const EMPTY: u64 = u64::MAX;

/// One cache. A sector of it is valid, or it has some bytes that were written, or it has nothing.
pub(super) struct Cache {
    /// The numbers of the lines, `WAYS` for each set; apart from the rest, since each access looks at those of a set.
    numbers: Vec<u64>,
    lines: Vec<Line>,
    /// The number of accesses so far.
    time: u64,
}

#[derive(Clone, Copy, Default)]
struct Line {
    /// The time of the last access; zero if the line is empty.
    used: u64,
    /// A bit for each sector that is valid.
    valid: u8,
    /// A bit for each byte that was written of a sector that is not valid.
    written: [u32; SECTORS as usize],
}

impl Cache {
    /// An empty cache.
    pub fn new(bytes: u64) -> Self {
        let sets = (bytes / LINE / WAYS as u64).max(1) as usize;
        Self {
            numbers: vec![EMPTY; sets * WAYS],
            lines: vec![Line::default(); sets * WAYS],
            time: 0,
        }
    }

    /// Reads sectors of a line. Returns those that were missing; now they are valid.
    pub fn read(&mut self, line: u64, sectors: u8) -> u8 {
        let line = self.get(line);
        let missing = sectors & !line.valid;
        line.fill(missing);
        missing
    }

    /// Writes whole sectors of a line.
    pub fn write(&mut self, line: u64, sectors: u8) {
        self.get(line).fill(sectors);
    }

    /// Writes bytes of a sector. A sector is valid when all its bytes have been written.
    pub fn write_part(&mut self, sector: u64, bytes: u32) {
        let line = self.get(sector / SECTORS);
        let place = (sector % SECTORS) as usize;
        if line.valid >> place & 1 == 0 {
            line.written[place] |= bytes;
            if line.written[place] == u32::MAX {
                line.fill(1 << place);
            }
        }
    }

    /// Makes sectors of a line invalid.
    pub fn forget(&mut self, line: u64, sectors: u8) {
        if let Some(place) = self.find(line) {
            self.lines[place].valid &= !sectors;
        }
    }

    /// The place of the first line of a line's set.
    fn set(&self, line: u64) -> usize {
        let sets = (self.lines.len() / WAYS) as u128;
        // Multiplied by 2^64 divided by the golden ratio, neighbouring numbers lie far apart. Without the number of the
        // region, each emulator of a process gets the same result.
        let hash = (line % REGION_LINES).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(hash) * sets) >> 64) as usize * WAYS
    }

    fn find(&self, line: u64) -> Option<usize> {
        let first = self.set(line);
        let set = &self.numbers[first..first + WAYS];
        let place = set.iter().position(|&number| number == line);
        place.map(|place| first + place)
    }

    /// The line with a number. If the cache does not have it, it replaces the one that was not used for the longest
    /// time, without valid sectors.
    fn get(&mut self, number: u64) -> &mut Line {
        self.time += 1;
        let place = self.find(number).unwrap_or_else(|| {
            let first = self.set(number);
            let set = first..first + WAYS;
            let oldest = set.min_by_key(|&place| self.lines[place].used);
            let oldest = oldest.unwrap_or(first);
            self.numbers[oldest] = number;
            self.lines[oldest] = Line::default();
            oldest
        });
        let line = &mut self.lines[place];
        line.used = self.time;
        line
    }
}

impl Line {
    fn fill(&mut self, sectors: u8) {
        self.valid |= sectors;
        for (place, written) in self.written.iter_mut().enumerate() {
            if sectors >> place & 1 != 0 {
                *written = 0;
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
