//! What `#[kernel]` says of an entry point, which the compiler cannot: comments that begin with `@kernel`.
//!
//! | mark | meaning |
//! |---|---|
//! | `target sm_90` | the kernel has instructions of that architecture |
//! | `registers 96` | a thread has at most so many registers |
//! | `registers 72 sm_90` | the same, on GPUs of that architecture and newer ones |

use super::PtxError;
use crate::Arch;

/// What a comment begins with that is a mark.
pub(super) const MARK: &str = "@kernel ";

/// The marks of an entry point.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The architecture that its instructions want, if that is not the whole text's.
    target: Option<Arch>,
    /// Numbers of registers, each with the architecture from which on it holds.
    limits: Vec<(Option<Arch>, u32)>,
}

impl Marks {
    /// Reads the marks of the entry point `kernel`.
    pub fn parse(kernel: &str, texts: &[String]) -> Result<Marks, PtxError> {
        let mut marks = Marks::default();
        for text in texts {
            let refused = |wanted| PtxError::Mark {
                kernel: kernel.to_owned(),
                mark: text.clone(),
                wanted,
            };
            let words: Vec<&str> = text.split_whitespace().collect();
            let arch = |word: &str| word.parse::<Arch>().ok();
            match words[..] {
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
                _ => return Err(refused("`target` or `registers`")),
            }
        }
        Ok(marks)
    }

    /// The architectures that the entry point needs a module for, each with its limit of registers, where the whole text is for
    /// `arch`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(marks: &[&str]) -> Vec<(Arch, Option<u32>)> {
        let texts: Vec<String> = marks.iter().map(|&mark| mark.to_owned()).collect();
        Marks::parse("k", &texts).unwrap().variants(Arch::SM80)
    }

    #[test]
    fn an_entry_point_without_marks_is_for_the_architecture_of_the_text() {
        assert_eq!(variants(&[]), [(Arch::SM80, None)]);
    }

    #[test]
    fn a_target_takes_the_place_of_the_architecture() {
        assert_eq!(variants(&["target sm_90a"]), [(Arch::SM90A, None)]);
        assert_eq!(
            variants(&["registers 96", "target sm_90"]),
            [(Arch::SM90, Some(96))]
        );
    }

    #[test]
    fn a_limit_for_newer_architectures_makes_a_second_variant() {
        assert_eq!(
            variants(&["registers 72 sm_90"]),
            [(Arch::SM80, None), (Arch::SM90, Some(72))]
        );
        assert_eq!(
            variants(&["registers 64 sm_100", "registers 128", "registers 72 sm_90"]),
            [
                (Arch::SM80, Some(128)),
                (Arch::SM90, Some(72)),
                (Arch::SM100, Some(64))
            ]
        );
        let older = ["target sm_90", "registers 72 sm_80"];
        assert_eq!(variants(&older), [(Arch::SM90, Some(72))]);
    }

    #[test]
    fn marks_that_are_not_known_are_refused() {
        for mark in [
            "target",
            "target 90",
            "registers x",
            "registers 1 x",
            "grid 3",
        ] {
            let error = Marks::parse("k", &[mark.to_owned()]).unwrap_err();
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("kernel `k` has the mark `{mark}`")),
                "{text}"
            );
        }
    }
}
