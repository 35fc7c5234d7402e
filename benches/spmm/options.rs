//! The command line.

use crate::cases::{DEFAULT_GRAPHS, GRAPHS, Graph, Kind};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use warprow::device::Selector;
use warprow::spmm::SpmmKernel;

/// The value of `--kernel` that stands for every kernel.
const ALL: &str = "all";

/// SpMM against cuSPARSE, on generated graphs.
#[derive(Clone, Debug, clap::Parser)]
#[command(bin_name = "cargo bench --bench spmm --")]
pub struct Options {
    /// Graphs, by the data set whose size they have [default: a choice on a GPU, `small` on the emulator]
    #[arg(long = "graph", value_name = "NAME", value_delimiter = ',', value_parser = graph_names())]
    graphs: Vec<String>,

    /// Distributions of the nonzeros
    #[arg(
        long = "kind",
        value_name = "KIND",
        value_delimiter = ',',
        value_enum,
        default_value = "rmat57"
    )]
    pub kinds: Vec<Kind>,

    /// Numbers of features, the columns of X [default: 32,128 on a GPU, 32 on the emulator]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    features: Vec<u32>,

    /// Kernels to run beside the one that the plan picks
    #[arg(long = "kernel", value_name = "NAME", value_delimiter = ',', value_parser = kernel_names())]
    kernels: Vec<String>,

    /// Rows and nonzeros of a task, for the kernels that work on tasks [default: the plan's choice]
    #[arg(long, value_name = "N")]
    pub task_size: Option<u32>,

    /// The element type
    #[arg(long = "type", value_name = "TYPE", value_enum, default_value = "f32")]
    pub element: ElementType,

    /// `auto`, `cuda`, `cuda:N` or `emulator` [default: WARPROW_DEVICE, or auto]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<Selector>,

    /// cuSPARSE: the library, or its folder [default: searched for]
    #[arg(long, value_name = "PATH")]
    pub cusparse: Option<PathBuf>,

    /// Runs without cuSPARSE
    #[arg(long, conflicts_with = "cusparse")]
    pub no_cusparse: bool,

    /// A file to write the results to, a JSON object a line; what it held is lost
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Samples of a time, each of a millisecond or of one launch if that is longer
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: u32,

    /// The seed of graphs, values and verified rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// What `cargo bench` passes to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// The element types that there are kernels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ElementType {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Half precision, summed in f32.
    F16,
    /// The upper half of f32, summed in f32.
    Bf16,
}

impl Options {
    /// The graphs to run.
    pub fn graphs(&self, on_emulator: bool) -> Vec<Graph> {
        let named = |name: &str| Graph::named(name).expect("names are those of the table");
        if !self.graphs.is_empty() {
            self.graphs.iter().map(|name| named(name)).collect()
        } else if on_emulator {
            vec![named("small")]
        } else {
            DEFAULT_GRAPHS.iter().map(|name| named(name)).collect()
        }
    }

    /// The numbers of features to run.
    pub fn features(&self, on_emulator: bool) -> Vec<u32> {
        if !self.features.is_empty() {
            self.features.clone()
        } else if on_emulator {
            vec![32]
        } else {
            vec![32, 128]
        }
    }

    /// The kernels asked for, in the order of the ladder.
    pub fn kernels(&self) -> Vec<SpmmKernel> {
        let asked_for = |name| self.kernels.iter().any(|asked| asked == name);
        let mut kernels = SpmmKernel::ALL.to_vec();
        kernels.retain(|kernel| asked_for(ALL) || asked_for(kernel.name()));
        kernels
    }
}

fn graph_names() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(GRAPHS.iter().map(|graph| graph.name))
}

fn kernel_names() -> impl TypedValueParser<Value = String> {
    let names = SpmmKernel::ALL.iter().map(|kernel| kernel.name());
    PossibleValuesParser::new(names.chain([ALL]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::try_parse_from([&["spmm"], arguments].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn cargo_may_pass_its_own_option() {
        assert!(parse(&["--bench"]).is_ok());
    }

    #[test]
    fn lists_are_separated_by_commas_or_given_one_by_one() {
        let options = parse(&[
            "--graph",
            "ppa,arxiv",
            "--graph",
            "ddi",
            "--features",
            "1,33",
        ])
        .unwrap();
        let names: Vec<_> = options
            .graphs(false)
            .iter()
            .map(|graph| graph.name)
            .collect();
        assert_eq!(names, ["ppa", "arxiv", "ddi"]);
        assert_eq!(options.features(true), [1, 33]);
    }

    #[test]
    fn all_kernels_are_each_once() {
        let first = SpmmKernel::ALL[0];
        assert!(parse(&[]).unwrap().kernels().is_empty());
        assert_eq!(
            parse(&["--kernel", first.name()]).unwrap().kernels(),
            [first]
        );
        let all = parse(&["--kernel", &format!("all,{}", first.name())]).unwrap();
        assert_eq!(all.kernels(), SpmmKernel::ALL);
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        assert!(
            parse(&["--graph", "nowhere"])
                .unwrap_err()
                .contains("arxiv, collab")
        );
        assert!(
            parse(&["--kernel", "none"])
                .unwrap_err()
                .contains("thread_per_row")
        );
        assert!(parse(&["--device", "gpu"]).unwrap_err().contains("cuda:1"));
        assert!(parse(&["--features", "0"]).is_err());
        assert!(parse(&["--samples", "0"]).is_err());
        assert!(parse(&["--type", "f8"]).is_err());
    }
}
