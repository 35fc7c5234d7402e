//! Runs our solutions on a GPU and records their times, for `check --device cuda`.
//!
//! It has all solutions inside, so the machine with the GPU needs no Rust. Its arguments are the archive of the
//! solutions' kernels, which the runner's command `build-solutions` makes, and the file to write.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};

use exercises::cuda;
use exercises::description::Exercise;
use exercises::recorded::Recorded;

mod solutions {
    include!(concat!(env!("OUT_DIR"), "/solutions.rs"));
}

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [archive, output] = &*arguments else {
        eprintln!("usage: record ARCHIVE OUTPUT");
        return ExitCode::FAILURE;
    };
    match record(archive, output) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all solutions, and writes the file if all pass.
fn record(archive: &Path, output: &Path) -> Result<bool, String> {
    let device = cuda::open(archive)?;
    let mut recorded = Recorded {
        gpu: device.name().to_owned(),
        ..Recorded::default()
    };
    let mut all_pass = true;
    for (name, text, case) in solutions::SOLUTIONS {
        let exercise = Exercise::parse(name, text).map_err(|error| error.to_string())?;
        let start = Instant::now();
        match cuda::check(&exercise, *case, &device) {
            Ok(time) => {
                let microseconds = time.map(|time| 1e6 * time.as_secs_f64());
                let shown = microseconds.map_or_else(String::new, |time| format!(": {time:.2} us"));
                let seconds = start.elapsed().as_secs_f64();
                println!("{name} passes{shown} (in {seconds:.1} s)");
                let rounded = microseconds.map(|time| (100.0 * time).round() / 100.0);
                let entry = rounded.map(|time| ((*name).to_owned(), time));
                recorded.microseconds.extend(entry);
            }
            Err(rejection) => {
                println!("{name} fails. {rejection}");
                all_pass = false;
            }
        }
    }
    if all_pass {
        if let Some(folder) = output.parent() {
            fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        }
        recorded.write(output)?;
        println!(
            "{} solutions pass on {}",
            solutions::SOLUTIONS.len(),
            recorded.gpu
        );
    }
    Ok(all_pass)
}
