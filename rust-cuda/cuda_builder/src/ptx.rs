//! A PTX module: its text, its entry points, and the stamp that says what it was made from.

use std::fmt;

use crate::Arch;

/// PTX with a stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx {
    text: String,
    stamp: Stamp,
    version: String,
    target: String,
    entry_points: Vec<String>,
}

/// Why a text is no PTX module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxError {
    /// A directive that every module has is not there.
    #[error("this is not a PTX module: it has no `{0}` directive")]
    NoDirective(&'static str),
    /// The comment lines of [`Stamp`] are not at the beginning.
    #[error(
        "this PTX has no stamp: its first lines do not say which sources and compiler it is from"
    )]
    NoStamp,
}

impl Ptx {
    /// Reads a stamped module, as [`CudaBuilder::build`](crate::CudaBuilder::build) writes it.
    ///
    /// # Errors
    ///
    /// The text is no PTX, or has no stamp.
    pub fn parse(text: impl Into<String>) -> Result<Ptx, PtxError> {
        let text = text.into();
        let stamp = Ptx::parse_stamp(&text).ok_or(PtxError::NoStamp)?;
        let version = directive(&text, ".version")
            .ok_or(PtxError::NoDirective(".version"))?
            .to_owned();
        let target = directive(&text, ".target")
            .ok_or(PtxError::NoDirective(".target"))?
            .to_owned();
        let entry_points = text
            .lines()
            .filter_map(entry_point)
            .map(str::to_owned)
            .collect();
        Ok(Ptx {
            text,
            stamp,
            version,
            target,
            entry_points,
        })
    }

    /// The compiler's text with a stamp put before it, and the limits of registers where they belong. Line ends become `\n` whatever the
    /// machine.
    pub(crate) fn stamped(stamp: &Stamp, compiled: &str) -> Result<Ptx, PtxError> {
        Ptx::parse(format!("{stamp}{}", with_limits(compiled)))
    }

    /// The stamp of a PTX text; `None` if it has none.
    pub fn parse_stamp(text: &str) -> Option<Stamp> {
        let mut lines = text.lines();
        let mut field = |name: &str| {
            let value = lines
                .next()?
                .strip_prefix("// ")?
                .strip_prefix(name)?
                .strip_prefix(": ")?;
            Some(value.trim_end().to_owned())
        };
        field("made by")?;
        let sources = field("sources")?.strip_prefix("sha256 ")?.to_owned();
        let compiler = field("compiler")?;
        let flags = field("flags")?;
        Some(Stamp {
            sources,
            compiler,
            flags,
        })
    }

    /// The whole text, stamp included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the module was made from.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// The PTX version, `7.0` say: the driver must know it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The least architecture it runs on, `sm_80` say.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The names of the kernels, in the order of the text.
    pub fn entry_points(&self) -> &[String] {
        &self.entry_points
    }
}

/// The text with each limit of registers before the body of its entry point, where `#[kernel]` leaves it as a comment, `// .maxnreg NUMBER`:
/// rustc has no attribute for it. One that is for newer architectures than the text's, `// .maxnreg NUMBER sm_90`, stays a comment there, for
/// whoever knows the GPU when the text is loaded.
fn with_limits(compiled: &str) -> String {
    let mut text = String::with_capacity(compiled.len());
    let (mut in_entry, mut body) = (false, None);
    for line in compiled.lines() {
        in_entry |= entry_point(line).is_some();
        if line == "{" && in_entry {
            (in_entry, body) = (false, Some(text.len()));
        }
        if let Some(limit) = line.trim().strip_prefix("// .maxnreg ")
            && let Some(body) = body.take()
        {
            let comment = if limit.contains("sm_") { "// " } else { "" };
            text.insert_str(body, &format!("{comment}.maxnreg {limit}\n"));
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn directive<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.next().map(str::trim)
}

fn entry_point(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix(".visible .entry ")?;
    Some(name.split_once('(').map_or(name, |(name, _)| name).trim())
}

/// What a PTX module was made from: the first lines of its text, as comments.
///
/// Two modules with equal stamps have equal text: that is what lets a build leave a module as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    sources: String,
    compiler: String,
    flags: String,
}

impl Stamp {
    pub(crate) fn new(sources: &str, compiler: &str, flags: &[String]) -> Stamp {
        Stamp {
            sources: sources.to_owned(),
            compiler: compiler.to_owned(),
            flags: flags.join(" "),
        }
    }

    /// The SHA-256 of the sources in hexadecimal, as [`sources_hash`](crate::sources_hash) gives it.
    pub fn sources(&self) -> &str {
        &self.sources
    }

    /// The compiler's version, as [`Toolchain::compiler`](crate::Toolchain::compiler) gives it.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// The compiler's flags that change the code, separated by spaces.
    pub fn flags(&self) -> &str {
        &self.flags
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "// made by: cuda_builder; do not edit, WARPROW_UPDATE_PTX=1 cargo build makes it anew"
        )?;
        writeln!(f, "// sources: sha256 {}", self.sources)?;
        writeln!(f, "// compiler: {}", self.compiler)?;
        writeln!(f, "// flags: {}", self.flags)
    }
}

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

    const BODY: &str = "//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 7.0\n.target sm_80\n.address_size 64\n\n\
        .visible .entry scale_f32(\n\t.param .u64 p\n)\n{\n\tret;\n}\n.visible .entry empty()\n{\n\tret;\n}\n\
        .func inner(\n)\n{\n\tret;\n}\n";

    fn stamp() -> Stamp {
        Stamp::new(
            "0123abcd",
            "rustc 1.96.0 (ac68faa20 2026-05-25), LLVM 22.1.8",
            &flags(Arch::SM80),
        )
    }

    #[test]
    fn a_stamped_module_gives_back_its_parts() {
        let ptx = Ptx::stamped(&stamp(), BODY).unwrap();
        assert_eq!(ptx.entry_points(), ["scale_f32", "empty"]);
        assert_eq!((ptx.version(), ptx.target()), ("7.0", "sm_80"));
        assert_eq!(ptx.stamp(), &stamp());
        assert_eq!(Ptx::parse(ptx.text()).unwrap(), ptx);
        assert!(ptx.text().ends_with(BODY));
    }

    #[test]
    fn a_limit_of_registers_stands_before_the_body_of_its_entry_point_alone() {
        for (limit, before) in [
            ("// .maxnreg 96", ".maxnreg 96"),
            ("// .maxnreg 64 sm_90", "// .maxnreg 64 sm_90"),
        ] {
            let limited = BODY.replacen("\tret;", &format!("\t{limit}\n\tret;"), 1);
            let ptx = Ptx::stamped(&stamp(), &limited).unwrap();
            let head = "\t.param .u64 p\n)\n";
            let wanted = BODY.replace(&format!("{head}{{"), &format!("{head}{before}\n{{"));
            assert_ne!(wanted, BODY);
            assert!(ptx.text().ends_with(&wanted), "{}", ptx.text());
        }
    }

    #[test]
    fn line_ends_of_a_checkout_do_not_hide_the_stamp() {
        let ptx = Ptx::stamped(&stamp(), BODY).unwrap();
        let dos = ptx.text().replace('\n', "\r\n");
        assert_eq!(Ptx::parse_stamp(&dos), Some(stamp()));
        assert_eq!(Ptx::parse(dos).unwrap().entry_points(), ptx.entry_points());
        assert_eq!(
            Ptx::stamped(&stamp(), &BODY.replace('\n', "\r\n")).unwrap(),
            ptx
        );
    }

    #[test]
    fn a_text_without_stamp_or_directives_is_refused() {
        assert_eq!(Ptx::parse(BODY), Err(PtxError::NoStamp));
        assert_eq!(Ptx::parse(""), Err(PtxError::NoStamp));
        assert_eq!(
            Ptx::parse(stamp().to_string()),
            Err(PtxError::NoDirective(".version"))
        );
        assert_eq!(
            Ptx::stamped(&stamp(), ".version 7.0\n"),
            Err(PtxError::NoDirective(".target"))
        );
        assert_eq!(
            Ptx::parse_stamp("// made by: x\n// sources: sha256 12\n"),
            None
        );
    }
}
