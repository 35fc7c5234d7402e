//! The command line.

use crate::gcn::networks::{NETWORKS, Network};
use crate::harness::run_options::RunOptions;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;

/// A graph convolutional network, each operator and the whole.
#[derive(Clone, Debug, clap::Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench gcn --")]
pub struct Options {
    /// Networks [default: all but `small` on a GPU, `small` on the emulator]
    #[arg(long = "network", value_name = "NAME", value_delimiter = ',', value_parser = network_names())]
    networks: Vec<String>,

    /// Write the operands and results of all networks to npy files in this folder, for `gcn_torch.py`
    #[arg(long, value_name = "FOLDER")]
    pub save: Option<PathBuf>,

    /// The device, the file of the results, the seed.
    #[command(flatten)]
    pub run: RunOptions,

    /// Samples of a time, each of a millisecond or of one run if that is longer
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: u32,
}

fn network_names() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(NETWORKS.iter().map(|network| network.name))
}

impl Options {
    /// The networks asked for, or those for the device.
    pub fn networks(&self, on_emulator: bool) -> impl Iterator<Item = &'static Network> {
        NETWORKS.iter().filter(move |network| {
            if self.networks.is_empty() {
                on_emulator == (network.name == "small")
            } else {
                self.networks.iter().any(|name| name == network.name)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::try_parse_from([&["gcn"], arguments].concat()).map_err(|error| error.to_string())
    }

    fn names(arguments: &[&str], on_emulator: bool) -> Vec<&'static str> {
        let options = parse(arguments).unwrap();
        let networks = options.networks(on_emulator);
        networks.map(|network| network.name).collect()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn the_networks_are_those_asked_for_or_what_the_device_can_run() {
        assert_eq!(names(&[], true), ["small"]);
        assert_eq!(names(&[], false), ["stanford", "arxiv", "products"]);
        let asked = ["--network", "products,small", "--network", "arxiv"];
        assert_eq!(names(&asked, true), ["small", "arxiv", "products"]);
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        assert!(
            parse(&["--network", "none"])
                .unwrap_err()
                .contains("stanford")
        );
        assert!(parse(&["--samples", "0"]).is_err());
        assert!(parse(&["--seed", "18446744073709551615"]).is_err());
        assert!(
            parse(&["--device", "none"])
                .unwrap_err()
                .contains("emulator")
        );
    }
}
