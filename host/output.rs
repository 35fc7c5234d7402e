//! The file that a result is written to: a new file, one to replace, or a pipe or device.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file}: {error}")]
#[non_exhaustive]
pub struct WriteError {
    /// The file's path.
    pub file: String,
    /// The system's error.
    pub error: io::Error,
}

impl WriteError {
    pub(crate) fn new(path: &Path, error: io::Error) -> Self {
        Self {
            file: path.display().to_string(),
            error,
        }
    }
}

/// A place that a file will be written to, opened before its content is there.
///
/// Dropped before it is written, it changes nothing.
pub(crate) struct Output {
    path: PathBuf,
    file: OutputFile,
}

impl Output {
    /// Opens the place: creates an empty file with another name in the same directory, or opens a device or named pipe.
    pub(crate) fn create(path: &Path) -> Result<Self, WriteError> {
        match OutputFile::create(path) {
            Ok(file) => Ok(Self {
                path: path.to_owned(),
                file,
            }),
            Err(error) => Err(WriteError::new(path, error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The incomplete file beside the place; `None` for a device or pipe.
    pub(crate) fn partial_path(&self) -> Option<&Path> {
        self.file
            .replacement
            .as_ref()
            .map(|it| it.partial.as_path())
    }

    /// Writes the content, and puts the file in its place if that succeeds.
    pub(crate) fn write(
        self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), WriteError> {
        let Self { path, file } = self;
        let mut writer = BufWriter::with_capacity(1 << 16, &file.file);
        let written = content(&mut writer).and_then(|()| writer.flush());
        // What is still in the buffer after an error would be written, in vain, when it is dropped.
        drop(writer.into_parts());
        written
            .and_then(|()| file.complete())
            .map_err(|error| WriteError::new(&path, error))
    }
}

/// An open file, whose content becomes that of the place when it is complete.
struct OutputFile {
    file: File,
    /// `None` for a pipe or device, which is written directly.
    replacement: Option<Replacement>,
}

impl OutputFile {
    /// Opens a pipe or device, or creates a file beside the place.
    fn create(path: &Path) -> io::Result<Self> {
        // Links are followed here, and below.
        let present = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if present.as_ref().is_some_and(Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if let Some(metadata) = &present {
            let file = OpenOptions::new().write(true).open(path)?;
            if !metadata.is_file() {
                return Ok(Self {
                    file,
                    replacement: None,
                });
            }
        }
        let target = match &present {
            Some(_) => fs::canonicalize(path)?,
            None => end_of_links(path)?,
        };
        let (replacement, file) = Replacement::create(target)?;
        if let Some(metadata) = &present {
            keep_owner(&file, metadata);
            file.set_permissions(metadata.permissions())?;
        }
        Ok(Self {
            file,
            replacement: Some(replacement),
        })
    }

    /// Puts the file in its place.
    fn complete(self) -> io::Result<()> {
        let Some(replacement) = self.replacement else {
            return Ok(());
        };
        self.file.sync_all()?;
        replacement.complete()
    }
}

/// Gives the file to the owner of the one that it replaces, where the system lets it: only root can give a file away.
/// Another user owns what it writes, as after any copy.
fn keep_owner(file: &File, replaced: &Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()));
    }
    #[cfg(not(unix))]
    let _ = (file, replaced);
}

/// The path at which a file will be created: symbolic links are followed, the last one to a place where nothing is.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    while let Ok(link) = fs::read_link(&target) {
        target.pop();
        target.push(link);
    }
    let ends_in_slash = target.as_os_str().as_encoded_bytes().ends_with(b"/");
    if target.file_name().is_none() || ends_in_slash {
        let wanted = "wanted the path of a file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, wanted));
    }
    Ok(target)
}

/// A file that takes the place of `target` when it is complete. Dropped before, it is removed.
struct Replacement {
    partial: PathBuf,
    target: PathBuf,
    completed: bool,
}

impl Replacement {
    /// Creates a file in the target's directory. Its name is short, whatever the target's is, and no other process or
    /// thread uses it.
    fn create(target: PathBuf) -> io::Result<(Self, File)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".warprow-{}-{count}.partial", process::id());
            let partial = target.with_file_name(name);
            match OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&partial)
            {
                Ok(file) => {
                    let replacement = Self {
                        partial,
                        target,
                        completed: false,
                    };
                    return Ok((replacement, file));
                }
                // A killed process of the same number left it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn complete(mut self) -> io::Result<()> {
        fs::rename(&self.partial, &self.target)?;
        self.completed = true;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.completed {
            // The error that led here is the one to report.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    #[test]
    fn a_file_keeps_its_content_if_writing_another_fails_halfway() {
        let folder = env::temp_dir().join(format!("warprow-output-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.mtx");
        fs::write(&path, "before").unwrap();
        let output = Output::create(&path).unwrap();
        let written = output.write(|file| {
            // More than the buffer, so that a part of it is in the file.
            file.write_all(&[b'x'; 1 << 17])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(written.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
