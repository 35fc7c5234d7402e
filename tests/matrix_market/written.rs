//! Files as they are written.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use warprow::matrix_market::{Output, write_matrix_market};

use super::Matrix;

#[test]
fn a_failed_write_leaves_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let matrix = Matrix::new((1, 1), vec![0u32, 1], vec![0u32], vec![1.0f32]);
    // A directory cannot be replaced by a file.
    let path = directory.path().join("taken.mtx");
    fs::create_dir(&path).unwrap();
    let error = write_matrix_market(&path, matrix.view()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("cannot write {}: ", path.display())),
        "{error}"
    );
    let left: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["taken.mtx"]);
    assert!(write_matrix_market(directory.path().join("no/such.mtx"), matrix.view()).is_err());
    assert!(write_matrix_market("..", matrix.view()).is_err());
}

#[test]
fn a_written_file_is_general_real_and_replaces_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.mtx");
    // Longer than the matrix, to see that nothing of it remains.
    fs::write(&path, "x".repeat(1000)).unwrap();
    // Stored by columns.
    let matrix = Matrix::new_csc((2, 2), vec![0u32, 1, 2], vec![1u32, 0], vec![1e300, -0.0]);
    write_matrix_market(&path, matrix.view()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 1e300\n1 2 -0.0\n"
    );
    write_matrix_market(directory.path().join("a.mtx.GZ"), matrix.view()).unwrap();
    assert_eq!(
        fs::read(directory.path().join("a.mtx.GZ")).unwrap()[..2],
        [0x1f, 0x8b]
    );
}

#[test]
fn a_view_of_some_rows_is_written_as_a_matrix_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.mtx");
    let matrix = Matrix::new(
        (4, 2),
        vec![0u32, 1, 1, 3, 4],
        vec![0u32, 0, 1, 1],
        vec![1.0f32, 2.0, 3.0, 4.0],
    );
    write_matrix_market(&path, matrix.slice_outer(1..3)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 2.0\n2 2 3.0\n"
    );
}

fn one() -> Matrix<f32> {
    Matrix::new((1, 1), vec![0u32, 1], vec![0u32], vec![1.0f32])
}

const ONE: &str = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1.0\n";

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A device with the number of `/dev/null` or `/dev/full`. Root makes a new one, because a library that replaced it
/// would harm the machine; nobody else can replace those in `/dev`.
fn device(directory: &Path, name: &str, minor: &str) -> PathBuf {
    let path = directory.join(name);
    let made = Command::new("mknod")
        .arg(&path)
        .args(["c", "1", minor])
        .output();
    let opens = made.is_ok_and(|made| made.status.success()) && File::create(&path).is_ok();
    if opens {
        path
    } else {
        Path::new("/dev").join(name)
    }
}

#[test]
fn a_device_is_written_into_and_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let null = device(directory.path(), "null", "3");
    write_matrix_market(&null, one().view()).unwrap();
    let full = device(directory.path(), "full", "7");
    let error = write_matrix_market(&full, one().view()).unwrap_err();
    assert_eq!(error.error.kind(), std::io::ErrorKind::StorageFull);
    for path in [null, full] {
        let kind = fs::metadata(&path).unwrap().file_type();
        assert!(kind.is_char_device(), "{}", path.display());
    }
}

#[test]
fn a_named_pipe_is_written_into_and_a_socket_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
    };
    write_matrix_market(&pipe, one().view()).unwrap();
    assert_eq!(reader.join().unwrap(), ONE);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());

    let socket = directory.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert!(write_matrix_market(&socket, one().view()).is_err());
    assert!(fs::metadata(&socket).unwrap().file_type().is_socket());
    assert_eq!(names(directory.path()), ["pipe", "socket"]);
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.mtx");
    for mode in [0o600, 0o640, 0o755, 0o666] {
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        write_matrix_market(&path, one().view()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), ONE);
        let found = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(found & 0o7777, mode);
    }
}

#[test]
fn symbolic_links_are_written_through() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("elsewhere")).unwrap();
    symlink("elsewhere/a.mtx", path("link")).unwrap();
    symlink("link", path("link-to-link")).unwrap();
    // At first there is nothing at the end of the links, then there is a file.
    for _ in 0..2 {
        write_matrix_market(path("link-to-link"), one().view()).unwrap();
        assert_eq!(fs::read_to_string(path("elsewhere/a.mtx")).unwrap(), ONE);
        assert_eq!(
            names(directory.path()),
            ["elsewhere", "link", "link-to-link"]
        );
        assert!(path("link").is_symlink() && path("link-to-link").is_symlink());
        assert_eq!(names(&path("elsewhere")), ["a.mtx"]);
    }
    symlink("circle", path("circle")).unwrap();
    assert!(write_matrix_market(path("circle"), one().view()).is_err());
}

#[test]
fn names_may_be_as_long_as_the_system_allows() {
    let directory = tempfile::tempdir().unwrap();
    for length in [244, 255] {
        let path = directory.path().join("m".repeat(length));
        write_matrix_market(&path, one().view()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), ONE);
    }
}

#[test]
fn a_place_is_tested_before_there_is_a_matrix_and_left_alone_until_then() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for place in ["no/such.mtx", "new/", ".", ""] {
        let place = if place.is_empty() {
            PathBuf::new()
        } else {
            path(place)
        };
        assert!(Output::create(&place).is_err(), "{}", place.display());
    }
    fs::write(path("a.mtx"), "before").unwrap();
    let output = Output::create(path("a.mtx")).unwrap();
    let partial = output.partial_path().unwrap().to_owned();
    assert!(partial.exists());
    assert_eq!(fs::read_to_string(path("a.mtx")).unwrap(), "before");
    drop(output);
    assert_eq!(names(directory.path()), ["a.mtx"]);
    assert_eq!(fs::read_to_string(path("a.mtx")).unwrap(), "before");
}
