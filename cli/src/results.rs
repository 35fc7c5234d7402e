//! The file that a result is written to.

use crate::failure::Result;
use crate::output::Out;
use clap::Args;
use ndarray::ArrayView2;
use sprs::CsMatViewI;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use warprow::Scalar;
use warprow::files::Output;

/// Where the result goes, and whether it is checked.
#[derive(Args)]
pub struct ResultOptions {
    /// Write the result to this file; it appears only when it is complete, and not if the check finds it wrong
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Do not compare the result with a reference in f64
    #[arg(long)]
    pub no_verify: bool,
}

/// An open place for a result.
pub struct Place<'a> {
    path: &'a Path,
    output: Output,
}

impl ResultOptions {
    /// Opens the place for a sparse result, before the computation.
    pub fn sparse(&self, out: &mut Out) -> Result<Option<Place<'_>>> {
        Place::open(self.output.as_deref(), out, |path| Output::sparse(path))
    }

    /// Opens the place for a dense result, before the computation.
    pub fn dense(&self, out: &mut Out) -> Result<Option<Place<'_>>> {
        Place::open(self.output.as_deref(), out, |path| Output::dense(path))
    }
}

/// Opens the place for bytes, before the computation.
pub fn bytes<'a>(path: Option<&'a Path>, out: &mut Out) -> Result<Option<Place<'a>>> {
    Place::open(path, out, |path| Output::bytes(path))
}

impl<'a> Place<'a> {
    fn open(
        path: Option<&'a Path>,
        out: &mut Out,
        open: impl FnOnce(&Path) -> std::result::Result<Output, warprow::files::FileError>,
    ) -> Result<Option<Self>> {
        let Some(path) = path else {
            return Ok(None);
        };
        let output = open(path)?;
        out.go_on_without_reader();
        #[cfg(unix)]
        if let Some(partial) = output.partial_path() {
            signals::remove_when_ended(partial)?;
        }
        Ok(Some(Self { path, output }))
    }
}

impl Place<'_> {
    /// The place if the result is right. Otherwise the file stays as it was, and the standard error says this.
    pub fn if_right(self, right: bool) -> Option<Self> {
        if right {
            return Some(self);
        }
        let file = self.path.display();
        // If this fails, the exit code still tells.
        let _ = writeln!(
            io::stderr(),
            "error: {file} is not written: wanted a right result, found a wrong one; --no-verify writes it unchecked"
        );
        None
    }

    /// Writes a sparse result.
    pub fn write_sparse<T: Scalar>(
        self,
        matrix: CsMatViewI<'_, T, u32, u32>,
        out: &mut Out,
    ) -> Result<()> {
        self.output.write_sparse(matrix)?;
        written(self.path, out)
    }

    /// Writes a dense result.
    pub fn write_dense<T: Scalar>(self, matrix: ArrayView2<'_, T>, out: &mut Out) -> Result<()> {
        self.output.write_dense(matrix)?;
        written(self.path, out)
    }

    /// Writes bytes.
    pub fn write_bytes(self, bytes: &[u8], out: &mut Out) -> Result<()> {
        self.output.write_bytes(bytes)?;
        out.line("written", self.path.display())
    }
}

fn written(path: &Path, out: &mut Out) -> Result<()> {
    out.value("output", path.to_string_lossy());
    out.line("written", path.display())
}

/// Signals that end the program.
#[cfg(unix)]
mod signals {
    use crate::failure::{Failure, Result};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    use std::path::Path;
    use std::{fs, mem, ptr};

    /// Removes the file when Ctrl-C, SIGTERM or the end of the terminal ends the program. What the parent process has
    /// ignored, as `nohup` does, stays ignored.
    pub fn remove_when_ended(path: &Path) -> Result<()> {
        let path = path.to_owned();
        let ending = [SIGHUP, SIGINT, SIGTERM].into_iter();
        let signals = Signals::new(ending.filter(|&signal| !is_ignored(signal)));
        let mut signals =
            signals.map_err(|error| Failure::input(format!("cannot handle signals: {error}")))?;
        std::thread::spawn(move || {
            for signal in signals.forever() {
                // It is gone if it is complete and has its final name.
                let _ = fs::remove_file(&path);
                let _ = emulate_default_handler(signal);
            }
        });
        Ok(())
    }

    fn is_ignored(signal: i32) -> bool {
        // SAFETY: a `sigaction` of zeros is valid: integers, a set of signals, and a null handler, the default one.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: `action` is valid for writes; a null new action changes nothing.
        let found = unsafe { libc::sigaction(signal, ptr::null(), &mut action) };
        found == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
