//! The command line.

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use warprow::RowOrder;
use warprow::files::Format;
use warprow::multi::{Distribution, DivisionOptions, OperandRows, RowCuts};
use warprow_mpi::TransportKind;

/// Sparse products and GCN inference over several processes.
///
/// Each rank takes the GPU of its number on its machine, or the emulator; WARPROW_DEVICE=emulator insists on that.
#[derive(Debug, Parser)]
#[command(
    name = "warprow-mpi",
    version,
    after_help = "Examples:\n  \
        mpirun -n 4 warprow-mpi spmm A.mtx --features 64 --verify\n  \
        mpirun -n 4 warprow-mpi spgemm A.mtx --output C.mtx\n  \
        mpirun -n 4 warprow-mpi gcn A.mtx --widths 64,16,7 --verify"
)]
pub struct Options {
    /// What is computed.
    #[command(subcommand)]
    pub operation: Operation,
    /// The options of all operations.
    #[command(flatten)]
    pub run: RunOptions,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    ///
    /// Help that is asked for; options that are wrong or do not fit each other.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let options = Self::try_parse_from(arguments)?;
        match options.operation.fault(&options.run) {
            Some(fault) => Err(Self::command().error(ErrorKind::ValueValidation, fault)),
            None => Ok(options),
        }
    }
}

/// An operation.
#[derive(Debug, Subcommand)]
pub enum Operation {
    /// Y = A X, sparse times dense.
    Spmm {
        /// A: a Matrix Market, npz or edge list file.
        a: PathBuf,
        /// Columns of a random X.
        #[arg(long, default_value_t = 32, conflicts_with = "x")]
        features: usize,
        /// X, an npy file.
        #[arg(long)]
        x: Option<PathBuf>,
    },
    /// C = A B, sparse times sparse.
    Spgemm {
        /// A: a Matrix Market, npz or edge list file.
        a: PathBuf,
        /// B; default: A.
        b: Option<PathBuf>,
        /// Bytes of rows of B that a rank receives in a round, at least those of one row of A. Without effect if B is
        /// replicated.
        #[arg(long, default_value_t = 1 << 30)]
        round_bytes: u64,
        /// Computes C again from its structure, which is computed once: only values travel then, without rounds.
        #[arg(long)]
        reuse: bool,
    },
    /// Inference with a graph convolutional network.
    Gcn {
        /// The graph, a file as for the other operations.
        a: PathBuf,
        /// The weights: a safetensors file, or a folder of npy files.
        #[arg(long, required_unless_present = "widths")]
        weights: Option<PathBuf>,
        /// Features, hidden layers and classes of a network with random weights.
        #[arg(long, value_delimiter = ',', conflicts_with = "weights")]
        widths: Vec<usize>,
        /// The features of the nodes, an npy file; default: random.
        #[arg(long)]
        x: Option<PathBuf>,
    },
}

impl Operation {
    /// The operation's name, and the file of A.
    pub fn name_and_matrix(&self) -> (&'static str, &Path) {
        match self {
            Self::Spmm { a, .. } => ("spmm", a),
            Self::Spgemm { a, .. } => ("spgemm", a),
            Self::Gcn { a, .. } => ("gcn", a),
        }
    }

    /// The format of the result's file, its name, and the end of the file's name.
    fn output_format(&self) -> (Format, &'static str, &'static str) {
        match self {
            Self::Spmm { .. } | Self::Gcn { .. } => (Format::Npy, "npy", ".npy"),
            Self::Spgemm { .. } => (Format::MatrixMarket, "Matrix Market", ".mtx"),
        }
    }

    /// What is wrong with the options, in words.
    fn fault(&self, run: &RunOptions) -> Option<String> {
        if let Self::Gcn {
            weights: None,
            widths,
            ..
        } = self
            && let [width] = widths[..]
        {
            let wanted = "wanted at least two numbers, of features and of classes, as in 64,7";
            return Some(format!("--widths: {wanted}; found {width} alone"));
        }
        let (format, format_name, end) = self.output_format();
        let output = run.output.as_deref()?;
        if Format::of(output) == Some((format, false)) {
            return None;
        }
        let (operation, _) = self.name_and_matrix();
        let found = output.display();
        Some(format!(
            "--output: {operation} writes {format_name}; wanted a name that ends in {end}, found {found}"
        ))
    }
}

/// The options of all operations.
#[derive(Args, Debug)]
pub struct RunOptions {
    /// The file that the result is written to: npy for Y, Matrix Market for C.
    #[arg(short, long, global = true)]
    pub output: Option<PathBuf>,
    /// The element type.
    #[arg(long, visible_alias = "type", global = true, value_enum, default_value_t = ElementType::F32)]
    pub element: ElementType,
    /// Who reads the files of A and B.
    #[arg(long, global = true, value_enum, default_value_t = ReaderName::Root)]
    pub read: ReaderName,
    /// How the rows of A are divided. With `--deterministic` or `--read parts` it is always by blocks.
    #[arg(long, global = true, value_enum, default_value_t = DistributionName::Blocks)]
    pub distribution: DistributionName,
    /// What a rank is given of X or B.
    #[arg(long, global = true, value_enum, default_value_t = OperandName::Needed)]
    pub operand: OperandName,
    /// How rows of X travel between ranks; default: NCCL or GPU-aware MPI where all ranks can, else through the host.
    #[arg(long, global = true, value_enum)]
    pub transport: Option<TransportName>,
    /// The same bits for every number of ranks: blocks of whole rows in the given order, each summed in one order.
    #[arg(long, global = true)]
    pub deterministic: bool,
    /// Gathers the result at rank 0, and tells how long that takes.
    #[arg(long, global = true)]
    pub gather: bool,
    /// Gathers the result at rank 0, and checks it against the reference, and against one device.
    #[arg(long, global = true)]
    pub verify: bool,
    /// How often the product is computed.
    #[arg(long, global = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Measures exchanges of several sizes first, and predicts the times of an SpMM from them.
    #[arg(long, global = true)]
    pub model: bool,
    /// Prints one line of JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// Elements of a piece of a message, for tests.
    #[arg(long, global = true, hide = true)]
    pub piece: Option<std::num::NonZeroUsize>,
    /// Bytes of memory of an emulator, for tests. This rank takes no GPU.
    #[arg(long, global = true, hide = true)]
    pub emulator_memory: Option<u64>,
}

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ElementType {
    /// 4 bytes.
    F32,
    /// 8 bytes.
    F64,
}

/// How rows are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DistributionName {
    /// Contiguous rows of equal work.
    Blocks,
    /// Row i goes to rank i modulo the number of ranks.
    Cyclic,
}

/// Who reads files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReaderName {
    /// Rank 0, which sends each rank its part.
    Root,
    /// Each rank a part of the bytes, for spmm and spgemm: Matrix Market files of plain text, whose rows stay in their
    /// order and are not cut.
    Parts,
}

/// How rows of X travel between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TransportName {
    /// By MPI, through pinned memory of the host.
    Staged,
    /// By MPI that reads and writes GPUs' memory.
    GpuAware,
    /// By NCCL, with a GPU for each rank.
    Nccl,
}

/// What a rank is given of the other operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OperandName {
    /// The rows that it needs.
    Needed,
    /// All rows.
    Replicated,
}

impl RunOptions {
    /// The transport that is asked for.
    pub fn transport(&self) -> Option<TransportKind> {
        self.transport.map(|name| match name {
            TransportName::Staged => TransportKind::Staged,
            TransportName::GpuAware => TransportKind::GpuAware,
            TransportName::Nccl => TransportKind::Nccl,
        })
    }

    /// What a rank is given of X or B.
    pub fn operand(&self) -> OperandRows {
        match self.operand {
            OperandName::Needed => OperandRows::Needed,
            OperandName::Replicated => OperandRows::Replicated,
        }
    }

    /// How the rows are divided, whatever is asked for: cyclic rows would change their order with the number of ranks,
    /// and ranks that read parts keep the rows in their order.
    pub fn used_distribution(&self) -> DistributionName {
        match self.deterministic || self.read == ReaderName::Parts {
            true => DistributionName::Blocks,
            false => self.distribution,
        }
    }

    /// How A is divided.
    pub fn division(&self) -> DivisionOptions {
        let distribution = match self.used_distribution() {
            DistributionName::Blocks => Distribution::Blocks,
            DistributionName::Cyclic => Distribution::Cyclic,
        };
        let division = DivisionOptions::new()
            .distribution(distribution)
            .operand(self.operand());
        match self.deterministic {
            true => division.cuts(RowCuts::Never).order(RowOrder::Given),
            false => division,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, clap::Error> {
        Options::read(line.split(' ').map(OsString::from))
    }

    fn refused(line: &str) -> String {
        let error = read(line).expect_err(line);
        assert!(error.use_stderr(), "{line}");
        error.to_string()
    }

    #[test]
    fn an_output_must_have_the_name_of_the_format_that_the_operation_writes() {
        for (operation, right, wrong, end) in [
            ("spmm a.mtx", "y.npy", "y.mtx", ".npy"),
            ("gcn a.mtx --widths 3,2", "y.NPY", "y.safetensors", ".npy"),
            ("spgemm a.mtx", "c.mtx", "c.npy", ".mtx"),
            ("spgemm a.mtx", "c.mtx", "c.mtx.gz", ".mtx"),
            ("spgemm a.mtx", "c.mtx", "c", ".mtx"),
        ] {
            assert!(read(&format!("warprow-mpi {operation} -o {right}")).is_ok());
            let error = refused(&format!("warprow-mpi {operation} -o {wrong}"));
            let wanted = format!("wanted a name that ends in {end}, found {wrong}");
            assert!(error.contains(&wanted), "{error}");
        }
    }

    #[test]
    fn deterministic_results_and_parts_of_files_are_divided_by_blocks() {
        for (options, used) in [
            ("", DistributionName::Cyclic),
            (" --deterministic", DistributionName::Blocks),
            (" --read parts", DistributionName::Blocks),
        ] {
            let line = format!("warprow-mpi spmm a.mtx --distribution cyclic{options}");
            assert_eq!(read(&line).unwrap().run.used_distribution(), used, "{line}");
        }
    }

    #[test]
    fn a_network_of_one_width_is_refused_with_what_was_found() {
        let error = refused("warprow-mpi gcn a.mtx --widths 3");
        assert!(error.contains("wanted at least two numbers"), "{error}");
        assert!(error.contains("found 3 alone"), "{error}");
        assert!(read("warprow-mpi gcn a.mtx --widths 3,2").is_ok());
    }

    #[test]
    fn the_element_type_has_the_name_that_it_has_in_warprow() {
        for name in ["type", "element"] {
            let options = read(&format!("warprow-mpi spmm a.mtx --{name} f64")).unwrap();
            assert_eq!(options.run.element, ElementType::F64);
        }
    }
}
