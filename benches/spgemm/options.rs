//! The command line.

use crate::harness::cusparse::CusparseOptions;
use crate::harness::named::{self, ALL};
use crate::harness::run_options::RunOptions;
use crate::spgemm::cases::{CASES, Case, VALIDATION};
use crate::spgemm::input::Input;
use anyhow::{Context, bail};
use clap::builder::TypedValueParser;
use std::path::PathBuf;
use warprow::spgemm::BinLimits;

/// SpGEMM against cuSPARSE, on generated matrices.
#[derive(Clone, Debug, clap::Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench spgemm --")]
pub struct Options {
    /// Matrices; `all` but `small` and those of `validation`; or `validation` [default: all on a GPU, `small` on the
    /// emulator]
    #[arg(long = "matrix", value_name = "NAME", value_delimiter = ',', value_parser = matrix_names())]
    matrices: Vec<String>,

    /// A matrix of a file: Matrix Market (.mtx, .mtx.gz), SciPy (.npz) or an edge list (.tsv, .csv). Without --matrix,
    /// no other is multiplied. One that is not square is multiplied by its transpose alone
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<PathBuf>,

    /// What to multiply by
    #[arg(
        long = "product",
        value_name = "PRODUCT",
        value_delimiter = ',',
        value_enum,
        default_value = "square,transposed"
    )]
    pub products: Vec<Factor>,

    /// The element type
    #[arg(long = "type", value_name = "TYPE", value_enum, default_value = "f32")]
    pub element: ElementType,

    /// The same bits in every run
    #[arg(long)]
    pub deterministic: bool,

    /// The numeric phase keeps nothing from its first run for the next ones
    #[arg(long)]
    pub low_memory: bool,

    /// Multiplies also under limits that replace a kernel by others; a product that launches what the default does is
    /// not timed again
    #[arg(long)]
    pub sweep: bool,

    /// The device, the file of the results, the seed.
    #[command(flatten)]
    pub run: RunOptions,

    /// cuSPARSE.
    #[command(flatten)]
    pub cusparse: CusparseOptions,

    /// Multiplications whose times are taken
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: u32,

    /// Limits between kernels, `NAME=NUMBER`
    #[arg(long, value_name = "NAME=NUMBER", value_delimiter = ',', hide = true)]
    bin_limits: Vec<String>,
}

/// The element types that there are kernels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ElementType {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

/// What A is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Factor {
    /// A itself.
    Square,
    /// Its transpose.
    Transposed,
}

impl Factor {
    /// The word in the results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Square => "A x A",
            Self::Transposed => "A x A^T",
        }
    }
}

impl Options {
    /// The matrices to run.
    pub fn inputs(&self, on_emulator: bool) -> Vec<Input> {
        let is_all = self.matrices.iter().any(|name| name == ALL);
        let cases: Vec<Case> = if is_all || self.matrices.is_empty() && self.files.is_empty() {
            let wanted = |case: &&Case| (case.name == "small") == (on_emulator && !is_all);
            CASES.iter().filter(wanted).copied().collect()
        } else {
            let named = |name: &String| match &**name {
                VALIDATION_SET => VALIDATION.to_vec(),
                name => vec![Case::named(name).expect("names are those of the tables")],
            };
            self.matrices.iter().flat_map(named).collect()
        };
        let files = self.files.iter().cloned().map(Input::File);
        cases.into_iter().map(Input::Case).chain(files).collect()
    }

    /// `default`, the limits of a plan, with those that the options change; `None` if they change none.
    ///
    /// # Errors
    ///
    /// What is no `NAME=NUMBER`, or the name of no limit.
    pub fn bin_limits(&self, default: BinLimits) -> anyhow::Result<Option<BinLimits>> {
        let mut bin_limits = default;
        for assignment in &self.bin_limits {
            let (name, number) = assignment
                .split_once('=')
                .with_context(|| format!("wanted NAME=NUMBER, found `{assignment}`"))?;
            let limit = match name {
                "merge_nonzeros" => &mut bin_limits.merge_nonzeros,
                "merge_products" => &mut bin_limits.merge_products,
                "merge_distance" => &mut bin_limits.merge_distance,
                "sort_products" => &mut bin_limits.sort_products,
                "numeric_sort_products" => &mut bin_limits.numeric_sort_products,
                "min_sort_warps" => &mut bin_limits.min_sort_warps,
                "joined_products" => &mut bin_limits.joined_products,
                "few_rows" => &mut bin_limits.few_rows,
                "narrow_span" => &mut bin_limits.narrow_span,
                "hash_products" => &mut bin_limits.hash_products,
                "bitmap_words" => &mut bin_limits.bitmap_words,
                "run_span" => &mut bin_limits.run_span,
                "run_products" => &mut bin_limits.run_products,
                "window_span" => &mut bin_limits.window_span,
                "window_row_length" => &mut bin_limits.window_row_length,
                "min_neighbour_warps" => &mut bin_limits.min_neighbour_warps,
                "search_row_entries" => &mut bin_limits.search_row_entries,
                "search_row_products" => &mut bin_limits.search_row_products,
                "spread_products" => &mut bin_limits.spread_products,
                "chunk_entries" => &mut bin_limits.chunk_entries,
                "rank_words" => &mut bin_limits.rank_words,
                _ => bail!("no limit `{name}`"),
            };
            *limit = (number.parse()).with_context(|| format!("in `{assignment}`"))?;
        }
        Ok((!self.bin_limits.is_empty()).then_some(bin_limits))
    }
}

/// The value that stands for the matrices to which nothing was tuned.
const VALIDATION_SET: &str = "validation";

fn matrix_names() -> impl TypedValueParser<Value = String> {
    let of_validation = VALIDATION.iter().filter(|case| !CASES.contains(case));
    let names = CASES.iter().chain(of_validation).map(|case| case.name);
    named::or_all(names.chain([VALIDATION_SET]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::try_parse_from([&["spgemm"], arguments].concat())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn bin_limits_are_changed_by_name() {
        let default = BinLimits::new(227 << 10, 4);
        let options = parse(&["--bin-limits", "chunk_entries=4096,window_row_length=3"]).unwrap();
        let bin_limits = options.bin_limits(default).unwrap().unwrap();
        assert_eq!(
            (bin_limits.chunk_entries, bin_limits.window_row_length),
            (4096, 3)
        );
        assert_eq!(bin_limits.search_row_entries, default.search_row_entries);
        assert_eq!(parse(&[]).unwrap().bin_limits(default).unwrap(), None);
        for wrong in ["chunk_entries", "chunk_entries=x", "nothing=3"] {
            assert!(
                parse(&["--bin-limits", wrong])
                    .unwrap()
                    .bin_limits(default)
                    .is_err()
            );
        }
    }

    #[test]
    fn files_run_alone_or_after_the_matrices_that_are_asked_for() {
        let names = |arguments: &[&str]| -> Vec<String> {
            let inputs = parse(arguments).unwrap().inputs(true);
            inputs
                .iter()
                .map(|input| input.name().into_owned())
                .collect()
        };
        assert_eq!(names(&["--file", "a.mtx", "--file", "b.npz"]), ["a", "b"]);
        assert_eq!(
            names(&["--file", "a.mtx", "--matrix", "small"]),
            ["small", "a"]
        );
        assert_eq!(names(&[]), ["small"]);
        let validation = names(&["--matrix", "validation,small"]);
        assert_eq!(validation.len(), VALIDATION.len() + 1);
        let all = names(&["--matrix", "all", "--file", "a.mtx"]);
        assert_eq!(all.len(), CASES.len());
        assert_eq!(
            (&*all[0], all.last().unwrap().as_str()),
            ("rmat57_100k", "a")
        );
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        assert!(
            parse(&["--matrix", "none"])
                .unwrap_err()
                .contains("rmat57_100k")
        );
        assert!(parse(&["--samples", "0"]).is_err());
    }
}
