//! Files that are written over devices, pipes and links, and the permissions that they keep: on Unix alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use warprow::matrix_market::write_matrix_market;

use super::written::{ONE, names, one};

/// A device with the number of `/dev/null` or `/dev/full`. Root makes a new one, because a library that replaced it
/// would harm the machine; nobody else can replace those in `/dev`.
#[cfg(target_os = "linux")]
fn device(directory: &std::path::Path, name: &str, minor: &str) -> std::path::PathBuf {
    let path = directory.join(name);
    let made = Command::new("mknod")
        .arg(&path)
        .args(["c", "1", minor])
        .output();
    let opens = made.is_ok_and(|made| made.status.success()) && fs::File::create(&path).is_ok();
    if opens {
        path
    } else {
        std::path::Path::new("/dev").join(name)
    }
}

#[cfg(target_os = "linux")]
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
