//! The command line.

use crate::gcn::networks::NETWORKS;
use crate::harness::cusparse::CusparseOptions;
use crate::harness::named;
use crate::harness::run_options::RunOptions;
use crate::spmm::cases::{GRAPHS, Kind};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, ValueEnum};

/// SpMM, SpGEMM and GCN inference over several devices.
#[derive(Clone, Debug, Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench multi --")]
pub struct Options {
    /// The device, the file of the results, the seed.
    #[command(flatten)]
    pub run: RunOptions,

    /// Which cuSPARSE, if any.
    #[command(flatten)]
    pub cusparse: CusparseOptions,

    /// The operation; SpGEMM multiplies a graph by itself
    #[arg(long, default_value = "spmm")]
    pub operation: Operation,

    /// The numbers of parts; one part is always measured first
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub parts: Vec<u32>,

    /// The numbers of GPUs that have the parts [default: all]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    pub gpus: Vec<u32>,

    /// Sizes of graphs, by name [default: `products` on a GPU, `small` on the emulator]
    #[arg(long = "graph", value_name = "NAME", value_delimiter = ',', value_parser = graph_names())]
    pub graphs: Vec<String>,

    /// The kinds of graphs
    #[arg(
        long = "kind",
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "communities_shuffled,uniform",
        value_parser = kind_names()
    )]
    pub kinds: Vec<String>,

    /// Rows of a graph of another size
    #[arg(long, conflicts_with = "graphs", value_parser = clap::value_parser!(u32).range(1000..1 << 31))]
    pub rows: Option<u32>,

    /// Nonzeros of its rows, on average
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub row_length: u32,

    /// Its nonzeros, if they are not a multiple of its rows
    #[arg(long, requires = "rows", conflicts_with = "row_length")]
    pub nonzeros: Option<u32>,

    /// Columns of X of SpMM
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub features: u32,

    /// Networks of GCN [default: `products` on a GPU, `small` on the emulator]
    #[arg(long = "network", value_name = "NAME", value_delimiter = ',', value_parser = network_names())]
    pub networks: Vec<String>,

    /// Leave the product of SpGEMM on the devices, where it is verified all the same
    #[arg(long)]
    pub no_gather: bool,

    /// Samples of each phase
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: u32,
}

/// An operation over several devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// A graph times a dense matrix.
    Spmm,
    /// A graph times itself.
    Spgemm,
    /// Inference of a graph convolutional network.
    Gcn,
}

impl Operation {
    /// The name in the results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spmm => "spmm",
            Self::Spgemm => "spgemm",
            Self::Gcn => "gcn",
        }
    }
}

fn graph_names() -> impl TypedValueParser<Value = String> {
    named::or_all(GRAPHS.iter().map(|graph| graph.name))
}

fn kind_names() -> impl TypedValueParser<Value = String> {
    named::or_all(Kind::ALL.iter().map(|kind| kind.name()))
}

fn network_names() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(NETWORKS.iter().map(|network| network.name))
}

impl Options {
    /// The kinds asked for.
    pub fn kinds(&self) -> Vec<Kind> {
        named::chosen(&Kind::ALL, Kind::name, &self.kinds)
    }

    /// The numbers of parts and of GPUs to measure: one part first, then more parts on at most as many GPUs. No number
    /// of GPUs stands for all.
    pub fn placements(&self) -> Vec<(u32, Option<u32>)> {
        let mut placements = vec![(1, None)];
        for &parts in &self.parts {
            let gpus = self.gpus.iter().filter(|&&gpus| gpus <= parts);
            let of_parts: Vec<_> = match self.gpus.is_empty() {
                true => vec![(parts, None)],
                false => gpus.map(|&gpus| (parts, Some(gpus))).collect(),
            };
            let of_parts = of_parts.into_iter().filter(|_| parts > 1);
            placements.extend(of_parts);
        }
        placements
    }
}
