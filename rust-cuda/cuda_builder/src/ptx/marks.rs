//! What `#[kernel]` says of an entry point and the compiler has no attribute for: a variable beside it, whose bytes are
//! text.
//!
//! The variable's name is `kernel_marks$` and the entry point's. It comes into no module. Semicolons separate marks:
//!
//! | mark | meaning |
//! |---|---|
//! | `target sm_90` | the kernel has instructions of that architecture |
//! | `module analysis` | it is in one module with all kernels that have the same mark |
//! | `registers 96` | a thread has at most so many registers |
//! | `registers 72 sm_90` | the same, on GPUs of that architecture and newer ones |

use super::PtxError;
use crate::Arch;

/// What the names of the variables begin with.
const PREFIX: &str = "kernel_marks$";

/// The entry point whose marks a variable of that name has.
pub(super) fn kernel_of(variable: &str) -> Option<&str> {
    variable.strip_prefix(PREFIX)
}

/// The marks of an entry point.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The module that it shares with others.
    pub module: Option<String>,
    /// The architecture that its instructions want, if that is not the whole text's.
    target: Option<Arch>,
    /// Numbers of registers, each with the architecture from which on it holds.
    limits: Vec<(Option<Arch>, u32)>,
}

impl Marks {
    /// Reads the marks of the entry point `kernel` from the declaration of their variable.
    pub fn read(kernel: &str, declaration: &str) -> Result<Marks, PtxError> {
        let values = declaration.split(['{', '}']).nth(1).unwrap_or_default();
        let bytes: Result<Vec<u8>, _> = values
            .split(',')
            .map(|value| value.trim().parse())
            .collect();
        let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| refused(kernel, declaration, "text as bytes"))?;
        Marks::parse(kernel, &text)
    }

    fn parse(kernel: &str, text: &str) -> Result<Marks, PtxError> {
        let mut marks = Marks::default();
        for mark in text.split(';').map(str::trim) {
            let refused = |wanted| refused(kernel, mark, wanted);
            let words: Vec<&str> = mark.split_whitespace().collect();
            let arch = |word: &str| word.parse::<Arch>().ok();
            match words[..] {
                ["module", module] => marks.module = Some(module.to_owned()),
                ["target", target] => {
                    let target = arch(target).ok_or_else(|| refused("`target sm_90`"))?;
                    marks.target = Some(target);
                }
                ["registers", count] => {
                    let count = count.parse().map_err(|_| refused("`registers 96`"))?;
                    marks.limits.push((None, count));
                }
                ["registers", count, from] => {
                    let limit = count.parse().ok().zip(arch(from));
                    let (count, from) = limit.ok_or_else(|| refused("`registers 72 sm_90`"))?;
                    marks.limits.push((Some(from), count));
                }
                _ => return Err(refused("`target`, `module` or `registers`")),
            }
        }
        Ok(marks)
    }

    /// The architectures that the entry point needs a module for, each with its limit of registers, where the whole
    /// text is for `arch`.
    pub fn variants(&self, arch: Arch) -> Vec<(Arch, Option<u32>)> {
        let least = self.target.unwrap_or(arch);
        let newer = self.limits.iter().filter_map(|&(from, _)| from);
        let mut targets: Vec<Arch> = newer.filter(|&from| from > least).chain([least]).collect();
        targets.sort_unstable();
        targets.dedup();
        let limit = |target| {
            let mut holding: Vec<(Option<Arch>, u32)> = self.limits.clone();
            holding.retain(|&(from, _)| from.is_none_or(|from| from <= target));
            // None, which is all architectures, is the least.
            holding.sort_by_key(|&(from, _)| from);
            holding.last().map(|&(_, count)| count)
        };
        targets
            .into_iter()
            .map(|target| (target, limit(target)))
            .collect()
    }
}

fn refused(kernel: &str, mark: &str, wanted: &'static str) -> PtxError {
    PtxError::Mark {
        kernel: kernel.to_owned(),
        mark: mark.to_owned(),
        wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(marks: &str) -> Vec<(Arch, Option<u32>)> {
        Marks::parse("k", marks).unwrap().variants(Arch::SM80)
    }

    #[test]
    fn marks_are_the_bytes_of_their_variable() {
        let declaration = |bytes: &[u8]| {
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            let (count, bytes) = (bytes.len(), bytes.join(", "));
            format!(".visible .global .align 1 .b8 kernel_marks$k[{count}] = {{{bytes}}};")
        };
        let marks = Marks::read("k", &declaration(b"target sm_90; module small")).unwrap();
        assert_eq!(marks.module.as_deref(), Some("small"));
        assert_eq!(marks.variants(Arch::SM80), [(Arch::SM90, None)]);
        for other in [declaration(&[0xff]), "kernel_marks$k[12];".to_owned()] {
            let error = Marks::read("k", &other).unwrap_err().to_string();
            assert!(error.ends_with("wanted is text as bytes"), "{error}");
        }
        assert_eq!(kernel_of("kernel_marks$k"), Some("k"));
        assert_eq!(kernel_of("table"), None);
    }

    #[test]
    fn an_entry_point_without_marks_is_for_the_architecture_of_the_text() {
        let variants = Marks::default().variants(Arch::SM80);
        assert_eq!(variants, [(Arch::SM80, None)]);
    }

    #[test]
    fn a_target_takes_the_place_of_the_architecture() {
        assert_eq!(variants("target sm_90a"), [(Arch::SM90A, None)]);
        assert_eq!(
            variants("registers 96; target sm_90"),
            [(Arch::SM90, Some(96))]
        );
    }

    #[test]
    fn a_limit_for_newer_architectures_makes_a_second_variant() {
        assert_eq!(
            variants("registers 72 sm_90"),
            [(Arch::SM80, None), (Arch::SM90, Some(72))]
        );
        assert_eq!(
            variants("registers 64 sm_100; registers 128; registers 72 sm_90"),
            [
                (Arch::SM80, Some(128)),
                (Arch::SM90, Some(72)),
                (Arch::SM100, Some(64))
            ]
        );
        assert_eq!(
            variants("target sm_90; registers 72 sm_80"),
            [(Arch::SM90, Some(72))]
        );
    }

    #[test]
    fn marks_that_are_not_known_are_refused() {
        for mark in [
            "target",
            "target 90",
            "registers x",
            "registers 1 x",
            "grid 3",
            "",
        ] {
            let error = Marks::parse("k", mark).unwrap_err();
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("kernel `k` has the mark `{mark}`")),
                "{text}"
            );
        }
    }
}
