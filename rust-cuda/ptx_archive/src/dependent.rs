//! Dependent launches: kernels that wait for the launch before them themselves.
//!
//! Normally a GPU starts the blocks of a launch after all that the launch before has written has become visible. In a
//! *programmatic dependent launch*, which GPUs have from sm_90 on, it starts them as soon as all blocks before have
//! ended. They overlap the end of that launch, until they wait for it with `griddepcontrol.wait` (PTX ISA, chapter
//! "Parallel Synchronization and Communication Instructions").
//!
//! Here a kernel waits before its first instruction. So it never sees less than after a normal launch, and what is saved
//! is the time to start its blocks.

use crate::{Arch, PtxVersion};

/// The oldest architecture with dependent launches.
pub const DEPENDENT: Arch = Arch::SM90;

/// The PTX version that brought them.
const DEPENDENT_VERSION: PtxVersion = PtxVersion::new(7, 8);

/// The text of a module, each kernel of which waits for the launch before it. It is for [`DEPENDENT`] and newer GPUs,
/// and for no other than before if its target was newer.
///
/// `text` is a module of an [`Archive`](crate::Archive), as `cuda_builder` writes it: directives have a line each, and
/// there are no comments.
pub fn waiting(text: &str) -> String {
    let mut waiting = String::with_capacity(text.len() + 64);
    // A kernel whose body has not begun.
    let mut is_open = false;
    for line in text.split_inclusive('\n') {
        let newer = newer_directive(line);
        let line = newer.as_deref().unwrap_or(line);
        is_open |= line.contains(".entry ");
        match line.split_once('{') {
            Some((before, body)) if is_open => {
                is_open = false;
                waiting.extend([before, "{\n\tgriddepcontrol.wait;", body]);
                if body.is_empty() {
                    waiting.push('\n');
                }
            }
            _ => waiting.push_str(line),
        }
    }
    waiting
}

/// The line in the place of one that gives an older version or target than those of dependent launches.
fn newer_directive(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    match (words.next()?, words.next()?) {
        (".version", version) => {
            let version: PtxVersion = version.parse().ok()?;
            (version < DEPENDENT_VERSION).then(|| format!(".version {DEPENDENT_VERSION}\n"))
        }
        (".target", target) => {
            let target: Arch = target.parse().ok()?;
            (target < DEPENDENT).then(|| format!(".target {DEPENDENT}\n"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with two kernels and a function, of that version and target.
    fn module(version: &str, target: &str, wait: &str) -> String {
        format!(
            ".version {version}\n.target {target}\n.address_size 64\n\n\
             .func helper()\n{{\n\tret;\n}}\n\n\
             .visible .entry first(\n\t.param .b64 first_param_0\n)\n.maxnreg 72\n{{{wait}\n\t{{ .reg .b32 tmp; }}\n\tret;\n}}\n\
             .visible .entry second()\n{{{wait}\n\tret;\n}}\n"
        )
    }

    const WAIT: &str = "\n\tgriddepcontrol.wait;";

    #[test]
    fn each_kernel_waits_once_before_its_first_instruction_and_functions_do_not() {
        assert_eq!(
            waiting(&module("7.0", "sm_80", "")),
            module("7.8", "sm_90", WAIT)
        );
    }

    #[test]
    fn newer_versions_and_targets_stay() {
        for (version, target) in [("7.8", "sm_90"), ("8.0", "sm_90a"), ("8.7", "sm_120")] {
            let expected = module(version, target, WAIT);
            assert_eq!(waiting(&module(version, target, "")), expected);
        }
    }
}
