//! The command line.

use crate::harness::run_options::RunOptions;
use crate::ladder::rungs::Family;

/// Every rung of the ladders on the same matrices.
#[derive(Clone, Debug, clap::Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench ladder --")]
pub struct Options {
    /// The families
    #[arg(
        long = "family",
        value_name = "NAME",
        value_delimiter = ',',
        value_enum,
        default_value = "spmm,spgemm,gemm"
    )]
    pub families: Vec<Family>,

    /// The device, the file of the results, the seed.
    #[command(flatten)]
    pub run: RunOptions,

    /// Samples of a time
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn families_are_all_or_those_asked_for() {
        let parse = |arguments: &[&str]| {
            Options::try_parse_from([&["ladder"], arguments].concat())
                .map(|options| options.families)
        };
        let all = [Family::Spmm, Family::Spgemm, Family::Gemm];
        assert_eq!(parse(&[]).unwrap(), all);
        assert_eq!(parse(&["--family", "gemm"]).unwrap(), [Family::Gemm]);
        assert!(parse(&["--family", "gcn"]).is_err());
        assert!(parse(&["--samples", "0"]).is_err());
    }
}
