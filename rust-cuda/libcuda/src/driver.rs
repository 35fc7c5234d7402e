//! Finds and opens the driver library, once for the process.

use std::env;
use std::ffi::{CStr, OsStr, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::stubs;

/// The environment variable that names the driver library: a path, or a name that the dynamic linker searches.
///
/// If it is set, no other library is tried. An empty value counts as not set. It is read when a process first uses the
/// driver.
pub const LIBRARY_VARIABLE: &str = "WARPROW_LIBCUDA";

/// Where a driver library may be, in the order tried. The dynamic linker searches the first name, also in
/// `LD_LIBRARY_PATH`. The others are places that it does not search: on WSL, on NixOS, and in containers whose host
/// mounts the driver.
///
/// The name ends with the version, `.so.1`: `libcuda.so` belongs to development packages and may be the toolkit's stub.
const SEARCH: [&str; 4] = [
    "libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
];

/// A function of every CUDA driver. A library without it is not a driver.
const REQUIRED_FUNCTION: &CStr = c"cuInit";

/// The driver library of this process, open until the process ends.
#[derive(Debug)]
pub struct Driver {
    library: Library,
    path: Option<PathBuf>,
}

impl Driver {
    /// The path of the library, as the dynamic linker reports it; `None` if it does not.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

/// A library that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The path or name that was passed to the dynamic linker.
    pub library: PathBuf,
    /// The error message of the dynamic linker.
    pub reason: String,
}

impl Attempt {
    /// Whether there is no such file. If the file exists but a library that it needs is missing, the message begins
    /// with the name of that library.
    fn is_absent(&self) -> bool {
        self.reason
            .strip_prefix(&*self.library.to_string_lossy())
            .is_some_and(|reason| reason.ends_with("No such file or directory"))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The message of glibc usually begins with the name of the library.
        let library = self.library.to_string_lossy();
        if self.reason.starts_with(library.as_ref()) {
            f.write_str(&self.reason)
        } else {
            write!(f, "{library}: {}", self.reason)
        }
    }
}

/// Why no driver library could be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No library could be opened in any of the places where a driver may be.
    #[error("no CUDA driver library{}", not_found(.tried))]
    NotFound {
        /// Each library that was tried, in order.
        tried: Vec<Attempt>,
    },
    /// The library that the environment variable [`LIBRARY_VARIABLE`] names could not be opened.
    #[error("the CUDA driver library that {LIBRARY_VARIABLE} names could not be opened: {attempt}")]
    Override {
        /// The library, and the error message of the dynamic linker.
        attempt: Attempt,
    },
    /// A library was opened, but it is not a CUDA driver.
    #[error("{} is not a CUDA driver library: it has no function {function}", .library.display())]
    NotADriver {
        /// The library that was opened.
        library: PathBuf,
        /// The function that it lacks.
        function: &'static str,
    },
}

/// The end of the error message: the places that have no library, or why those that exist could not be opened.
fn not_found(tried: &[Attempt]) -> String {
    let (absent, present): (Vec<&Attempt>, Vec<&Attempt>) =
        tried.iter().partition(|attempt| attempt.is_absent());
    if !present.is_empty() {
        let reasons: Vec<String> = present.iter().map(|attempt| attempt.to_string()).collect();
        let elsewhere = if absent.is_empty() {
            ""
        } else {
            "; elsewhere there is none"
        };
        return format!(" could be opened: {}{elsewhere}", reasons.join("; "));
    }
    let directories: Vec<String> = absent
        .iter()
        .filter_map(|attempt| attempt.library.parent())
        .filter(|directory| !directory.as_os_str().is_empty())
        .map(|directory| directory.display().to_string())
        .collect();
    let [others @ .., last] = &directories[..] else {
        return format!(": {} is not where the dynamic linker looks", SEARCH[0]);
    };
    format!(
        ": {} is neither where the dynamic linker looks nor in {} or {last}",
        SEARCH[0],
        others.join(", ")
    )
}

/// The driver library of this process, opened at the first call of this function or of any driver function.
///
/// Every call in a process returns the same result, in every thread. A library does not mean that there is a device;
/// `cuInit` tells.
///
/// # Errors
///
/// If no driver library could be opened, with the libraries that were tried. All driver functions then return
/// `CUDA_ERROR_STUB_LIBRARY` (34).
pub fn load() -> Result<&'static Driver, LoadError> {
    static DRIVER: OnceLock<Result<Driver, LoadError>> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let driver = open();
        match &driver {
            Ok(driver) => stubs::connect(|name| symbol(&driver.library, name)),
            Err(_) => stubs::disconnect(),
        }
        driver
    });
    driver.as_ref().map_err(LoadError::clone)
}

fn open() -> Result<Driver, LoadError> {
    if let Some(name) = env::var_os(LIBRARY_VARIABLE).filter(|name| !name.is_empty()) {
        return match open_library(&name) {
            Ok(library) => driver_in(library, Path::new(&name)),
            Err(attempt) => Err(LoadError::Override { attempt }),
        };
    }
    let mut tried = Vec::new();
    for name in SEARCH {
        match open_library(OsStr::new(name)) {
            Ok(library) => return driver_in(library, Path::new(name)),
            Err(attempt) => tried.push(attempt),
        }
    }
    Err(LoadError::NotFound { tried })
}

fn open_library(name: &OsStr) -> Result<Library, Attempt> {
    // SAFETY: opening a library runs its initialisers. Those of a driver may run at any time and in any thread. A user
    // who names another library in the environment is responsible for it.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| Attempt {
        library: PathBuf::from(name),
        reason: match error {
            libloading::Error::DlOpen { source } => source.to_string(),
            other => other.to_string(),
        },
    })
}

fn driver_in(library: Library, name: &Path) -> Result<Driver, LoadError> {
    let Some(init) = symbol(&library, REQUIRED_FUNCTION) else {
        return Err(LoadError::NotADriver {
            library: name.to_path_buf(),
            function: "cuInit",
        });
    };
    let path = file_of(init);
    Ok(Driver { library, path })
}

/// The address of a function; `None` if the library does not have it.
fn symbol(library: &Library, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: only the address of the symbol is used here. In a driver, every symbol that begins with `cu` is a
    // function.
    let symbol = unsafe { library.get::<*mut c_void>(name) }.ok()?;
    Some(symbol.as_raw_ptr()).filter(|address| !address.is_null())
}

/// The file from which the code at an address was loaded.
fn file_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` accepts any address and writes only to `info`.
    let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }
    // SAFETY: `info` was zeroed, and null pointers are valid fields of `Dl_info`; `dladdr` has set them.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the string lives as long as the library is open, which is longer than this call.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message of [`LoadError::NotFound`] with the given reason for each library.
    fn not_found(reason: impl Fn(&str) -> String) -> String {
        let attempt = |library: &str| Attempt {
            library: library.into(),
            reason: reason(library),
        };
        let tried = SEARCH.map(attempt).to_vec();
        LoadError::NotFound { tried }.to_string()
    }

    fn absent(library: &str) -> String {
        format!("{library}: cannot open shared object file: No such file or directory")
    }

    #[test]
    fn a_driver_that_is_nowhere_is_told_with_the_places_and_no_reason() {
        assert_eq!(
            not_found(absent),
            "no CUDA driver library: libcuda.so.1 is neither where the dynamic linker looks nor in /usr/lib/wsl/lib, \
             /run/opengl-driver/lib or /usr/local/nvidia/lib64"
        );
    }

    #[test]
    fn a_driver_that_is_somewhere_and_does_not_open_is_told_with_the_reason() {
        let message = not_found(|library| {
            if library.contains("wsl") {
                format!("{library}: wrong ELF class: ELFCLASS32")
            } else {
                absent(library)
            }
        });
        assert_eq!(
            message,
            "no CUDA driver library could be opened: /usr/lib/wsl/lib/libcuda.so.1: wrong ELF class: ELFCLASS32; \
             elsewhere there is none"
        );
        let everywhere = not_found(|library| format!("{library}: Permission denied"));
        for library in SEARCH {
            let reason = format!("{library}: Permission denied");
            assert!(everywhere.contains(&reason), "{everywhere}");
        }
        assert!(!everywhere.contains("elsewhere"), "{everywhere}");
    }

    #[test]
    fn a_driver_that_lacks_a_library_is_not_taken_for_absent() {
        let message = not_found(|_| absent("libnvidia-missing.so.1"));
        assert!(
            message.contains("libcuda.so.1: libnvidia-missing.so.1: cannot open"),
            "{message}"
        );
    }
}
