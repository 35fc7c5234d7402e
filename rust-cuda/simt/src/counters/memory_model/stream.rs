//! The accesses of a block to global memory, in few bytes.

use super::cache::SECTORS;
use crate::counters::request::Request;
use crate::counters::request::sectors::Sectors;
use crate::counters::trace::RequestKind;

/// Bits of a word below the number of a line: the sectors and the kind.
const LINE_SHIFT: u32 = 7;
const KIND_SHIFT: u32 = 4;
const SECTOR_BITS: u64 = (1 << KIND_SHIFT) - 1;
const KIND_BITS: u64 = (1 << (LINE_SHIFT - KIND_SHIFT)) - 1;

const LOAD: u64 = 0;
const LOAD_FROM_L2: u64 = 1;
const ATOMIC: u64 = 2;
const STORE: u64 = 3;
/// One sector only. The next word has a bit for each byte that is written.
const STORE_PART: u64 = 4;

/// The size of asynchronous copies that bypass L1 (`cp.async.cg`).
const BYPASS_BYTES: u32 = 16;

/// The accesses of a block in their order, a word for each line that a request touches, and two for each sector that it
/// writes in part. A request that repeats the one before it costs nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    words: Vec<u64>,
    /// The place of the last access.
    last: usize,
}

/// An access to one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Load { line: u64, sectors: u8 },
    LoadFromL2 { line: u64, sectors: u8 },
    Atomic { line: u64, sectors: u8 },
    Store { line: u64, sectors: u8 },
    StorePart { sector: u64, bytes: u32 },
}

impl Stream {
    /// Adds the accesses of a request to global memory.
    pub fn push(&mut self, request: &Request, sectors: &Sectors) {
        let kind = match request.kind {
            RequestKind::GlobalLoad => LOAD,
            RequestKind::AsyncCopy if request.bytes == BYPASS_BYTES => LOAD_FROM_L2,
            RequestKind::AsyncCopy => LOAD,
            RequestKind::GlobalAtomic | RequestKind::GlobalReduction => ATOMIC,
            RequestKind::GlobalStore => STORE,
            _ => return,
        };
        for (sector, bytes) in sectors.iter() {
            if kind == STORE && bytes != u32::MAX {
                self.add(sector, STORE_PART, bytes);
            } else {
                self.add(sector, kind, 0);
            }
        }
    }

    fn add(&mut self, sector: u64, kind: u64, bytes: u32) {
        let (line, bit) = (sector / SECTORS, 1 << (sector % SECTORS));
        let word = line << LINE_SHIFT | kind << KIND_SHIFT;
        let last = self.words.get_mut(self.last);
        if let Some(last) = last
            && *last & !SECTOR_BITS == word
            && merges(kind, *last & SECTOR_BITS, bit)
        {
            *last |= bit;
            if kind == STORE_PART {
                self.words[self.last + 1] |= u64::from(bytes);
            }
            return;
        }
        self.last = self.words.len();
        self.words.push(word | bit);
        if kind == STORE_PART {
            self.words.push(bytes.into());
        }
    }

    /// The number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// The accesses in their order.
    pub(super) fn operations(&self) -> impl Iterator<Item = Operation> + '_ {
        let mut words = self.words.iter().copied();
        std::iter::from_fn(move || {
            let word = words.next()?;
            let (line, sectors) = (word >> LINE_SHIFT, (word & SECTOR_BITS) as u8);
            Some(match word >> KIND_SHIFT & KIND_BITS {
                LOAD => Operation::Load { line, sectors },
                LOAD_FROM_L2 => Operation::LoadFromL2 { line, sectors },
                ATOMIC => Operation::Atomic { line, sectors },
                STORE => Operation::Store { line, sectors },
                _ => Operation::StorePart {
                    sector: line * SECTORS + u64::from(sectors.trailing_zeros()),
                    bytes: words.next()? as u32,
                },
            })
        })
    }
}

/// Whether an access to the sector with a bit can be one with the access before it, to `sectors` of the same line.
fn merges(kind: u64, sectors: u64, bit: u64) -> bool {
    match kind {
        // Each of them goes to L2.
        LOAD_FROM_L2 | ATOMIC => sectors & bit == 0,
        STORE_PART => sectors == bit,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::request::tests::request;

    fn push(stream: &mut Stream, kind: RequestKind, bytes: u32, address: impl Fn(u64) -> u64) {
        let request = request(kind, bytes, |lane| Some(address(lane)));
        stream.push(&request, &Sectors::of(&request));
    }

    fn found(stream: &Stream) -> Vec<Operation> {
        stream.operations().collect()
    }

    #[test]
    fn each_kind_of_request_comes_back() {
        let mut stream = Stream::default();
        push(&mut stream, RequestKind::GlobalLoad, 4, |lane| {
            128 + 4 * (lane % 8)
        });
        push(&mut stream, RequestKind::GlobalReduction, 4, |lane| {
            256 + 4 * lane
        });
        push(&mut stream, RequestKind::GlobalStore, 4, |lane| {
            256 + 4 * lane
        });
        push(&mut stream, RequestKind::GlobalStore, 4, |_| 300);
        push(&mut stream, RequestKind::AsyncCopy, 4, |_| 300);
        push(&mut stream, RequestKind::AsyncCopy, 16, |_| 304);
        push(&mut stream, RequestKind::SharedLoad, 16, |_| 304);
        let expected = [
            Operation::Load {
                line: 1,
                sectors: 1,
            },
            Operation::Atomic {
                line: 2,
                sectors: 15,
            },
            Operation::Store {
                line: 2,
                sectors: 15,
            },
            Operation::StorePart {
                sector: 9,
                bytes: 0xf000,
            },
            Operation::Load {
                line: 2,
                sectors: 2,
            },
            Operation::LoadFromL2 {
                line: 2,
                sectors: 2,
            },
        ];
        assert_eq!(found(&stream), expected);
    }

    #[test]
    fn loads_of_one_line_in_a_row_are_one_operation() {
        let mut stream = Stream::default();
        for first in [0, 32, 0] {
            push(&mut stream, RequestKind::GlobalLoad, 4, |_| first);
        }
        push(&mut stream, RequestKind::GlobalLoad, 4, |_| 128);
        push(&mut stream, RequestKind::GlobalLoad, 4, |_| 0);
        let expected = [(0, 3), (1, 1), (0, 1)];
        let expected = expected.map(|(line, sectors)| Operation::Load { line, sectors });
        assert_eq!(found(&stream), expected);
        assert_eq!(stream.len(), 3);
    }

    #[test]
    fn parts_of_a_sector_add_up_and_two_sectors_stay_apart() {
        let mut stream = Stream::default();
        for place in [0, 4, 32, 36] {
            push(&mut stream, RequestKind::GlobalStore, 4, |_| place);
        }
        let expected = [
            Operation::StorePart {
                sector: 0,
                bytes: 0xff,
            },
            Operation::StorePart {
                sector: 1,
                bytes: 0xff,
            },
        ];
        assert_eq!(found(&stream), expected);
    }

    #[test]
    fn repeated_accesses_to_l2_stay_apart() {
        let mut stream = Stream::default();
        for _ in 0..2 {
            push(&mut stream, RequestKind::AsyncCopy, 16, |lane| {
                lane % 2 * 32
            });
        }
        let expected = Operation::LoadFromL2 {
            line: 0,
            sectors: 3,
        };
        assert_eq!(found(&stream), [expected, expected]);
    }

    #[test]
    fn the_highest_addresses_fit() {
        let mut stream = Stream::default();
        push(&mut stream, RequestKind::GlobalLoad, 4, |_| u64::MAX - 3);
        let expected = Operation::Load {
            line: u64::MAX >> 7,
            sectors: 8,
        };
        assert_eq!(found(&stream), [expected]);
    }
}
