//! The incomplete output of a run, which is removed if the run fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The path of a file that is not complete, if there is one. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct UnfinishedFile(Arc<Mutex<Option<PathBuf>>>);

impl UnfinishedFile {
    /// Notes the path of a file that is not complete.
    pub(crate) fn note(&self, path: &Path) {
        *self.path() = Some(path.to_owned());
    }

    /// The file is complete: it will not be removed.
    pub(crate) fn forget(&self) {
        *self.path() = None;
    }

    /// Removes the file, if there is one.
    pub fn remove(&self) {
        if let Some(path) = self.path().take() {
            // The failure that led here is the one to report. Another rank may have removed the file already.
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
