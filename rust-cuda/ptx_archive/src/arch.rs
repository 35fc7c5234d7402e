//! What a PTX module is made for: a GPU architecture, and a version of the PTX language.

use std::fmt;
use std::str::FromStr;

/// A GPU architecture by its number: the compute capability times ten.
///
/// PTX for one architecture runs on it and on all later ones: the driver compiles it for the GPU at hand. What is
/// *specific* to an architecture, as the `a` of `sm_90a` says, runs on no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    number: u32,
    specific: bool,
}

/// A text that is no architecture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no GPU architecture: wanted is `sm_` and a number, `sm_90` say, with an `a` if it is for that one alone"
)]
pub struct ParseArchError(String);

impl Arch {
    /// Compute capability 8.0 (A100).
    pub const SM80: Arch = Arch::new(80);
    /// Compute capability 8.6 (GeForce 30).
    pub const SM86: Arch = Arch::new(86);
    /// Compute capability 8.9 (L40, GeForce 40).
    pub const SM89: Arch = Arch::new(89);
    /// Compute capability 9.0 (H100, H200).
    pub const SM90: Arch = Arch::new(90);
    /// Compute capability 9.0 with the instructions that it alone has.
    pub const SM90A: Arch = Arch {
        number: 90,
        specific: true,
    };
    /// Compute capability 10.0 (B200).
    pub const SM100: Arch = Arch::new(100);
    /// Compute capability 12.0 (GeForce 50).
    pub const SM120: Arch = Arch::new(120);

    const fn new(number: u32) -> Arch {
        Arch {
            number,
            specific: false,
        }
    }

    /// The number alone, 80 for `sm_80`.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Whether code for it runs on no other architecture.
    pub fn is_specific(self) -> bool {
        self.specific
    }

    /// Whether PTX for it runs on a GPU of compute capability `major.minor`.
    pub fn runs_on(self, (major, minor): (u32, u32)) -> bool {
        let gpu = 10 * major + minor;
        match self.specific {
            true => self.number == gpu,
            false => self.number <= gpu,
        }
    }
}

/// Takes any number: the compiler refuses one that it does not know.
impl From<u32> for Arch {
    fn from(number: u32) -> Arch {
        Arch::new(number)
    }
}

impl FromStr for Arch {
    type Err = ParseArchError;

    fn from_str(text: &str) -> Result<Arch, ParseArchError> {
        let parse = || {
            let number = text.strip_prefix("sm_")?;
            let (number, specific) = match number.strip_suffix('a') {
                Some(number) => (number, true),
                None => (number, false),
            };
            let number = number.parse().ok()?;
            Some(Arch { number, specific })
        };
        parse().ok_or_else(|| ParseArchError(text.to_owned()))
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let specific = if self.specific { "a" } else { "" };
        write!(f, "sm_{}{specific}", self.number)
    }
}

/// A version of the PTX language, as a module's `.version` gives it. A driver compiles all versions up to its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PtxVersion {
    /// 7 of 7.8.
    pub major: u32,
    /// 8 of 7.8.
    pub minor: u32,
}

/// A text that is no PTX version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no PTX version: wanted are two numbers, `7.8` say")]
pub struct ParsePtxVersionError(String);

impl PtxVersion {
    /// The version `major.minor`.
    pub const fn new(major: u32, minor: u32) -> PtxVersion {
        PtxVersion { major, minor }
    }
}

impl FromStr for PtxVersion {
    type Err = ParsePtxVersionError;

    fn from_str(text: &str) -> Result<PtxVersion, ParsePtxVersionError> {
        let parse = || {
            let (major, minor) = text.split_once('.')?;
            Some(PtxVersion::new(major.parse().ok()?, minor.parse().ok()?))
        };
        parse().ok_or_else(|| ParsePtxVersionError(text.to_owned()))
    }
}

impl fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_is_its_text() {
        for (text, arch) in [
            ("sm_80", Arch::SM80),
            ("sm_90a", Arch::SM90A),
            ("sm_120", Arch::SM120),
        ] {
            assert_eq!(text.parse(), Ok(arch));
            assert_eq!(arch.to_string(), text);
        }
        for text in ["90", "sm_", "sm_a", "sm_90b", "compute_90", ""] {
            let error = text.parse::<Arch>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn code_runs_on_its_architecture_and_newer_ones_and_specific_code_on_its_own_alone() {
        let on = |arch: Arch| [(8, 0), (8, 9), (9, 0), (10, 0)].map(|gpu| arch.runs_on(gpu));
        assert_eq!(on(Arch::SM80), [true, true, true, true]);
        assert_eq!(on(Arch::SM90), [false, false, true, true]);
        assert_eq!(on(Arch::SM90A), [false, false, true, false]);
    }

    #[test]
    fn specific_code_is_newer_than_other_code_for_the_same_architecture() {
        assert!(Arch::SM90 < Arch::SM90A && Arch::SM90A < Arch::SM100);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!("7.8".parse(), Ok(PtxVersion::new(7, 8)));
        assert!(PtxVersion::new(7, 10) > PtxVersion::new(7, 8));
        assert!("7".parse::<PtxVersion>().is_err() && "7.x".parse::<PtxVersion>().is_err());
    }
}
