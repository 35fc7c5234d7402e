//! The driver that PTX wants: by its version, and the CUDA release that brought that version.

use crate::device::error::DriverTooOld;
use crate::device::properties::Version;

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

/// Refuses PTX of a version that a driver for CUDA `driver` does not know.
///
/// No version, or one newer than the table, passes: the driver itself decides.
pub(super) fn check_driver(ptx: Option<Version>, driver: Version) -> Result<(), DriverTooOld> {
    let Some(version) = ptx else {
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

/// The `.version` of a text, which is the first statement after comments.
pub(super) fn version(ptx: &str) -> Option<Version> {
    let number = ptx
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(".version"))?;
    let (major, minor) = number.trim().split_once('.')?;
    Some(Version::new(major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_as_new_as_the_ptx_passes_and_an_older_one_does_not() {
        let ptx = Some(Version::new(7, 8));
        let (old, new) = (Version::new(11, 7), Version::new(11, 8));
        assert_eq!(check_driver(ptx, new), Ok(()));
        let error = check_driver(ptx, old).unwrap_err();
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
        for version in [Some(Version::new(6, 4)), Some(Version::new(99, 9)), None] {
            assert_eq!(check_driver(version, driver), Ok(()), "{version:?}");
        }
    }

    #[test]
    fn a_text_s_version_is_that_of_its_directive() {
        let of = |number: &str| {
            let text =
                format!("// .version 1.0 of a comment\n//\n\n.version {number}\n.target sm_80\n");
            version(&text)
        };
        assert_eq!(of("7.8"), Some(Version::new(7, 8)));
        assert_eq!(of("x"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn releases_rise_in_both_columns() {
        assert!(
            RELEASES
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1)
        );
    }
}
