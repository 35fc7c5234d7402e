//! What an archive of PTX modules was made from.

use std::fmt;

use crate::nested_cargo::PROFILE;
use crate::{Arch, ArchiveError, Sources, SourcesError};
use ptx_archive::Archive;

/// How the compiler's text is cut into modules. A change of that changes the number, so that archives are made again.
const FORMAT: u32 = 2;

/// All that decides the code of an archive's modules, but the compiler. Two archives with equal inputs and compilers
/// are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// The first line of a stamp, with the number of the format.
    format: String,
    sources: String,
    packages: String,
    flags: String,
    profile: String,
}

/// What an archive was made from, as its member `stamp` says: [`Inputs`], and the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    inputs: Inputs,
    compiler: String,
}

impl Inputs {
    /// Those of a kernel crate as it is now, for an architecture.
    ///
    /// # Errors
    ///
    /// A source file, or the lock file, cannot be read.
    pub fn of(sources: &Sources, arch: Arch) -> Result<Inputs, SourcesError> {
        let profile = PROFILE.map(|(name, value)| format!("{}={value}", name.to_lowercase()));
        Ok(Inputs {
            format: format!("cuda_builder's modules, format {FORMAT}"),
            sources: format!("sha256 {}", sources.hash()?),
            packages: sources.registry_packages()?.join(", "),
            flags: flags(arch).join(" "),
            profile: profile.join(" "),
        })
    }

    /// The first of them that is another one in `other`, as one word.
    pub fn difference(&self, other: &Inputs) -> Option<&'static str> {
        let mut fields = self.fields().into_iter().zip(other.fields());
        fields.find_map(|((name, one), (_, other))| (one != other).then_some(name))
    }

    /// The lines of a stamp and what each says.
    fn fields(&self) -> [(&'static str, &String); 5] {
        [
            ("format", &self.format),
            ("sources", &self.sources),
            ("packages", &self.packages),
            ("flags", &self.flags),
            ("profile", &self.profile),
        ]
    }
}

impl Stamp {
    pub(crate) fn new(inputs: Inputs, compiler: &str) -> Stamp {
        Stamp {
            inputs,
            compiler: compiler.to_owned(),
        }
    }

    /// The stamp of an archive.
    ///
    /// # Errors
    ///
    /// It has none.
    pub fn of(archive: &Archive) -> Result<Stamp, StampError> {
        let text = archive.stamp()?;
        Stamp::parse(&text).ok_or(StampError::Unknown(text))
    }

    fn parse(text: &str) -> Option<Stamp> {
        let mut lines = text.lines();
        let mut field = |name: &str| {
            let value = lines.next()?.strip_prefix(name)?.strip_prefix(':')?;
            Some(value.trim().to_owned())
        };
        Some(Stamp {
            inputs: Inputs {
                format: field("format")?,
                sources: field("sources")?,
                packages: field("packages")?,
                flags: field("flags")?,
                profile: field("profile")?,
            },
            compiler: field("compiler")?,
        })
    }

    /// All but the compiler.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// The compiler's version, as [`Toolchain::compiler`](crate::Toolchain::compiler) gives it.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.inputs.fields() {
            writeln!(f, "{name}: {value}")?;
        }
        writeln!(f, "compiler: {}", self.compiler)
    }
}

/// Why it cannot be told what an archive was made from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StampError {
    /// The archive has no stamp.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The stamp is not one of this builder.
    #[error("the archive's stamp has not the lines that are wanted: {0:?}")]
    Unknown(String),
}

/// The compiler's flags that change the code.
pub(crate) fn flags(arch: Arch) -> Vec<String> {
    // Jump threading may copy a barrier into both arms of a branch: threads of one warp then wait at two barriers.
    vec![
        format!("-Ctarget-cpu={arch}"),
        "-Zmir-enable-passes=-JumpThreading".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        let inputs = Inputs {
            format: "cuda_builder's modules, format 1".to_owned(),
            sources: "sha256 0123".to_owned(),
            packages: String::new(),
            flags: flags(Arch::SM80).join(" "),
            profile: "lto=fat".to_owned(),
        };
        Stamp::new(inputs, "rustc 1.96.0 (ac68faa20 2026-05-25), LLVM 22.1.8")
    }

    #[test]
    fn a_stamp_is_read_as_it_is_written_whatever_the_line_ends() {
        let text = stamp().to_string();
        assert_eq!(Stamp::parse(&text), Some(stamp()));
        assert_eq!(Stamp::parse(&text.replace('\n', "\r\n")), Some(stamp()));
        for other in ["", "format: 1\nsources: 2\n", "sources: sha256 12\n"] {
            assert_eq!(Stamp::parse(other), None);
        }
    }

    #[test]
    fn the_first_difference_of_inputs_is_named() {
        let old = stamp().inputs;
        assert_eq!(old.difference(&old), None);
        let new = Inputs {
            packages: "half 2.7.1".to_owned(),
            flags: String::new(),
            ..old.clone()
        };
        assert_eq!(old.difference(&new), Some("packages"));
    }
}
