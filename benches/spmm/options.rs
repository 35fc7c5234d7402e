//! The command line.

use crate::harness::cusparse::CusparseOptions;
use crate::harness::element_type::ElementType;
use crate::harness::named::{self, ALL};
use crate::harness::run_options::RunOptions;
use crate::spmm::cases::{DEFAULT_GRAPHS, EMULATED_GRAPH, GRAPHS, Graph, Kind};
use crate::spmm::matrix::Matrix;
use crate::spmm::random;
use clap::builder::TypedValueParser;
use std::path::PathBuf;
use warprow::spmm::{RowOrder, SpmmKernel, SpmmOptions, SpmmTuning};

/// SpMM against cuSPARSE, on generated graphs.
#[derive(Clone, Debug, clap::Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench spmm --")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    /// What to do instead of a run.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Graphs, by the data set whose size they have, or `all` of these [default: a choice on a GPU, `small` on the
    /// emulator]
    #[arg(long = "graph", value_name = "NAME", value_delimiter = ',', value_parser = graph_names())]
    graphs: Vec<String>,

    /// A matrix of a file: Matrix Market (.mtx, .mtx.gz), SciPy (.npz) or an edge list (.tsv, .csv). Without --graph,
    /// no graph is generated
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<PathBuf>,

    /// Random products instead of graphs: so many matrices, each with a number of features, drawn by the seed
    #[arg(long, value_name = "N", conflicts_with_all = ["graphs", "kinds", "features"])]
    pub random: Option<u32>,

    /// Distributions of the nonzeros of generated graphs
    #[arg(
        long = "kind",
        value_name = "KIND",
        value_delimiter = ',',
        value_parser = kind_names(),
        default_value = "rmat57"
    )]
    kinds: Vec<String>,

    /// Numbers of features, the columns of X [default: 32,128 on a GPU, 32 on the emulator]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    features: Vec<u32>,

    /// Kernels to run beside the one that the plan picks
    #[arg(long = "kernel", value_name = "NAME", value_delimiter = ',', value_parser = kernel_names())]
    kernels: Vec<String>,

    /// Orders of the rows to run the plan's kernel on, beside the plan's own: results under the order's name
    #[arg(long = "order", value_name = "NAME", value_delimiter = ',', value_parser = order_names())]
    orders: Vec<String>,

    /// Runs beside the plan's choice each of the others that it had: kernels, orders, lanes, blocks of columns, sizes
    /// of tasks, tasks joined and single
    #[arg(long)]
    pub sweep: bool,

    /// Steps of a task, its nonzeros and twice its rows, for the kernels that work on tasks [default: the plan's
    /// choice]
    #[arg(long, value_name = "N")]
    pub task_size: Option<u32>,

    /// Whether sub-warps of 16 or 32 lanes take several tasks at a time [default: the plan's choice]
    #[arg(long, value_name = "BOOL")]
    pub join_tasks: Option<bool>,

    /// Whether `row_bins` copies X to shared memory, where it fits [default: the plan's choice]
    #[arg(long, value_name = "BOOL")]
    pub shared_x: Option<bool>,

    /// Lanes of a sub-warp: 8, 16 or 32, with `in_step` also 4 [default: the plan's choice]
    #[arg(long, value_name = "N")]
    pub lanes: Option<u32>,

    /// Blocks of columns [default: the plan's choice]
    #[arg(long, value_name = "N")]
    pub column_blocks: Option<u32>,

    /// The element type
    #[arg(long = "type", value_name = "TYPE", value_enum, default_value = "f32")]
    pub element: ElementType,

    /// The device, the file of the results, the seed.
    #[command(flatten)]
    pub run: RunOptions,

    /// cuSPARSE.
    #[command(flatten)]
    pub cusparse: CusparseOptions,

    /// Keeps the results that the file has, and runs what it has not
    #[arg(long, requires = "output")]
    pub resume: bool,

    /// Samples of a time, each of a millisecond or of one launch if that is longer; three where another algorithm of
    /// cuSPARSE is a tenth faster
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: u32,
}

/// What the bench does beside runs.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Draws results as a chart: how many times as fast as the best of cuSPARSE each case is
    Chart {
        /// The results, a JSON object a line, as `--output` has written them
        results: PathBuf,

        /// The file to draw, SVG
        svg: PathBuf,

        /// The element type of the results
        #[arg(long = "type", value_name = "TYPE", default_value = "f32")]
        element: String,
    },
}

impl Options {
    /// What the plans are not to choose themselves.
    pub fn tuning(&self) -> SpmmOptions {
        SpmmOptions::new().tuning(
            SpmmTuning::new()
                .task_size(self.task_size)
                .join_tasks(self.join_tasks)
                .shared_x(self.shared_x)
                .lanes(self.lanes)
                .column_blocks(self.column_blocks),
        )
    }

    /// The matrices to run: those of random products, or every kind of each graph, and the files.
    pub fn matrices(&self, on_emulator: bool) -> Vec<Matrix> {
        let files = self.files.iter().cloned().map(Matrix::File);
        if let Some(count) = self.random {
            let products = random::products(count, self.run.seed, on_emulator);
            return products
                .into_iter()
                .map(Matrix::Random)
                .chain(files)
                .collect();
        }
        let graphs = if self.graphs.is_empty() && !self.files.is_empty() {
            Vec::new()
        } else {
            self.graphs(on_emulator)
        };
        let kinds = self.kinds();
        let generated = graphs.into_iter().flat_map(|graph| {
            let of_kind = move |&kind| Matrix::Generated(graph, kind);
            kinds.iter().map(of_kind)
        });
        generated.chain(files).collect()
    }

    /// The graphs to run, each once.
    pub fn graphs(&self, on_emulator: bool) -> Vec<Graph> {
        if self.graphs.iter().any(|name| name == ALL) {
            let emulated = |graph: &Graph| graph.name == EMULATED_GRAPH;
            return GRAPHS
                .iter()
                .copied()
                .filter(|graph| !emulated(graph))
                .collect();
        }
        let names: Vec<&str> = match (self.graphs.as_slice(), on_emulator) {
            ([], true) => vec![EMULATED_GRAPH],
            ([], false) => DEFAULT_GRAPHS.to_vec(),
            (names, _) => names.iter().map(String::as_str).collect(),
        };
        let named = |name| Graph::named(name).expect("names are those of the table");
        each_once(names.into_iter().map(named))
    }

    /// The kinds to run, each once.
    pub fn kinds(&self) -> Vec<Kind> {
        if self.kinds.iter().any(|name| name == ALL) {
            return Kind::ALL.to_vec();
        }
        let named = |name: &String| Kind::named(name).expect("names are those of the kinds");
        each_once(self.kinds.iter().map(named))
    }

    /// The numbers of features to run, each once.
    pub fn features(&self, on_emulator: bool) -> Vec<u32> {
        if !self.features.is_empty() {
            each_once(self.features.iter().copied())
        } else if on_emulator {
            vec![32]
        } else {
            vec![32, 128]
        }
    }

    /// The kernels asked for, in the order of the ladder.
    pub fn kernels(&self) -> Vec<SpmmKernel> {
        named::chosen(SpmmKernel::ALL, SpmmKernel::name, &self.kernels)
    }

    /// The orders asked for.
    pub fn orders(&self) -> Vec<RowOrder> {
        named::chosen(RowOrder::ALL, RowOrder::name, &self.orders)
    }
}

/// The items in the order in which they come first.
fn each_once<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut once, item| {
        if !once.contains(&item) {
            once.push(item);
        }
        once
    })
}

fn graph_names() -> impl TypedValueParser<Value = String> {
    named::or_all(GRAPHS.iter().map(|graph| graph.name))
}

fn kind_names() -> impl TypedValueParser<Value = String> {
    named::or_all(Kind::ALL.iter().map(|kind| kind.name()))
}

fn kernel_names() -> impl TypedValueParser<Value = String> {
    named::or_all(SpmmKernel::ALL.iter().map(|kernel| kernel.name()))
}

fn order_names() -> impl TypedValueParser<Value = String> {
    named::or_all(RowOrder::ALL.iter().map(|order| order.name()))
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
            "ddi,ppa",
            "--features",
            "1,33,1",
            "--kind",
            "uniform,rmat35,uniform",
        ])
        .unwrap();
        let names: Vec<_> = options
            .graphs(false)
            .iter()
            .map(|graph| graph.name)
            .collect();
        assert_eq!(names, ["ppa", "arxiv", "ddi"]);
        assert_eq!(options.features(true), [1, 33]);
        assert_eq!(options.kinds(), [Kind::Uniform, Kind::Rmat35]);
    }

    #[test]
    fn files_run_alone_or_after_the_graphs_that_are_asked_for() {
        let names = |arguments: &[&str]| -> Vec<String> {
            let matrices = parse(arguments).unwrap().matrices(false);
            let name = |matrix: &Matrix| format!("{} {}", matrix.name(), matrix.kind());
            matrices.iter().map(name).collect()
        };
        let files = ["--file", "x/a.mtx.gz", "--file", "b.npz"];
        assert_eq!(names(&files), ["a file", "b file"]);
        let with_graph = [&["--graph", "ddi", "--kind", "uniform,banded"], &files[..2]].concat();
        assert_eq!(names(&with_graph), ["ddi uniform", "ddi banded", "a file"]);
        assert_eq!(names(&[]).len(), DEFAULT_GRAPHS.len());
    }

    #[test]
    fn all_graphs_are_those_for_a_gpu_and_all_kinds_are_all() {
        let options = parse(&["--graph", "ppa,all", "--kind", "all"]).unwrap();
        assert_eq!(options.graphs(true).len(), GRAPHS.len() - 1);
        assert!(
            options
                .graphs(false)
                .iter()
                .all(|graph| graph.name != EMULATED_GRAPH)
        );
        assert_eq!(options.kinds(), Kind::ALL);
    }

    #[test]
    fn a_chart_is_drawn_instead_of_a_run() {
        let options = parse(&["chart", "a.jsonl", "b.svg", "--bench"]).unwrap();
        assert!(matches!(options.command, Some(Command::Chart { .. })));
        assert!(parse(&["--graph", "ppa", "chart", "a.jsonl", "b.svg"]).is_err());
        assert!(parse(&["--resume"]).unwrap_err().contains("--output"));
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
    fn orders_are_those_asked_for() {
        assert!(parse(&[]).unwrap().orders().is_empty());
        let two = parse(&["--order", "clustered,given"]).unwrap();
        assert_eq!(two.orders(), [RowOrder::Given, RowOrder::Clustered]);
        assert_eq!(parse(&["--order", "all"]).unwrap().orders(), RowOrder::ALL);
        assert!(parse(&["--order", "none"]).is_err());
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
