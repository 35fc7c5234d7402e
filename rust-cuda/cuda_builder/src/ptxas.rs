//! NVIDIA's assembler: where PTX is checked, and its use of registers read, without a GPU.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Arch;

/// Prints where the Python package `nvidia-cuda-nvcc` has put `ptxas`.
const IN_PYTHON: &str = "\
import os, site, sys
for d in sys.path + site.getsitepackages() + [site.getusersitepackages()]:
    p = os.path.join(d, 'nvidia', 'cu13', 'bin', 'ptxas')
    if os.path.exists(p):
        print(p)
        break
";

/// `ptxas`, which turns PTX into a GPU's machine code.
#[derive(Clone, Debug)]
pub struct Ptxas {
    path: PathBuf,
    version: String,
}

/// Why PTX was not assembled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtxasError {
    /// There is no `ptxas`, or the one that `PTXAS` names does not run.
    #[error("no ptxas: {0}")]
    NotFound(String),
    /// It refuses a module; its messages.
    #[error("ptxas refuses a module for {arch}:\n{messages}")]
    Refused {
        /// The architecture to assemble for.
        arch: Arch,
        /// What `ptxas` wrote.
        messages: String,
    },
    /// A file could not be written or `ptxas` not be started.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or program.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// What one kernel takes on one architecture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelResources {
    /// The kernel's name.
    pub name: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's stack.
    pub stack_bytes: u32,
    /// Bytes that a thread writes to memory because registers do not suffice.
    pub spill_store_bytes: u32,
    /// Bytes that it reads back.
    pub spill_load_bytes: u32,
    /// Bytes of shared memory that the kernel declares itself (not what a launch adds).
    pub shared_bytes: u32,
}

impl Ptxas {
    /// Looks for `ptxas`: the environment variable `PTXAS` (a path; no other is tried then), the search path,
    /// `/usr/local/cuda/bin`, and the packages of `python3` (`pip install nvidia-cuda-nvcc`).
    ///
    /// # Errors
    ///
    /// There is none, or the one that `PTXAS` names does not run.
    pub fn find() -> Result<Ptxas, PtxasError> {
        if let Some(path) = env::var_os("PTXAS").filter(|path| !path.is_empty()) {
            return Ptxas::at(PathBuf::from(path));
        }
        let ptxas = format!("ptxas{}", env::consts::EXE_SUFFIX);
        let search_path = env::var_os("PATH").unwrap_or_default();
        let on_path = env::split_paths(&search_path)
            .map(|dir| dir.join(&ptxas))
            .find(|path| path.is_file());
        let installed =
            Some(Path::new("/usr/local/cuda/bin").join(&ptxas)).filter(|path| path.is_file());
        match on_path.or(installed).or_else(in_python) {
            Some(path) => Ptxas::at(path),
            None => Err(PtxasError::NotFound(
                "PTXAS is not set, and it is neither on the search path nor in /usr/local/cuda/bin nor in a package of \
                 python3 (pip install nvidia-cuda-nvcc)"
                    .to_owned(),
            )),
        }
    }

    fn at(path: PathBuf) -> Result<Ptxas, PtxasError> {
        let output = run(&path, [OsStr::new("--version")])
            .map_err(|e| PtxasError::NotFound(e.to_string()))?;
        let line = output
            .1
            .lines()
            .find(|line| line.contains("release"))
            .map(str::to_owned);
        let not_it = || {
            PtxasError::NotFound(format!(
                "{} is not ptxas: it tells no version",
                path.display()
            ))
        };
        Ok(Ptxas {
            version: line.ok_or_else(not_it)?,
            path,
        })
    }

    /// The program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says its version is.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Assembles modules for an architecture, each by itself, and returns what their kernels take, in the assembler's
    /// order. `scratch` is a directory to write in. To assemble several at once saves the assembler's start.
    ///
    /// # Errors
    ///
    /// The assembler refuses a module or cannot be run.
    pub fn assemble<'a>(
        &self,
        modules: impl IntoIterator<Item = &'a str>,
        arch: Arch,
        scratch: &Path,
    ) -> Result<Vec<KernelResources>, PtxasError> {
        // Calls in other threads may have the same directory.
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let mut inputs = Vec::new();
        for (number, text) in modules.into_iter().enumerate() {
            let input = scratch.join(format!("{call}-{number}.ptx"));
            std::fs::write(&input, with_own_shared_names(text, number)).map_err(|source| {
                PtxasError::Io {
                    path: input.clone(),
                    source,
                }
            })?;
            inputs.push(input);
        }
        let output = scratch.join(format!("{call}.cubin"));
        let arch_flag = format!("-arch={arch}");
        let flags = [
            OsStr::new("-v"),
            OsStr::new(&arch_flag),
            OsStr::new("-o"),
            output.as_os_str(),
        ];
        let inputs = inputs.iter().map(|input| input.as_os_str());
        let (success, messages) = run(&self.path, flags.into_iter().chain(inputs))?;
        match success {
            true => Ok(resources(&messages)),
            false => Err(PtxasError::Refused { arch, messages }),
        }
    }
}

fn in_python() -> Option<PathBuf> {
    let output = Command::new("python3")
        .args(["-c", IN_PYTHON])
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(path.trim())).filter(|path| path.is_file())
}

fn run<'a>(
    path: &Path,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> Result<(bool, String), PtxasError> {
    let output = Command::new(path).args(arguments).output();
    let output = output.map_err(|source| PtxasError::Io {
        path: path.to_owned(),
        source,
    })?;
    let messages = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&messages).into_owned(),
    ))
}

/// The module with names of its static shared memory that end with its number. The assembler counts memory of the same
/// name in several modules of a call for one kernel alone.
fn with_own_shared_names(text: &str, number: usize) -> String {
    let declared = |line: &str| {
        let declaration = line.trim_start().strip_prefix(".shared ")?;
        let (name, _) = declaration.rsplit(' ').next()?.split_once('[')?;
        Some(name.to_owned())
    };
    let names: Vec<String> = text.lines().filter_map(declared).collect();
    names.iter().fold(text.to_owned(), |text, name| {
        text.replace(name, &format!("{name}_of_{number}"))
    })
}

/// Reads what `ptxas -v` writes: for each kernel a line with its name, one with its stack, one with its registers.
fn resources(messages: &str) -> Vec<KernelResources> {
    let mut kernels: Vec<KernelResources> = Vec::new();
    let mut stack_of_kernel = false;
    for line in messages.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(KernelResources {
                name,
                ..KernelResources::default()
            });
        }
        let Some(kernel) = kernels.last_mut() else {
            continue;
        };
        if let Some((_, function)) = line.split_once("Function properties for ") {
            // Functions that a kernel calls have such lines too.
            stack_of_kernel = function.trim() == kernel.name;
        } else if stack_of_kernel && line.contains("bytes stack frame") {
            kernel.stack_bytes = number_before(line, " bytes stack frame");
            kernel.spill_store_bytes = number_before(line, " bytes spill stores");
            kernel.spill_load_bytes = number_before(line, " bytes spill loads");
        } else if line.contains(" registers") {
            kernel.registers = number_before(line, " registers");
            kernel.shared_bytes = number_before(line, " bytes smem");
        }
    }
    kernels
}

fn number_before(line: &str, what: &str) -> u32 {
    let before = line.split_once(what).map(|(before, _)| before);
    before
        .and_then(|before| before.rsplit(' ').next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_shared_memory_has_a_name_of_its_own_in_each_module_and_dynamic_memory_does_not() {
        let text = "\
.extern .shared .align 16 .b8 dynamic_shared_memory[];
\t.shared .align 16 .b8 shared_0[4096];
mov.u32 %r13, shared_0;
mov.u32 %r14, dynamic_shared_memory;
";
        let wanted = text.replace("shared_0", "shared_0_of_7");
        assert_eq!(with_own_shared_names(text, 7), wanted);
    }

    #[test]
    fn registers_and_spills_are_those_of_the_kernel_and_not_of_what_it_calls() {
        let messages = "\
ptxas info    : 17 bytes gmem
ptxas info    : Compiling entry function 'spmm_f32' for 'sm_80'
ptxas info    : Function properties for spmm_f32
    48 bytes stack frame, 44 bytes spill stores, 36 bytes spill loads
ptxas info    : Function properties for pick
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 bytes smem, 396 bytes cmem[0]
ptxas info    : Compiling entry function 'empty' for 'sm_80'
ptxas info    : Function properties for empty
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
";
        let spmm = KernelResources {
            name: "spmm_f32".to_owned(),
            registers: 255,
            stack_bytes: 48,
            spill_store_bytes: 44,
            spill_load_bytes: 36,
            shared_bytes: 1024,
        };
        let empty = KernelResources {
            name: "empty".to_owned(),
            registers: 4,
            ..KernelResources::default()
        };
        assert_eq!(resources(messages), [spmm, empty]);
    }
}
