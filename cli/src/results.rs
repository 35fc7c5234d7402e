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
    path: &'a PathBuf,
    output: Output,
}

impl ResultOptions {
    /// Opens the place for a sparse result, before the computation.
    pub fn sparse(&self, out: &mut Out) -> Result<Option<Place<'_>>> {
        self.open(out, |path| Output::sparse(path))
    }

    /// Opens the place for a dense result, before the computation.
    pub fn dense(&self, out: &mut Out) -> Result<Option<Place<'_>>> {
        self.open(out, |path| Output::dense(path))
    }

    fn open(
        &self,
        out: &mut Out,
        open: impl FnOnce(&PathBuf) -> std::result::Result<Output, warprow::files::FileError>,
    ) -> Result<Option<Place<'_>>> {
        let Some(path) = &self.output else {
            return Ok(None);
        };
        let output = open(path)?;
        out.go_on_without_reader();
        #[cfg(unix)]
        if let Some(partial) = output.partial_path() {
            signals::remove_when_ended(partial)?;
        }
        Ok(Some(Place { path, output }))
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
}

fn written(path: &Path, out: &mut Out) -> Result<()> {
    out.value("output", path.to_string_lossy());
    out.line("written", path.display())
}

/// Signals that end the program.
#[cfg(unix)]
mod signals {
    use crate::failure::{Failure, Result};
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    use std::fs;
    use std::path::Path;

    /// Removes the file when Ctrl-C or SIGTERM ends the program.
    pub fn remove_when_ended(path: &Path) -> Result<()> {
        let path = path.to_owned();
        let signals = Signals::new([SIGINT, SIGTERM]);
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
}
