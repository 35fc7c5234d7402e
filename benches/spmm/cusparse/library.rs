//! Where cuSPARSE is: found at run time, so that the bench builds and runs without it.

use libloading::Library;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file's name, which is the same for CUDA 12 and 13.
const CUSPARSE: &str = "libcusparse.so.12";

/// What cuSPARSE itself is linked to, in CUDA 13 and in CUDA 12, and what the dynamic linker does not always find by
/// itself. A library that is loaded already satisfies the link.
const NVJITLINK: [&str; 2] = ["libnvJitLink.so.13", "libnvJitLink.so.12"];

/// The folders that Python packages of CUDA put libraries into, under `site-packages`: those for CUDA 13 and for CUDA 12.
const PYTHON_FOLDERS: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cusparse/lib"];

/// A loaded cuSPARSE. It stays loaded: its clean-up at the end of the process must find the driver's state.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The library.
    pub library: &'static Library,
    /// Its path, or its name if the dynamic linker found it.
    pub path: PathBuf,
}

/// Loads cuSPARSE: from `insisted`, a file or a folder, and from nowhere else, or if that is `None` from where the
/// dynamic linker finds it (`LD_LIBRARY_PATH` first), from a CUDA toolkit, or from the packages of `python3`.
///
/// # Errors
///
/// A sentence that says where it was looked for and what went wrong.
pub fn load(insisted: Option<&Path>) -> Result<Loaded, String> {
    if let Some(path) = insisted {
        let path = if path.is_dir() {
            path.join(CUSPARSE)
        } else {
            path.to_owned()
        };
        return open(&path);
    }
    let mut failure = match open(Path::new(CUSPARSE)) {
        Ok(loaded) => return Ok(loaded),
        Err(failure) => failure,
    };
    for folder in toolkit_folders().into_iter().chain(python_folders()) {
        let path = folder.join(CUSPARSE);
        if !path.exists() {
            continue;
        }
        match open(&path) {
            Ok(loaded) => return Ok(loaded),
            // A file that is there and does not load says more than one that is not there.
            Err(found) => failure = found,
        }
    }
    Err(format!(
        "{failure}; looked for it with the dynamic linker, in CUDA_HOME, CUDA_PATH and /usr/local/cuda, and in the packages \
         of python3"
    ))
}

fn open(path: &Path) -> Result<Loaded, String> {
    for name in NVJITLINK {
        let beside = path.parent().map(|folder| folder.join(name));
        // The packages for CUDA 12 have a folder for each library.
        let in_its_package = path
            .parent()
            .map(|folder| folder.join("../../nvjitlink/lib").join(name));
        let found = [beside, in_its_package]
            .into_iter()
            .flatten()
            .filter(|path| path.is_file());
        // If none loads, the error of cuSPARSE itself tells whether it needs one.
        for candidate in found.chain([PathBuf::from(name)]) {
            if open_forever(&candidate).is_ok() {
                break;
            }
        }
    }
    match open_forever(path) {
        Ok(library) => Ok(Loaded {
            library,
            path: path.to_owned(),
        }),
        Err(error) => Err(format!("{} does not load: {error}", path.display())),
    }
}

/// Loads a library and never closes it.
fn open_forever(path: &Path) -> Result<&'static Library, libloading::Error> {
    // SAFETY: the initialisers of NVIDIA's libraries have no preconditions.
    let library = unsafe { Library::new(path) }?;
    Ok(Box::leak(Box::new(library)))
}

fn toolkit_folders() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(env::var_os)
        .map(PathBuf::from)
        .collect();
    roots.push("/usr/local/cuda".into());
    roots.iter().map(|root| root.join("lib64")).collect()
}

/// The folders in which the packages of `python3` have their libraries; none without a `python3`.
fn python_folders() -> Vec<PathBuf> {
    let answer = Command::new("python3")
        .args(["-c", "import sys; print('\\n'.join(sys.path))"])
        .output();
    let Ok(answer) = answer else {
        return Vec::new();
    };
    String::from_utf8_lossy(&answer.stdout)
        .lines()
        .filter(|line| !line.is_empty())
        .flat_map(|packages| PYTHON_FOLDERS.map(|folder| Path::new(packages).join(folder)))
        .collect()
}
