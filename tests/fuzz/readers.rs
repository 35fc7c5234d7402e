//! One input of a reader: Matrix Market, plain or compressed, edge list, npy, npz, or safetensors.

use super::Failure;
use super::allocations::largest_of;
use super::mutation::mutated;
use super::random::Random;
use flate2::{Compression, write::GzEncoder};
use std::cell::RefCell;
use std::io::{BufReader, Write};
use std::path::Path;
use tempfile::TempDir;
use warprow::edge_list::{EdgeListOptions, Separator};
use warprow::gcn::{read_layers, read_matrix};
use warprow::matrix_market::ReadOptions;
use warprow::npz::{NpzOptions, read_npz};
use warprow::{CsrMatrix, Scalar, bf16, f16};

/// The largest allocation of a reader that has these limits and inputs of a few kilobytes.
const MOST_ALLOCATED: usize = 8 << 20;

const MATRIX_MARKET: [&[u8]; 9] = [
    include_bytes!("../../data/small.mtx"),
    include_bytes!("../../data/symmetric.mtx"),
    include_bytes!("../../data/skew.mtx"),
    include_bytes!("../../data/pattern.mtx"),
    b"%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 3\n1 1 0.5\n3 4 -1e-3\n2 2 7\n",
    b"%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 -5\n3 3 9\n",
    b"%%MatrixMarket matrix coordinate pattern general\r\n2 2 2\r\n1 2\r\n2 1\r\n",
    b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n",
    b"%%MatrixMarket matrix coordinate real general\n0 0 0\n",
];

const NPY: [&[u8]; 3] = [
    include_bytes!("../data/karate-y.npy"),
    b"\x93NUMPY\x01\x00\x47\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }           \n\
      \x00\x00\x80\x3f\x00\x00\x00\x40",
    b"\x93NUMPY\x02\x00\x47\x00\x00\x00{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1), }            \n\
      \x00\x00\x00\x00\x00\x00\xf0\x3f",
];

const SAFETENSORS: [&[u8]; 2] = [
    include_bytes!("../data/karate.safetensors"),
    b"\x86\x00\x00\x00\x00\x00\x00\x00\
      {\"conv1.lin.weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},\
      \"conv1.bias\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[8,10]}}\
      \x00\x00\x80\x3f\x00\x00\x00\x40\x00\x3c",
];

const NPZ: [&[u8]; 2] = [
    include_bytes!("../data/coo.npz"),
    include_bytes!("../data/csr-compressed.npz"),
];

const EDGE_LISTS: [&[u8]; 4] = [
    b"0 1\n1 2\n2 0\n",
    b"# shape 3 4\n0\t1\t0.5\n2\t3\t-1e-3\n",
    b"source,target,weight\r\n0, 1, 2\r\n1,1,7\r\n",
    b"% a comment\n0 0 inf\n5 1 nan\n",
];

/// Makes an input and reads it.
pub fn run(random: &mut Random, describe: &dyn Fn(String)) -> Result<(), Failure> {
    match random.below(64) {
        0 => npy(&mutated(random, &NPY), describe),
        1 => safetensors(&mutated(random, &SAFETENSORS), describe),
        2 => npz(&mutated(random, &NPZ), describe),
        3..8 => edge_list(random, describe),
        8..14 => {
            let text = mutated(random, &MATRIX_MARKET);
            let gzip = gzip(&text);
            let bytes = if random.once_in(2) {
                mutated(random, &[&gzip])
            } else {
                gzip
            };
            matrix_market(random, &bytes, describe)
        }
        _ => {
            let bytes = mutated(random, &MATRIX_MARKET);
            matrix_market(random, &bytes, describe)
        }
    }
}

/// Panics if a seed of a binary format is not read: no change of it would be either.
pub fn check_seeds() {
    for bytes in NPY {
        with_file("x.npy", bytes, |path| read_matrix::<f32>(path)).expect("a seed is right");
    }
    for bytes in NPZ {
        with_file("a.npz", bytes, |path| read_npz::<f32>(path)).expect("a seed is right");
    }
    for bytes in SAFETENSORS {
        with_file("w.safetensors", bytes, |path| read_layers::<f64>(path))
            .expect("a seed is right");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).expect("a vector takes all bytes");
    encoder.finish().expect("a vector takes all bytes")
}

/// Bytes as a Rust literal has them.
fn literal(reader: &str, bytes: &[u8]) -> String {
    format!("{reader} of b\"{}\"", bytes.escape_ascii())
}

/// What `read` returns, if it asks for no more memory than its input justifies.
fn bounded<R>(read: impl FnOnce() -> R) -> Result<R, Failure> {
    match largest_of(read) {
        (result, bytes) if bytes <= MOST_ALLOCATED => Ok(result),
        (_, bytes) => Err(format!("an allocation of {bytes} bytes")),
    }
}

fn matrix_market(
    random: &mut Random,
    bytes: &[u8],
    describe: &dyn Fn(String),
) -> Result<(), Failure> {
    describe(literal("Matrix Market", bytes));
    match random.below(8) {
        0 => matrix_market_of::<f64>(random, bytes),
        1 => matrix_market_of::<f16>(random, bytes),
        2 => matrix_market_of::<bf16>(random, bytes),
        _ => matrix_market_of::<f32>(random, bytes),
    }
}

fn matrix_market_of<T: Scalar>(random: &mut Random, bytes: &[u8]) -> Result<(), Failure> {
    let limits = ReadOptions::default()
        .max_sparse_rows(1 << 10)
        .max_entries(1 << 16);
    let found = bounded(|| limits.parse::<T>(bytes, "input"))?;
    if random.once_in(16) {
        // Piece by piece it is the same.
        let pieces = BufReader::with_capacity(random.within(1..=9), bytes);
        let again = limits.parse::<T>(pieces, "input");
        let same = match (&found, &again) {
            (Ok(found), Ok(again)) => same_bits(found, again),
            // How much of a broken stream is decompressed depends on the pieces.
            (Err(_), Err(_)) if bytes.first() == Some(&0x1f) => true,
            (Err(found), Err(again)) => found.to_string() == again.to_string(),
            _ => false,
        };
        if !same {
            return Err(format!("whole {found:?}, in pieces {again:?}"));
        }
    }
    let Ok(matrix) = found else { return Ok(()) };
    if let Err(error) = matrix.check_compressed_structure() {
        return Err(format!("a matrix with a broken structure: {error}"));
    }
    if random.once_in(4) {
        let again = limits.parse::<T>(text_of(&matrix).as_bytes(), "written");
        if !again.as_ref().is_ok_and(|again| same_bits(&matrix, again)) {
            return Err(format!("read {matrix:?}, written and read again {again:?}"));
        }
    }
    Ok(())
}

/// The matrix as a Matrix Market file.
fn text_of<T: Scalar>(matrix: &CsrMatrix<T>) -> String {
    let (rows, columns, nonzeros) = (matrix.rows(), matrix.cols(), matrix.nnz());
    let mut text =
        format!("%%MatrixMarket matrix coordinate real general\n{rows} {columns} {nonzeros}\n");
    for (value, (row, column)) in matrix {
        text += &format!("{} {} {:e}\n", row + 1, column + 1, value.to_f64());
    }
    text
}

/// Whether they are the same to the bit; one NaN is as good as another.
fn same_bits<T: Scalar>(a: &CsrMatrix<T>, b: &CsrMatrix<T>) -> bool {
    let bits = |value: &T| {
        let value = value.to_f64();
        if value.is_nan() {
            f64::NAN.to_bits()
        } else {
            value.to_bits()
        }
    };
    a.shape() == b.shape()
        && a.indptr() == b.indptr()
        && a.indices() == b.indices()
        && a.data().iter().map(bits).eq(b.data().iter().map(bits))
}

thread_local! {
    /// A folder for the readers that take files: in memory where the system has such a folder.
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Runs `read` on a file of these bytes.
fn with_file<R>(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> R) -> R {
    FOLDER.with_borrow_mut(|folder| {
        let in_memory = Path::new("/dev/shm");
        let folder = folder.get_or_insert_with(|| {
            let folder = tempfile::tempdir_in(in_memory).or_else(|_| tempfile::tempdir());
            folder.expect("there is a folder for temporary files")
        });
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a temporary file can be written");
        read(&path)
    })
}

fn npy(bytes: &[u8], describe: &dyn Fn(String)) -> Result<(), Failure> {
    describe(literal("npy", bytes));
    let found = with_file("x.npy", bytes, |path| bounded(|| read_matrix::<f32>(path)))?;
    match found {
        // Elements may be of one byte.
        Ok(matrix) if matrix.len() > bytes.len() => {
            Err(format!("{} numbers of {} bytes", matrix.len(), bytes.len()))
        }
        _ => Ok(()),
    }
}

fn npz(bytes: &[u8], describe: &dyn Fn(String)) -> Result<(), Failure> {
    describe(literal("npz", bytes));
    let options = NpzOptions::default().max_sparse_rows(1 << 10);
    let read = |path: &Path| bounded(|| options.read::<f32>(path));
    match with_file("a.npz", bytes, read)? {
        // Deflate makes at most 1032 bytes of one.
        Ok(matrix) if matrix.nnz() > 1032 * bytes.len() => {
            Err(format!("{} entries of {} bytes", matrix.nnz(), bytes.len()))
        }
        _ => Ok(()),
    }
}

fn edge_list(random: &mut Random, describe: &dyn Fn(String)) -> Result<(), Failure> {
    let bytes = mutated(random, &EDGE_LISTS);
    describe(literal("edge list", &bytes));
    let separator = match random.once_in(2) {
        true => Separator::Comma,
        false => Separator::Blanks,
    };
    let options = EdgeListOptions::default()
        .separator(separator)
        .symmetric(random.once_in(4))
        .max_sparse_rows(1 << 10);
    match bounded(|| options.parse::<f32>(&bytes[..], "input"))? {
        Ok(matrix) if matrix.nnz() > bytes.len() => {
            Err(format!("{} entries of {} bytes", matrix.nnz(), bytes.len()))
        }
        _ => Ok(()),
    }
}

fn safetensors(bytes: &[u8], describe: &dyn Fn(String)) -> Result<(), Failure> {
    describe(literal("safetensors", bytes));
    let read = |path: &Path| bounded(|| read_layers::<f64>(path));
    let Ok(layers) = with_file("w.safetensors", bytes, read)? else {
        return Ok(());
    };
    let numbers = layers
        .iter()
        .map(|layer| layer.weights.len() + layer.bias.as_ref().map_or(0, |bias| bias.len()));
    let numbers: usize = numbers.sum();
    // Two tensors cannot have the same bytes.
    if numbers > bytes.len() / 2 {
        return Err(format!("{numbers} numbers of {} bytes", bytes.len()));
    }
    Ok(())
}
