//! SciPy and NumPy read what this crate writes, and this crate reads what they write.
//!
//! They are looked for in the environment `target/scipy` (`python3 -m venv target/scipy` and
//! `target/scipy/bin/pip install numpy scipy`), then in `python3`. Without them the tests are skipped, or fail if
//! `WARPROW_REQUIRE_SCIPY` is set.

use ndarray::Array2;
use std::path::{Path, PathBuf};
use std::process::Command;
use warprow::files::{Format, Output, read_dense, read_sparse};
use warprow::matrix_market::read_matrix_market;
use warprow::{CsrMatrix, generate};

/// The Python that has both; `None`, and a line that says so, if there is none.
fn python() -> Option<PathBuf> {
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/scipy/bin/python");
    let imports = |python: &PathBuf| {
        let output = Command::new(python)
            .args(["-c", "import numpy, scipy.sparse"])
            .output();
        output.is_ok_and(|output| output.status.success())
    };
    let found = [environment, PathBuf::from("python3")]
        .into_iter()
        .find(imports);
    if found.is_none() {
        println!("skipped: no python3 with numpy and scipy");
        assert!(
            std::env::var_os("WARPROW_REQUIRE_SCIPY").is_none(),
            "WARPROW_REQUIRE_SCIPY is set"
        );
    }
    found
}

/// Runs a script in a folder.
fn run(python: &Path, script: &str, folder: &Path) {
    let output = Command::new(python)
        .args(["-c", script])
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

const WRITE: &str = r#"
import numpy as np, scipy.sparse as sp, scipy.io as io
a = sp.random(61, 83, density=0.04, random_state=np.random.default_rng(7), format="csr")
a.data = np.round(8 * a.data) - 3        # small whole numbers, zeros among them
io.mmwrite("a.mtx", a)
for order in ["csr", "csc", "coo"]:
    for compressed in [False, True]:
        for values in ["f2", "f4", "f8", ">f8", "i1", "i8"]:
            for index in [np.int32, np.int64]:
                m = a.asformat(order).copy()
                m.data = m.data.astype(values) if values != "f2" else m.data.astype("f4")
                for name in ["indices", "indptr", "row", "col"]:
                    if hasattr(m, name):
                        setattr(m, name, getattr(m, name).astype(index))
                name = f"{order}-{compressed}-{values.strip('>')}-{values[0] == '>'}-{index.__name__}.npz"
                sp.save_npz(name, m, compressed=compressed)
ones = a.copy(); ones.data = np.ones(a.nnz, dtype=bool)
sp.save_npz("pattern.npz", ones)
sp.save_npz("array.npz", sp.csr_array(a))
x = np.arange(12.0).reshape(3, 4) / 8
for values in ["<f2", "<f4", ">f8", "<i2", "|u1"]:
    np.save(f"x{values[1:]}.npy", (x * 8).astype(values))
np.save("fortran.npy", np.asfortranarray(x))
"#;

#[test]
fn every_npz_and_npy_file_that_scipy_and_numpy_write_is_read() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    run(&python, WRITE, folder.path());
    let wanted: CsrMatrix<f64> = read_matrix_market(folder.path().join("a.mtx")).unwrap();
    let (mut sparse, mut dense) = (0, 0);
    let x = Array2::from_shape_fn((3, 4), |(row, column)| (4 * row + column) as f64);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "pattern.npz" {
            let found = read_sparse::<f64>(&path).unwrap();
            assert!(
                found.indices() == wanted.indices() && found.data().iter().all(|&one| one == 1.0)
            );
        } else if name.ends_with(".npz") {
            assert_eq!(read_sparse::<f64>(&path).unwrap(), wanted, "{name}");
            sparse += 1;
        } else if name == "fortran.npy" {
            assert_eq!(read_dense::<f64>(&path).unwrap(), &x / 8.0);
        } else if name.ends_with(".npy") {
            assert_eq!(read_dense::<f64>(&path).unwrap(), x, "{name}");
            dense += 1;
        }
    }
    assert_eq!((sparse, dense), (3 * 2 * 6 * 2 + 1, 5));
}

const READ: &str = r#"
import json, numpy as np, scipy.sparse as sp, scipy.io as io
a = io.mmread("a.mtx").tocsr()
def same(b):
    assert b.shape == a.shape, (b.shape, a.shape)
    # Text has as many digits as identify a number of f32.
    assert abs(b.astype("f4") - a.astype("f4")).nnz == 0
z = sp.load_npz("a.npz")
assert z.format == "csr" and z.dtype == np.float32 and z.indices.dtype == np.int32, (z.format, z.dtype)
assert z.has_canonical_format
same(z)
same(io.mmread("a.mtx.gz").tocsr())
for name, delimiter in [("a.tsv", None), ("a.csv", ","), ("a.tsv.gz", None), ("a.csv.gz", ",")]:
    rows, columns, values = np.loadtxt(name, delimiter=delimiter, unpack=True)
    same(sp.coo_matrix((values, (rows.astype(int), columns.astype(int))), shape=a.shape).tocsr())
x = np.load("x.npy")
assert x.dtype == np.float32 and x.shape == (7, 5)
with open("x.safetensors", "rb") as file:
    length = int.from_bytes(file.read(8), "little")
    header = json.loads(file.read(length))
    y = np.frombuffer(file.read(), dtype="<f4").reshape(header["matrix"]["shape"])
assert (x == y).all()
e = sp.load_npz("empty.npz")
assert e.shape == (0, 3) and e.nnz == 0
"#;

#[test]
fn scipy_and_numpy_read_every_file_that_is_written() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let a = generate::uniform::<f32>(61, 83, 300, 1).unwrap();
    for end in Format::names(true) {
        let path = folder.path().join(format!("a{end}"));
        Output::sparse(path)
            .unwrap()
            .write_sparse(a.view())
            .unwrap();
    }
    let empty = CsrMatrix::<f32>::new((0, 3), vec![0], vec![], vec![]);
    let output = Output::sparse(folder.path().join("empty.npz")).unwrap();
    output.write_sparse(empty.view()).unwrap();
    let x: Array2<f32> = generate::dense(7, 5, 1).unwrap();
    for end in Format::names(false) {
        let path = folder.path().join(format!("x{end}"));
        Output::dense(path).unwrap().write_dense(x.view()).unwrap();
    }
    run(&python, READ, folder.path());
}
