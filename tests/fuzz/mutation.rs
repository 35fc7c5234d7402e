//! Inputs that are nearly right: seeds with bits flipped, pieces moved, and numbers replaced by extreme ones.

use super::random::Random;

/// The greatest length of an input.
const MOST_BYTES: usize = 4096;

/// Numbers at the ends of what readers take.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "2",
    "-1",
    "-0",
    "+1",
    "007",
    "1e0",
    "1e308",
    "1e309",
    "1e-400",
    "-1e39",
    "65504",
    "nan",
    "inf",
    "-infinity",
    "1.",
    ".5",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999999",
];

/// Pieces of the formats.
const PIECES: [&str; 26] = [
    "\n",
    "\r\n",
    " ",
    "\t",
    "%",
    "%%MatrixMarket",
    "matrix",
    "coordinate",
    "array",
    "real",
    "integer",
    "complex",
    "pattern",
    "general",
    "symmetric",
    "skew-symmetric",
    "hermitian",
    "{",
    "}",
    "[",
    "(1,)",
    "'<f4'",
    "'>f8'",
    "\"F16\"",
    "\"data_offsets\":[0,0]",
    "\0",
];

/// Words of binary headers.
const WORDS: [u64; 8] = [0, 1, 8, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

/// One of the seeds, changed up to six times.
pub fn mutated(random: &mut Random, seeds: &[&[u8]]) -> Vec<u8> {
    let mut bytes = random.choose(seeds).to_vec();
    for _ in 0..random.within(0..=6) {
        change(random, &mut bytes, seeds);
    }
    bytes.truncate(MOST_BYTES);
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, seeds: &[&[u8]]) {
    let at = random.within(0..=bytes.len());
    match random.below(11) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.bits() as u8,
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(piece(random, bytes.len()))),
        4 => {
            let copy = bytes[piece(random, bytes.len())].to_vec();
            insert(bytes, at, &copy);
        }
        5 => {
            let other = *random.choose(seeds);
            let copy = &other[piece(random, other.len())];
            insert(bytes, at, copy);
        }
        6 => insert(bytes, at, random.choose(&PIECES).as_bytes()),
        7 if at < bytes.len() => {
            let word = random.choose(&WORDS).to_le_bytes();
            let length = random.within(1..=8).min(bytes.len() - at);
            bytes[at..at + length].copy_from_slice(&word[..length]);
        }
        _ => replace_number(random, bytes),
    }
}

/// A short range within `length`.
fn piece(random: &mut Random, length: usize) -> std::ops::Range<usize> {
    let start = random.within(0..=length);
    start..(start + random.within(0..=32)).min(length)
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// Puts another number in the place of one of the text's.
fn replace_number(random: &mut Random, bytes: &mut Vec<u8>) {
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let starts = (0..bytes.len()).filter(|&at| is_digit(at) && (at == 0 || !is_digit(at - 1)));
    let starts: Vec<usize> = starts.take(64).collect();
    if starts.is_empty() {
        return;
    }
    let start = *random.choose(&starts);
    let end = (start..).find(|&at| !is_digit(at)).unwrap_or(start);
    let number = random.choose(&NUMBERS).as_bytes();
    bytes.splice(start..end, number.iter().copied());
}
