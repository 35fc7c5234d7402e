//! The builder that a build script uses: compiles when it must, else takes what is there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::ptx::flags;
use crate::toolchain::DEVICE_RUSTC;
use crate::{
    Arch, BuildError, Ptx, Sources, Stamp, Toolchain, ToolchainError, checked_in, files,
    nested_cargo,
};

/// The environment variable that asks for the checked-in PTX to be written.
const UPDATE: &str = "WARPROW_UPDATE_PTX";

/// Builds a kernel crate to PTX.
#[derive(Clone, Debug)]
pub struct CudaBuilder {
    crate_dir: PathBuf,
    arch: Arch,
    copy_to: Option<PathBuf>,
    fallback: Option<PathBuf>,
    target_dir: Option<PathBuf>,
    toolchain: Option<Toolchain>,
}

impl CudaBuilder {
    /// Builds the crate whose `Cargo.toml` is in `crate_dir`. A relative path, here and below, counts from the working
    /// directory, which for a build script is its package's.
    pub fn new(crate_dir: impl Into<PathBuf>) -> CudaBuilder {
        CudaBuilder {
            crate_dir: crate_dir.into(),
            arch: Arch::SM80,
            copy_to: None,
            fallback: None,
            target_dir: None,
            toolchain: None,
        }
    }

    /// The least GPU architecture that the PTX runs on; `sm_80` unless told otherwise.
    pub fn arch(mut self, arch: impl Into<Arch>) -> CudaBuilder {
        self.arch = arch.into();
        self
    }

    /// Where to write the PTX. With an up-to-date file there nothing is compiled.
    pub fn copy_to(mut self, path: impl Into<PathBuf>) -> CudaBuilder {
        self.copy_to = Some(path.into());
        self
    }

    /// The PTX file, made by an earlier build and checked in, that is used where no toolchain makes PTX. The
    /// environment variable `WARPROW_UPDATE_PTX=1` has it written.
    pub fn fallback(mut self, path: impl Into<PathBuf>) -> CudaBuilder {
        self.fallback = Some(path.into());
        self
    }

    /// Where to compile; unless told otherwise a directory `device` in the target directory of the outer build, so
    /// that all kernel crates and profiles share one `core`.
    pub fn target_dir(mut self, path: impl Into<PathBuf>) -> CudaBuilder {
        self.target_dir = Some(path.into());
        self
    }

    /// The toolchain to use, instead of the one that [`Toolchain::find`] gives.
    pub fn toolchain(mut self, toolchain: Toolchain) -> CudaBuilder {
        self.toolchain = Some(toolchain);
        self
    }

    /// Compiles the kernels, or leaves the file at [`copy_to`](CudaBuilder::copy_to) as it is if its stamp shows that
    /// the same compiler made it from the same sources, or takes the [`fallback`](CudaBuilder::fallback) if there is no
    /// toolchain (and says so in a warning). In a build script it also tells cargo what to watch.
    ///
    /// # Errors
    ///
    /// The kernels do not compile (the error's text has the compiler's messages); or they hold no kernel; or there is
    /// neither toolchain nor fallback; or `WARPROW_DEVICE_RUSTC` names a compiler that does not serve; or the compiler
    /// does not know the architecture; or a file cannot be read or written.
    pub fn build(self) -> Result<Ptx, BuildError> {
        let found = match &self.toolchain {
            Some(toolchain) => Ok(toolchain.clone()),
            None => Toolchain::find(),
        };
        let update =
            self.fallback.is_some() && env::var_os(UPDATE).is_some_and(|value| value == "1");
        self.build_with(found, update)
    }

    fn build_with(
        &self,
        found: Result<Toolchain, ToolchainError>,
        update: bool,
    ) -> Result<Ptx, BuildError> {
        let sources = Sources::discover(&self.crate_dir)?;
        self.tell_cargo(&sources)?;
        let hash = sources.hash()?;
        let toolchain = match found {
            Ok(toolchain) => toolchain,
            Err(error) if update => return Err(BuildError::CannotUpdate(error)),
            Err(error @ ToolchainError::NotFound(_)) => {
                let Some(fallback) = &self.fallback else {
                    return Err(error.into());
                };
                return self.take_checked_in(fallback, &hash, &error.to_string());
            }
            Err(error) => return Err(error.into()),
        };
        let flags = flags(self.arch);
        let stamp = Stamp::new(&hash, toolchain.compiler(), &flags);
        let ptx = match self.up_to_date(&stamp, sources.workspace()) {
            Some(ptx) => ptx,
            None => match self.compile(&toolchain, &sources, &stamp, &flags) {
                Ok(ptx) => ptx,
                Err(error @ BuildError::Cargo { .. }) if !update => {
                    return self.without_cargo(error, &hash);
                }
                Err(error) => return Err(error),
            },
        };
        if let (true, Some(fallback)) = (update, &self.fallback) {
            files::write_atomically(fallback, ptx.text())?;
        }
        Ok(ptx)
    }

    fn compile(
        &self,
        toolchain: &Toolchain,
        sources: &Sources,
        stamp: &Stamp,
        flags: &[String],
    ) -> Result<Ptx, BuildError> {
        let target_dir = match &self.target_dir {
            Some(dir) => {
                std::path::absolute(dir).map_err(|e| files::FileError::new("find", dir, e))?
            }
            None => shared_target_dir()?,
        };
        let compiled = nested_cargo::compile(toolchain, sources, self.arch, flags, &target_dir)?;
        let ptx = Ptx::stamped(stamp, &compiled).map_err(|source| BuildError::Ptx {
            path: sources.crate_dir().to_owned(),
            source,
        })?;
        if ptx.entry_points().is_empty() {
            return Err(BuildError::NoKernels {
                package: sources.package().to_owned(),
            });
        }
        self.write(&ptx)?;
        Ok(ptx)
    }

    /// The file of an earlier build, if it is what a build would write. A lock file that changed since may have
    /// brought other versions of the crates that kernels use.
    fn up_to_date(&self, stamp: &Stamp, workspace: &Path) -> Option<Ptx> {
        let path = self.copy_to.as_ref()?;
        let ptx = Ptx::parse(fs::read_to_string(path).ok()?).ok()?;
        let modified = |path: &Path| {
            fs::metadata(path)
                .and_then(|metadata| metadata.modified())
                .ok()
        };
        let written = modified(path)?;
        let newer = modified(&workspace.join("Cargo.lock")).is_none_or(|lock| written >= lock);
        (ptx.stamp() == stamp && newer).then_some(ptx)
    }

    /// Cargo could not fetch what the compilation needs, off the network say: the checked-in PTX serves just as well if it
    /// is that of these sources.
    fn without_cargo(&self, error: BuildError, hash: &str) -> Result<Ptx, BuildError> {
        match &self.fallback {
            Some(path) if checked_in::is_of(path, hash) => {
                let reason = error.to_string();
                let first = reason
                    .lines()
                    .find(|line| line.starts_with("error"))
                    .unwrap_or_default();
                let reason = format!("cargo could not build the kernels ({first})");
                self.take_checked_in(path, hash, &reason)
            }
            _ => Err(error),
        }
    }

    fn take_checked_in(&self, path: &Path, hash: &str, reason: &str) -> Result<Ptx, BuildError> {
        if in_build_script() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        let (ptx, warning) = checked_in::read(path, hash, reason)?;
        println!("cargo::warning={warning}");
        self.write(&ptx)?;
        Ok(ptx)
    }

    fn write(&self, ptx: &Ptx) -> Result<(), BuildError> {
        match &self.copy_to {
            Some(path) => Ok(files::write_atomically(path, ptx.text())?),
            None => Ok(()),
        }
    }

    fn tell_cargo(&self, sources: &Sources) -> Result<(), BuildError> {
        if !in_build_script() {
            return Ok(());
        }
        let lock = sources.workspace().join("Cargo.lock");
        let lock = lock.exists().then_some(lock);
        for path in sources
            .watched()?
            .into_iter()
            .chain(lock)
            .chain(Toolchain::watched())
        {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        for name in [DEVICE_RUSTC, UPDATE] {
            println!("cargo::rerun-if-env-changed={name}");
        }
        Ok(())
    }
}

fn in_build_script() -> bool {
    env::var_os("OUT_DIR").is_some()
}

/// `device` in the outer build's target directory, which cargo marks with a `CACHEDIR.TAG`; without the mark, in this
/// package's own output directory.
fn shared_target_dir() -> Result<PathBuf, BuildError> {
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").ok_or(BuildError::NoTargetDir)?);
    let target_dir = out_dir
        .ancestors()
        .find(|dir| dir.join("CACHEDIR.TAG").exists());
    Ok(target_dir.unwrap_or(&out_dir).join("device"))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const BODY: &str = ".version 7.0\n.target sm_80\n.visible .entry scale(\n";

    /// A kernel crate with PTX checked in that is from other sources if `stale`.
    fn kernel_crate(stale: bool) -> (TempDir, CudaBuilder) {
        let dir = TempDir::new().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("Cargo.toml"), "[package]\nname = \"k\"\n[workspace]\n").unwrap();
        fs::write(path("lib.rs"), "").unwrap();
        let hash = Sources::discover(dir.path()).unwrap().hash().unwrap();
        let stamp = Stamp::new(
            if stale { "00" } else { &hash },
            "rustc 1.95.0",
            &flags(Arch::SM80),
        );
        fs::write(
            path("checked-in.ptx"),
            Ptx::stamped(&stamp, BODY).unwrap().text(),
        )
        .unwrap();
        let builder = CudaBuilder::new(dir.path())
            .fallback(path("checked-in.ptx"))
            .copy_to(path("out/kernels.ptx"));
        (dir, builder)
    }

    fn not_found() -> Result<Toolchain, ToolchainError> {
        Err(ToolchainError::NotFound(vec![
            "rustc is 1.80.0".to_owned(),
            "no /usr/bin/rustc".to_owned(),
        ]))
    }

    #[test]
    fn without_a_toolchain_the_checked_in_ptx_is_copied_even_if_stale() {
        for stale in [false, true] {
            let (dir, builder) = kernel_crate(stale);
            let ptx = builder.build_with(not_found(), false).unwrap();
            assert_eq!(ptx.entry_points(), ["scale"]);
            assert_eq!(
                ptx.text(),
                fs::read_to_string(dir.path().join("checked-in.ptx")).unwrap()
            );
            assert_eq!(
                ptx.text(),
                fs::read_to_string(dir.path().join("out/kernels.ptx")).unwrap()
            );
        }
    }

    #[test]
    fn without_toolchain_and_checked_in_ptx_there_is_an_error_with_the_reasons() {
        let (_dir, builder) = kernel_crate(false);
        let error = CudaBuilder {
            fallback: None,
            ..builder
        }
        .build_with(not_found(), false)
        .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("rustc is 1.80.0; no /usr/bin/rustc"),
            "{error}"
        );
    }

    #[test]
    fn a_toolchain_that_was_insisted_on_is_never_replaced_by_checked_in_ptx() {
        let (_dir, builder) = kernel_crate(false);
        let error = builder
            .build_with(
                Err(ToolchainError::Insisted("it does not run".to_owned())),
                false,
            )
            .unwrap_err();
        assert_eq!(error.to_string(), "WARPROW_DEVICE_RUSTC: it does not run");
    }

    #[test]
    fn asked_to_update_the_checked_in_ptx_a_build_without_toolchain_fails() {
        let (_dir, builder) = kernel_crate(false);
        let error = builder.build_with(not_found(), true).unwrap_err();
        assert!(
            error.to_string().contains("WARPROW_UPDATE_PTX=1"),
            "{error}"
        );
    }

    #[test]
    fn what_is_checked_in_must_be_stamped_ptx() {
        let (dir, builder) = kernel_crate(false);
        fs::write(dir.path().join("checked-in.ptx"), BODY).unwrap();
        let error = builder.build_with(not_found(), false).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("checked-in.ptx: this PTX has no stamp"),
            "{error}"
        );
    }

    #[test]
    fn off_the_network_the_checked_in_ptx_serves_only_if_it_is_that_of_the_sources() {
        let failed = || BuildError::Cargo {
            package: "k".to_owned(),
            messages: "error: no network\n".to_owned(),
        };
        for stale in [false, true] {
            let (dir, builder) = kernel_crate(stale);
            let hash = Sources::discover(dir.path()).unwrap().hash().unwrap();
            assert_eq!(builder.without_cargo(failed(), &hash).is_err(), stale);
        }
    }
}
