//! What is read from PTX text: the driver that it wants, by its `.version` line and the CUDA release that brought that version;
//! and one entry point alone.

use super::Version;
use super::error::DriverTooOld;

/// PTX versions and the CUDA releases that brought them (PTX ISA, chapter "Release Notes").
const RELEASES: [(Version, Version); 20] = [
    (Version::new(7, 0), Version::new(11, 0)),
    (Version::new(7, 1), Version::new(11, 1)),
    (Version::new(7, 2), Version::new(11, 2)),
    (Version::new(7, 3), Version::new(11, 3)),
    (Version::new(7, 4), Version::new(11, 4)),
    (Version::new(7, 5), Version::new(11, 5)),
    (Version::new(7, 6), Version::new(11, 6)),
    (Version::new(7, 7), Version::new(11, 7)),
    (Version::new(7, 8), Version::new(11, 8)),
    (Version::new(8, 0), Version::new(12, 0)),
    (Version::new(8, 1), Version::new(12, 1)),
    (Version::new(8, 2), Version::new(12, 2)),
    (Version::new(8, 3), Version::new(12, 3)),
    (Version::new(8, 4), Version::new(12, 4)),
    (Version::new(8, 5), Version::new(12, 5)),
    (Version::new(8, 6), Version::new(12, 7)),
    (Version::new(8, 7), Version::new(12, 8)),
    (Version::new(8, 8), Version::new(12, 9)),
    (Version::new(9, 0), Version::new(13, 0)),
    (Version::new(9, 1), Version::new(13, 1)),
];

/// Refuses PTX that a driver for CUDA `driver` does not know.
///
/// Text without a `.version`, or with one newer than the table, passes: the driver itself decides.
pub(super) fn check_driver(ptx: &str, driver: Version) -> Result<(), DriverTooOld> {
    let Some(version) = version(ptx) else {
        return Ok(());
    };
    match RELEASES.iter().find(|(release, _)| *release >= version) {
        Some(&(_, wanted)) if driver < wanted => Err(DriverTooOld {
            ptx: version,
            wanted,
            found: driver,
        }),
        _ => Ok(()),
    }
}

/// The PTX's `.version`, which is the first statement after comments.
fn version(ptx: &str) -> Option<Version> {
    let number = ptx
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(".version"))?;
    let (major, minor) = number.trim().split_once('.')?;
    Some(Version::new(major.parse().ok()?, minor.parse().ok()?))
}

/// How an entry point begins.
const ENTRY: &str = ".visible .entry ";

/// What the names of entry points contain that have instructions of newer architectures, the architecture, and the PTX version that
/// brought them: the first that a name contains.
const NEWER: [(&str, &str, Version); 2] = [
    ("_sm90a", "sm_90a", Version::new(8, 0)),
    ("_sm90", "sm_90", Version::new(7, 8)),
];

/// The text with that entry point alone, and all that is no entry point; `None` if it has none of that name. If the name contains
/// `_sm90` or `_sm90a`, the text is for that architecture and of the PTX version that brought it. A limit of registers that is for newer
/// architectures is there if the GPU's compute capability is as new.
///
/// It is for text as rustc writes it: an entry point begins with a line of its own and ends with the first line that is a
/// closing brace.
pub(super) fn one_entry(ptx: &str, name: &str, gpu: Version) -> Option<String> {
    let mut text = String::new();
    let (mut found, mut in_other) = (false, false);
    let newer = NEWER.iter().find(|(part, ..)| name.contains(part));
    for line in ptx.lines() {
        if let Some(&(_, target, least)) = newer {
            if line.starts_with(".version ") {
                let version = version(line).map_or(least, |version| version.max(least));
                text.push_str(&format!(".version {version}\n"));
                continue;
            }
            if line.starts_with(".target ") {
                text.push_str(&format!(".target {target}\n"));
                continue;
            }
        }
        if let Some(entry) = line.strip_prefix(ENTRY) {
            let wanted = entry.split_once('(').is_some_and(|(this, _)| this == name);
            found |= wanted;
            in_other = !wanted;
        }
        if !in_other {
            text.push_str(limit_for(line, gpu).unwrap_or(line));
            text.push('\n');
        }
        in_other &= line != "}";
    }
    found.then_some(text)
}

/// The directive of a line `// .maxnreg 64 sm_90`, if the GPU is as new.
fn limit_for(line: &str, gpu: Version) -> Option<&str> {
    let directive = line.strip_prefix("// ")?;
    let (limit, least) = directive.split_once(" sm_")?;
    let least: u32 = least.parse().ok()?;
    let holds = limit.starts_with(".maxnreg ") && gpu >= Version::new(least / 10, least % 10);
    holds.then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Version = Version::new(9, 0);

    fn ptx(version: &str) -> String {
        format!("// .version 1.0 of a comment\n//\n\n.version {version}\n.target sm_80\n")
    }

    #[test]
    fn a_driver_as_new_as_the_ptx_passes_and_an_older_one_does_not() {
        let (old, new) = (Version::new(11, 7), Version::new(11, 8));
        assert_eq!(check_driver(&ptx("7.8"), new), Ok(()));
        let error = check_driver(&ptx("7.8"), old).unwrap_err();
        assert_eq!(
            error,
            DriverTooOld {
                ptx: Version::new(7, 8),
                wanted: new,
                found: old
            }
        );
        for part in ["11.7", "7.8", "11.8"] {
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn old_ptx_passes_and_what_the_table_does_not_know_is_left_to_the_driver() {
        let driver = Version::new(12, 4);
        for text in [ptx("6.4"), ptx("99.9"), ptx("x"), String::new()] {
            assert_eq!(check_driver(&text, driver), Ok(()), "{text}");
        }
    }

    #[test]
    fn releases_rise_in_both_columns() {
        assert!(
            RELEASES
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1)
        );
    }

    #[test]
    fn one_entry_point_is_taken_with_all_that_is_none() {
        let text = ".version 7.0\n.extern .shared .b8 memory[];\n\
            .visible .entry first(\n)\n{\n\tret;\n}\n\
            .visible .entry first_f32(\n)\n{\n$L:\n\t{\n\t}\n\texit;\n}\n\
            .func helper()\n{\n\ttrap;\n}\n";
        let first = one_entry(text, "first", GPU).unwrap();
        assert_eq!(
            first,
            ".version 7.0\n.extern .shared .b8 memory[];\n\
            .visible .entry first(\n)\n{\n\tret;\n}\n\
            .func helper()\n{\n\ttrap;\n}\n"
        );
        assert!(one_entry(text, "first_f32", GPU).unwrap().contains("exit;"));
        assert_eq!(one_entry(text, "fir", GPU), None);
        assert_eq!(one_entry(text, "helper", GPU), None);
    }

    #[test]
    fn an_entry_point_with_instructions_of_sm_90_is_compiled_for_it_and_no_other_is() {
        let text = ".version 7.0\n.target sm_80\n.visible .entry a(\n)\n{\n}\n\
            .visible .entry a_sm90_2(\n)\n{\n}\n.visible .entry a_sm90a_2(\n)\n{\n}\n";
        let of = |name: &str| one_entry(text, name, GPU).unwrap();
        assert!(of("a").starts_with(".version 7.0\n.target sm_80\n"));
        assert!(of("a_sm90_2").starts_with(".version 7.8\n.target sm_90\n"));
        assert!(of("a_sm90a_2").starts_with(".version 8.0\n.target sm_90a\n"));
        let newer = text.replace("7.0", "8.4");
        let newer = one_entry(&newer, "a_sm90_2", GPU).unwrap();
        assert!(newer.starts_with(".version 8.4\n.target sm_90\n"));
    }

    #[test]
    fn a_limit_of_registers_holds_from_its_architecture_on() {
        let text =
            ".version 7.0\n.target sm_80\n.visible .entry a(\n)\n// .maxnreg 64 sm_90\n{\n}\n";
        let on = |major, minor| one_entry(text, "a", Version::new(major, minor)).unwrap();
        for newer in [on(9, 0), on(10, 3), on(12, 0)] {
            assert_eq!(newer, text.replace("// .maxnreg 64 sm_90", ".maxnreg 64"));
        }
        for older in [on(8, 0), on(8, 9)] {
            assert_eq!(older, text);
        }
    }

    #[test]
    fn a_kernel_of_this_crate_has_its_limit_of_registers() {
        let name = "spmm_vector_f32_32_4_1";
        let on = |gpu| one_entry(super::super::module::KERNELS, name, gpu).unwrap();
        assert!(on(GPU).contains("\n.maxnreg 64\n{"));
        assert!(!on(Version::new(8, 9)).contains("\n.maxnreg"));
    }

    #[test]
    fn every_kernel_of_this_crate_is_found() {
        for kernel in cuda_std::kernel::instances() {
            let name = kernel.name();
            let text = one_entry(super::super::module::KERNELS, name, GPU).unwrap();
            assert_eq!(text.matches(ENTRY).count(), 1, "{name}");
        }
    }
}
