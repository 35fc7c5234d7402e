//! Where a library of CUDA is: found at run time, so that a bench builds and runs without it.

use libloading::Library;
use std::env;
use std::iter::once_with;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library of CUDA, by the names that it may have.
#[derive(Clone, Copy, Debug)]
pub struct CudaLibrary {
    /// The names of its file, the preferred one first.
    pub files: &'static [&'static str],
    /// The folders that Python packages of CUDA put it into, under `site-packages`.
    pub python_folders: &'static [&'static str],
    /// Where, from its own folder, that may be what it is linked to and the dynamic linker does not always find by
    /// itself: a library that is loaded already satisfies the link.
    pub links: &'static [&'static str],
}

/// A library that is loaded. It stays loaded: its clean-up at the end of the process must find the driver's state.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The library.
    pub library: &'static Library,
    /// Its path, or its name if the dynamic linker found it.
    pub path: PathBuf,
}

impl CudaLibrary {
    /// Loads it: from `insisted`, a file or a folder, and from nowhere else, or if that is `None` from where the
    /// dynamic linker finds it (`LD_LIBRARY_PATH` first), from a CUDA toolkit, or from the packages of `python3`.
    ///
    /// # Errors
    ///
    /// A sentence that says where it was looked for and what went wrong.
    pub fn load(&self, insisted: Option<&Path>) -> Result<Loaded, String> {
        match insisted {
            Some(folder) if folder.is_dir() => self.first_of(self.in_folder(folder)),
            Some(file) => self.first_of([file.to_owned()]),
            None => {
                let by_name = self.files.iter().map(PathBuf::from);
                let folders = once_with(|| self.folders()).flatten();
                let there = folders.flat_map(|folder| self.in_folder(&folder));
                let found = self.first_of(by_name.chain(there.filter(|path| path.is_file())));
                found.map_err(|failures| {
                    format!(
                        "{failures}; looked for it with the dynamic linker, in CUDA_HOME, CUDA_PATH and \
                         /usr/local/cuda, and in the packages of python3"
                    )
                })
            }
        }
    }

    /// Its files in a folder.
    fn in_folder(&self, folder: &Path) -> Vec<PathBuf> {
        self.files.iter().map(|file| folder.join(file)).collect()
    }

    /// The first that loads; else why each of them does not.
    fn first_of(&self, paths: impl IntoIterator<Item = PathBuf>) -> Result<Loaded, String> {
        let mut failures = Vec::new();
        for path in paths {
            self.load_links(&path);
            match open(&path) {
                Ok(library) => return Ok(Loaded { library, path }),
                Err(failure) => failures.push(failure),
            }
        }
        Err(failures.join("; "))
    }

    /// Loads what is there of its links. If it lacks one, its own error tells so.
    fn load_links(&self, path: &Path) {
        let folder = path.parent().unwrap_or("".as_ref());
        let links = self.links.iter().map(|link| folder.join(link));
        for link in links.filter(|link| link.is_file()) {
            let _ = open(&link);
        }
    }

    /// Where toolkits and the packages of `python3` have it; of the latter none without a `python3`.
    fn folders(&self) -> Vec<PathBuf> {
        let named = ["CUDA_HOME", "CUDA_PATH"]
            .into_iter()
            .filter_map(env::var_os);
        let toolkits = named
            .map(PathBuf::from)
            .chain([PathBuf::from("/usr/local/cuda")]);
        let mut folders: Vec<_> = toolkits.map(|root| root.join("lib64")).collect();
        let answer = Command::new("python3")
            .args(["-c", "import sys; print('\\n'.join(sys.path))"])
            .output();
        if let Ok(answer) = answer {
            let answer = String::from_utf8_lossy(&answer.stdout);
            for packages in answer.lines().filter(|line| !line.is_empty()) {
                let of_packages = self.python_folders.iter();
                folders.extend(of_packages.map(|folder| Path::new(packages).join(folder)));
            }
        }
        folders
    }
}

/// Loads a library and never closes it.
///
/// # Errors
///
/// A sentence with its path and the dynamic linker's words.
pub fn open(path: &Path) -> Result<&'static Library, String> {
    // SAFETY: the initialisers of NVIDIA's libraries have no preconditions.
    let library = unsafe { Library::new(path) };
    let library = library.map_err(|error| format!("{} does not load: {error}", path.display()))?;
    Ok(Box::leak(Box::new(library)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: CudaLibrary = CudaLibrary {
        files: &["libwarprow_nowhere.so.2", "libwarprow_nowhere.so.1"],
        python_folders: &["nvidia/nowhere/lib"],
        links: &["libwarprow_nowhere_link.so"],
    };

    #[test]
    fn a_library_that_is_nowhere_is_an_error_with_all_places() {
        let error = NOWHERE.load(None).unwrap_err();
        for place in [
            "libwarprow_nowhere.so.2 does not load",
            "libwarprow_nowhere.so.1 does not load",
            "the dynamic linker",
            "CUDA_HOME",
            "python3",
        ] {
            assert!(error.contains(place), "{error}");
        }
    }

    #[test]
    fn a_folder_or_a_file_that_is_insisted_on_is_the_only_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("other.so");
        std::fs::write(&file, "no library").unwrap();
        let in_folder = NOWHERE.load(Some(folder.path())).unwrap_err();
        assert!(in_folder.contains(folder.path().join(NOWHERE.files[1]).to_str().unwrap()));
        let the_file = NOWHERE.load(Some(&file)).unwrap_err();
        assert!(the_file.starts_with(file.to_str().unwrap()), "{the_file}");
        for error in [in_folder, the_file] {
            assert!(!error.contains("python3"), "{error}");
        }
    }
}
