//! The file of a result, which all ranks write. Rank 0 opens and renames it with the library's [`Output`].

use crate::world::World;
use anyhow::{Context, Result, anyhow};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use warprow::files::Output;

/// A file that all ranks write, opened before a long computation.
///
/// Rank 0 creates a file with a name that nobody else uses in the same directory, and renames it when all ranks have
/// written. Thus there is never half a file of the final name. A file that was there is replaced and passes on its
/// mode; symbolic links are followed. A run that fails removes the incomplete file.
pub struct SharedFile {
    /// At rank 0.
    output: Option<Output>,
    /// The incomplete file.
    partial: PathBuf,
    file: File,
}

impl SharedFile {
    /// Opens the place for a sparse matrix.
    ///
    /// # Errors
    ///
    /// A name that no format of sparse matrices has; a directory, pipe or device; a place that rank 0 may not write; a
    /// directory that another rank does not see.
    pub fn sparse(world: &World, path: &Path) -> Result<Self> {
        Self::open(world, path, |path| Output::sparse(path))
    }

    /// Opens the place for a dense matrix.
    ///
    /// # Errors
    ///
    /// As for [`sparse`](Self::sparse).
    pub fn dense(world: &World, path: &Path) -> Result<Self> {
        Self::open(world, path, |path| Output::dense(path))
    }

    fn open(
        world: &World,
        path: &Path,
        open: impl FnOnce(&Path) -> Result<Output, warprow::files::FileError>,
    ) -> Result<Self> {
        // If this fails at rank 0, the others wait for it, and end with its message.
        let mut partial = vec![];
        let mut output = None;
        if world.is_root() {
            let opened = regular_file(path, open)?;
            world.unfinished_file().note(&opened.1);
            partial = opened.1.into_os_string().into_vec();
            output = Some(opened.0);
        }
        let partial = PathBuf::from(OsString::from_vec(world.broadcast(partial)));
        world.unfinished_file().note(&partial);
        let file = OpenOptions::new().write(true).open(&partial);
        let file = file.with_context(|| {
            let partial = partial.display();
            format!("cannot write {partial}, which rank 0 has created: wanted a directory that all ranks see")
        })?;
        Ok(Self {
            output,
            partial,
            file,
        })
    }

    /// Writes the header at rank 0 and calls `write` on all ranks, which write at positions. Then rank 0 gives the file
    /// its name.
    pub(super) fn write(
        self,
        world: &World,
        header: &[u8],
        write: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<()> {
        let Self {
            output,
            partial,
            file,
        } = self;
        let all_write = || -> io::Result<()> {
            if world.is_root() {
                file.write_all_at(header, 0)?;
            }
            write(&file)?;
            file.sync_all()?;
            world.barrier();
            Ok(())
        };
        match output {
            Some(output) => output.write_with(|_| all_write())?,
            None => all_write().with_context(|| format!("cannot write {}", partial.display()))?,
        }
        world.barrier();
        world.unfinished_file().forget();
        Ok(())
    }
}

/// Opens the place, and returns the absolute path of its incomplete file. Refuses pipes and devices: ranks write at
/// positions, which these do not have.
fn regular_file(
    path: &Path,
    open: impl FnOnce(&Path) -> Result<Output, warprow::files::FileError>,
) -> Result<(Output, PathBuf)> {
    let refused = || {
        let path = path.display();
        anyhow!(
            "cannot write {path}: wanted a regular file, which all ranks can write; found a pipe or device"
        )
    };
    // Opening a pipe would wait for its reader.
    if fs::metadata(path).is_ok_and(|present| !present.is_file() && !present.is_dir()) {
        return Err(refused());
    }
    let output = open(path)?;
    let partial = std::path::absolute(output.partial_path().ok_or_else(refused)?)?;
    Ok((output, partial))
}
