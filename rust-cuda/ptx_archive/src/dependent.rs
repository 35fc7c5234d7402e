//! Dependent launches: kernels that wait for the launch before them themselves.
//!
//! Normally a GPU starts the blocks of a launch after all that the launch before has written has become visible. In a
//! *programmatic dependent launch*, which GPUs have from sm_90 on, it starts them as soon as all blocks before have
//! ended. They overlap the end of that launch, until they wait for it with `griddepcontrol.wait` (PTX ISA, chapter
//! "Parallel Synchronization and Communication Instructions").
//!
//! Here a kernel waits before its first instruction. So it never sees less than after a normal launch, and what is
//! saved is the time to start its blocks.

use crate::{Arch, PtxVersion};

/// The oldest architecture with dependent launches.
pub const DEPENDENT: Arch = Arch::SM90;

/// The PTX version that brought them.
const DEPENDENT_VERSION: PtxVersion = PtxVersion::new(7, 8);

/// The text of a module with kernels that wait for the launch before them. Its target is [`DEPENDENT`], or the module's
/// own if that is newer.
///
/// `None` unless each kernel certainly waits: `text` has the form that `cuda_builder` gives to a module, without
/// comments, and with a line for each directive.
pub fn waiting(text: &str) -> Option<String> {
    if text.contains("//") || text.contains("/*") {
        return None;
    }
    let mut waiting = String::with_capacity(text.len() + 64);
    let (mut directives, mut waits) = (0, 0);
    // A kernel whose body has not begun.
    let mut is_open = false;
    for line in text.split_inclusive('\n') {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [".version", version] => {
                let version: PtxVersion = version.parse().ok()?;
                waiting.push_str(&format!(".version {}\n", version.max(DEPENDENT_VERSION)));
                directives += 1;
                continue;
            }
            [".target", target] => {
                let target: Arch = target.parse().ok()?;
                waiting.push_str(&format!(".target {}\n", target.max(DEPENDENT)));
                directives += 1;
                continue;
            }
            _ => {}
        }
        is_open |= line.contains(".entry ");
        match line.split_once('{') {
            Some((before, body)) if is_open => {
                is_open = false;
                waits += 1;
                waiting.extend([before, "{\n\tgriddepcontrol.wait;", body]);
            }
            _ => waiting.push_str(line),
        }
    }
    let kernels = text.matches(".entry").count();
    (directives == 2 && kernels > 0 && waits == kernels).then_some(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with two kernels and a function, of that version and target.
    fn module(version: &str, target: &str, wait: &str) -> String {
        format!(
            ".version {version}\n.target {target}\n.address_size 64\n\n\
             .func helper()\n{{\n\tret;\n}}\n\n\
             .visible .entry first(\n\t.param .b64 first_param_0\n)\n.maxnreg 72\n\
             {{{wait}\n\t{{ .reg .b32 tmp; }}\n\tret;\n}}\n\
             .visible .entry second()\n{{{wait}\n\tret;\n}}\n"
        )
    }

    const WAIT: &str = "\n\tgriddepcontrol.wait;";

    #[test]
    fn each_kernel_waits_once_before_its_first_instruction_and_functions_do_not() {
        let expected = module("7.8", "sm_90", WAIT);
        assert_eq!(waiting(&module("7.0", "sm_80", "")), Some(expected));
    }

    #[test]
    fn newer_versions_and_targets_stay() {
        for (version, target) in [("7.8", "sm_90"), ("8.0", "sm_90a"), ("8.7", "sm_120")] {
            let expected = module(version, target, WAIT);
            assert_eq!(waiting(&module(version, target, "")), Some(expected));
        }
    }

    #[test]
    fn a_text_in_another_form_is_refused() {
        let text = module("7.0", "sm_80", "");
        for (part, other) in [
            (".entry second", ".entry\tsecond"),
            ("ret;", "ret; // .entry third() {"),
            ("ret;", "ret; /* the end */"),
            ("sm_80", "sm_80, debug"),
            (".target sm_80\n", ""),
            ("7.0", "seven"),
        ] {
            assert_eq!(waiting(&text.replace(part, other)), None, "{other}");
        }
        assert_eq!(waiting(""), None);
    }
}
