//! The builder that a build script uses: compiles when it must, else takes what is there.

use std::env;
use std::fs;
use std::path::PathBuf;

use ptx_archive::Archive;

use crate::checked_in::{self, CheckedIn};
use crate::toolchain::DEVICE_RUSTC;
use crate::{
    Arch, BuildError, Inputs, Sources, Stamp, Toolchain, ToolchainError, files, nested_cargo, ptx,
};

/// The environment variable that asks for the checked-in archives to be made anew.
const UPDATE: &str = "WARPROW_UPDATE_PTX";

/// Builds a kernel crate to an archive of PTX modules.
///
/// ```no_run
/// // build.rs
/// use cuda_builder::CudaBuilder;
///
/// fn main() -> Result<(), cuda_builder::BuildError> {
///     let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
///     CudaBuilder::new("my-kernels")
///         .checked_in("my-kernels.zip")
///         .copy_to(std::path::Path::new(&out).join("my-kernels.zip"))
///         .build()?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct CudaBuilder {
    crate_dir: PathBuf,
    arch: Arch,
    copy_to: Option<PathBuf>,
    checked_in: Option<PathBuf>,
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
            checked_in: None,
            target_dir: None,
            toolchain: None,
        }
    }

    /// The least GPU architecture that the kernels run on, but for those whose attribute says `target = ..`; default:
    /// `sm_80`.
    pub fn arch(mut self, arch: impl Into<Arch>) -> CudaBuilder {
        self.arch = arch.into();
        self
    }

    /// Where to write the archive. If an up-to-date one is there, nothing is compiled.
    pub fn copy_to(mut self, path: impl Into<PathBuf>) -> CudaBuilder {
        self.copy_to = Some(path.into());
        self
    }

    /// The archive that an earlier build made and that is checked in. It is taken as it is, and nothing is compiled, as
    /// long as nothing has changed that decides the code. Where no toolchain makes PTX it is taken in any case, with a
    /// warning. The environment variable `WARPROW_UPDATE_PTX=1` has it made anew.
    ///
    /// It is also taken as it is in a package that `cargo package` made, if the kernel crate is that package, or if its
    /// folder is missing: such a package has no other packages in it, and its files are not changed any more.
    pub fn checked_in(mut self, path: impl Into<PathBuf>) -> CudaBuilder {
        self.checked_in = Some(path.into());
        self
    }

    /// Where to compile; default: a directory `device` in the target directory of the outer build, so that all kernel
    /// crates and profiles share one `core`.
    pub fn target_dir(mut self, path: impl Into<PathBuf>) -> CudaBuilder {
        self.target_dir = Some(path.into());
        self
    }

    /// The toolchain to use, instead of the one that [`Toolchain::find`] gives.
    pub fn toolchain(mut self, toolchain: Toolchain) -> CudaBuilder {
        self.toolchain = Some(toolchain);
        self
    }

    /// Takes the archive that is [checked in](CudaBuilder::checked_in) if it is that of the present sources. Else
    /// leaves the one at [`copy_to`](CudaBuilder::copy_to) as it is if the same compiler made it from the same sources.
    /// Else compiles the kernels. In a build script it also tells cargo what to watch.
    ///
    /// # Errors
    ///
    /// The kernels do not compile (the error's text has the compiler's messages); or there is no kernel; or there is
    /// neither toolchain nor archive; or `WARPROW_DEVICE_RUSTC` names a compiler that does not serve; or the compiler
    /// does not know the architecture; or a file cannot be read or written.
    pub fn build(self) -> Result<Archive, BuildError> {
        let find = || match &self.toolchain {
            Some(toolchain) => Ok(toolchain.clone()),
            None => Toolchain::find(),
        };
        let update =
            self.checked_in.is_some() && env::var_os(UPDATE).is_some_and(|value| value == "1");
        self.build_with(find, update)
    }

    /// `find` looks for a toolchain; it is asked only if one is needed.
    fn build_with(
        &self,
        find: impl FnOnce() -> Result<Toolchain, ToolchainError>,
        update: bool,
    ) -> Result<Archive, BuildError> {
        if let Some(path) = self.checked_in.as_ref().filter(|_| self.is_packed()) {
            watch([path.clone()]);
            return self.finish(CheckedIn::read(path).bytes()?);
        }
        let sources = Sources::discover(&self.crate_dir)?;
        self.tell_cargo(&sources)?;
        let inputs = Inputs::of(&sources, self.arch)?;
        let checked_in = self.checked_in.as_deref().map(CheckedIn::read);
        let current = (checked_in.as_ref()).and_then(|checked_in| checked_in.of_inputs(&inputs));
        if let Some(archive) = current.filter(|_| !update) {
            return self.finish(archive.bytes.clone());
        }
        watch(Toolchain::watched());
        let toolchain = match find() {
            Ok(toolchain) => toolchain,
            Err(error) if update => return Err(BuildError::CannotUpdate(error)),
            Err(error @ ToolchainError::NotFound(_)) => {
                let checked_in = checked_in.ok_or_else(|| error.clone())?;
                let bytes = checked_in.stale(&inputs, &error.to_string())?;
                return self.finish(bytes);
            }
            Err(error) => return Err(error.into()),
        };
        let stamp = Stamp::new(inputs, toolchain.compiler());
        let made = [current.cloned(), self.made_earlier()];
        let made = made.into_iter().flatten();
        let bytes = match made.into_iter().find(|made| made.stamp == stamp) {
            Some(made) => made.bytes,
            None => self.compile(&toolchain, &sources, stamp)?,
        };
        if let (true, Some(path)) = (update, &self.checked_in) {
            files::write_if_other(path, &bytes)?;
        }
        self.finish(bytes)
    }

    /// Whether `cargo package` made the package that is built, and the kernel crate is that package or was left out.
    /// Cargo puts the original manifest beside the one that it writes.
    fn is_packed(&self) -> bool {
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let Some(package) = package.filter(|dir| dir.join("Cargo.toml.orig").exists()) else {
            return false;
        };
        match self.crate_dir.canonicalize() {
            Ok(kernels) => package.canonicalize().is_ok_and(|dir| dir == kernels),
            Err(_) => true,
        }
    }

    fn compile(
        &self,
        toolchain: &Toolchain,
        sources: &Sources,
        mut stamp: Stamp,
    ) -> Result<Vec<u8>, BuildError> {
        let target_dir = match &self.target_dir {
            Some(dir) => {
                std::path::absolute(dir).map_err(|e| files::FileError::new("find", dir, e))?
            }
            None => shared_target_dir()?,
        };
        let is_locked = sources.lock_file().exists();
        let compiled = nested_cargo::compile(toolchain, sources, self.arch, &target_dir)?;
        let package = || sources.package().to_owned();
        if !is_locked {
            // The first build of a kernel crate writes its lock file.
            stamp = Stamp::new(Inputs::of(sources, self.arch)?, toolchain.compiler());
        }
        let modules = ptx::modules(&compiled, self.arch).map_err(|source| BuildError::Ptx {
            package: package(),
            source,
        })?;
        if modules.is_empty() {
            return Err(BuildError::NoKernels { package: package() });
        }
        let modules = modules
            .iter()
            .map(|(module, text)| (module.clone(), text.as_str()));
        Ok(ptx_archive::write(modules, &stamp.to_string()))
    }

    /// What an earlier build wrote.
    fn made_earlier(&self) -> Option<checked_in::Stamped> {
        checked_in::Stamped::read(fs::read(self.copy_to.as_ref()?).ok()?).ok()
    }

    fn finish(&self, bytes: Vec<u8>) -> Result<Archive, BuildError> {
        if let Some(path) = &self.copy_to {
            files::write_if_other(path, &bytes)?;
        }
        Ok(Archive::open(bytes)?)
    }

    fn tell_cargo(&self, sources: &Sources) -> Result<(), BuildError> {
        watch(sources.watched()?);
        watch(self.checked_in.iter().filter(|path| path.exists()).cloned());
        if in_build_script() {
            for name in [DEVICE_RUSTC, UPDATE] {
                println!("cargo::rerun-if-env-changed={name}");
            }
        }
        Ok(())
    }
}

/// Tells cargo to run the build script again when one of these files changes.
fn watch(paths: impl IntoIterator<Item = PathBuf>) {
    if in_build_script() {
        for path in paths {
            println!("cargo::rerun-if-changed={}", path.display());
        }
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
    use ptx_archive::{Module, PtxVersion};
    use tempfile::TempDir;

    use super::*;

    /// A kernel crate with an archive checked in that is from other sources if `stale`.
    fn kernel_crate(stale: bool) -> (TempDir, CudaBuilder) {
        let dir = TempDir::new().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("src")).unwrap();
        fs::write(path("Cargo.toml"), "[package]\nname = \"k\"\n[workspace]\n").unwrap();
        fs::write(path("src/lib.rs"), "fn old() {}").unwrap();
        let inputs = Inputs::of(&Sources::discover(dir.path()).unwrap(), Arch::SM80).unwrap();
        let stamp = Stamp::new(inputs, "rustc 1.95.0");
        if stale {
            fs::write(path("src/lib.rs"), "fn new() {}").unwrap();
        }
        let module = Module {
            name: "scale.sm_80.ptx".to_owned(),
            target: Arch::SM80,
            version: PtxVersion::new(7, 0),
            kernels: vec!["scale".to_owned()],
        };
        let archive = ptx_archive::write([(module, ".version 7.0\n")], &stamp.to_string());
        fs::write(path("checked-in.zip"), archive).unwrap();
        let builder = CudaBuilder::new(dir.path())
            .checked_in(path("checked-in.zip"))
            .copy_to(path("out/kernels.zip"));
        (dir, builder)
    }

    fn not_found() -> Result<Toolchain, ToolchainError> {
        Err(ToolchainError::NotFound(vec![
            "rustc is 1.80.0".to_owned(),
            "no /usr/bin/rustc".to_owned(),
        ]))
    }

    /// Whether the archive at `copy_to` is the checked-in one.
    fn is_copied(dir: &TempDir) -> bool {
        let [checked_in, copy] = ["checked-in.zip", "out/kernels.zip"]
            .map(|name| fs::read(dir.path().join(name)).unwrap());
        checked_in == copy
    }

    #[test]
    fn a_current_archive_is_taken_and_no_toolchain_is_looked_for() {
        let (dir, builder) = kernel_crate(false);
        let archive = builder
            .build_with(|| unreachable!("the archive is current"), false)
            .unwrap();
        assert_eq!(archive.modules()[0].kernels, ["scale"]);
        assert!(is_copied(&dir));
    }

    #[test]
    fn without_a_toolchain_a_stale_archive_is_taken() {
        let (dir, builder) = kernel_crate(true);
        builder.build_with(not_found, false).unwrap();
        assert!(is_copied(&dir));
    }

    #[test]
    fn a_file_that_is_the_same_is_not_written_again() {
        let (dir, builder) = kernel_crate(false);
        builder.build_with(not_found, false).unwrap();
        let written = || fs::metadata(dir.path().join("out/kernels.zip")).unwrap();
        let before = written().modified().unwrap();
        builder.build_with(not_found, false).unwrap();
        assert_eq!(written().modified().unwrap(), before);
    }

    #[test]
    fn without_toolchain_and_archive_there_is_an_error_with_the_reasons() {
        let (_dir, builder) = kernel_crate(false);
        let builder = CudaBuilder {
            checked_in: None,
            ..builder
        };
        let error = builder.build_with(not_found, false).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("rustc is 1.80.0; no /usr/bin/rustc"),
            "{error}"
        );
    }

    #[test]
    fn a_toolchain_that_was_insisted_on_is_not_replaced_by_a_stale_archive() {
        let (_dir, builder) = kernel_crate(true);
        let insisted = || Err(ToolchainError::Insisted("it does not run".to_owned()));
        let error = builder.build_with(insisted, false).unwrap_err();
        assert_eq!(error.to_string(), "WARPROW_DEVICE_RUSTC: it does not run");
    }

    #[test]
    fn asked_for_new_archives_a_build_without_toolchain_fails() {
        let (_dir, builder) = kernel_crate(false);
        let error = builder.build_with(not_found, true).unwrap_err();
        assert!(
            error.to_string().contains("WARPROW_UPDATE_PTX=1"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_no_archive_is_named_in_the_error() {
        let (dir, builder) = kernel_crate(false);
        fs::write(dir.path().join("checked-in.zip"), ".version 7.0\n").unwrap();
        let error = builder.build_with(not_found, false).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("checked-in.zip: this is no archive of PTX modules"),
            "{error}"
        );
    }
}
