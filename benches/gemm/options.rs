//! The command line.

use crate::harness::element_type::ElementType;
use crate::harness::named;
use crate::harness::run_options::RunOptions;
use clap::builder::TypedValueParser;
use std::path::PathBuf;
use std::str::FromStr;
use warprow::GemmKernel;

/// XW against cuBLAS, and LogSoftmax.
#[derive(Clone, Debug, clap::Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench gemm --")]
pub struct Options {
    /// Rows of X [default: 281903,2449029 on a GPU, 1003 on the emulator]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    rows: Vec<u32>,

    /// Rows and columns of W
    #[arg(
        long = "shape",
        value_name = "KxN",
        value_delimiter = ',',
        default_value = "128x16,128x128,100x47,602x41,16x16"
    )]
    pub shapes: Vec<WeightShape>,

    /// Random products instead of the rows and shapes: so many, drawn by the seed. Some of their rows are verified
    #[arg(long, value_name = "N", conflicts_with_all = ["rows", "shapes"])]
    pub random: Option<u32>,

    /// The element types; each random product has one of them
    #[arg(
        long = "type",
        value_name = "TYPE",
        value_delimiter = ',',
        value_enum,
        default_value = "f32,f64,f16,bf16"
    )]
    pub elements: Vec<ElementType>,

    /// Classes of LogSoftmax
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "16,40,47",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub classes: Vec<u32>,

    /// Kernels to run beside the one that the plan picks, or `all`
    #[arg(long = "kernel", value_name = "NAME", value_delimiter = ',', value_parser = kernel_names())]
    kernels: Vec<String>,

    /// Runs beside the plan's choice every instance of the kernels that plans choose from: results under the names of
    /// the entry points
    #[arg(long)]
    pub sweep: bool,

    /// The device, the file of the results, the seed.
    #[command(flatten)]
    pub run: RunOptions,

    /// cuBLAS: the library, or its folder [default: searched for]
    #[arg(long, value_name = "PATH")]
    pub cublas: Option<PathBuf>,

    /// Runs without cuBLAS
    #[arg(long, conflicts_with = "cublas")]
    pub no_cublas: bool,

    /// Samples of a time, each of a millisecond or of one launch if that is longer
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: u32,
}

/// Rows and columns of W.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightShape {
    /// Rows of W, columns of X.
    pub depth: usize,
    /// Columns of W and Y.
    pub cols: usize,
}

impl FromStr for WeightShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("wanted is a shape like 128x16, found is `{text}`");
        let (depth, cols) = text.split_once('x').ok_or_else(wanted)?;
        // Sizes are u32 on the device. Thus no number of elements overflows here.
        match (depth.parse::<u32>(), cols.parse::<u32>()) {
            (Ok(depth), Ok(cols)) if depth > 0 && cols > 0 => Ok(Self {
                depth: depth as usize,
                cols: cols as usize,
            }),
            _ => Err(wanted()),
        }
    }
}

impl Options {
    /// Numbers of rows of X.
    pub fn rows(&self, on_emulator: bool) -> Vec<u32> {
        match (self.rows.is_empty(), on_emulator) {
            (false, _) => self.rows.clone(),
            (true, true) => vec![1003],
            (true, false) => vec![281_903, 2_449_029],
        }
    }

    /// The kernels asked for, in the order of the ladder.
    pub fn kernels(&self) -> Vec<GemmKernel> {
        named::chosen(GemmKernel::ALL, GemmKernel::name, &self.kernels)
    }
}

fn kernel_names() -> impl TypedValueParser<Value = String> {
    named::or_all(GemmKernel::ALL.iter().map(|kernel| kernel.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::named::ALL;
    use clap::{CommandFactory, Parser};

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::try_parse_from([&["gemm"], arguments].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn shapes_are_two_numbers_above_zero() {
        let shape = |depth, cols| WeightShape { depth, cols };
        let options = parse(&["--shape", "3x40,100x7"]).unwrap();
        assert_eq!(options.shapes, [shape(3, 40), shape(100, 7)]);
        for wrong in [
            "3",
            "x",
            "3x0",
            "0x3",
            "3x4x5",
            "-3x4",
            "3*4",
            "3x4294967296",
        ] {
            let argument = format!("--shape={wrong}");
            let error = parse(&[&argument]).unwrap_err();
            assert!(error.contains("wanted is a shape like 128x16"), "{error}");
        }
    }

    #[test]
    fn rows_are_those_asked_for_or_what_the_device_can_run() {
        assert_eq!(parse(&[]).unwrap().rows(true), [1003]);
        assert_eq!(parse(&[]).unwrap().rows(false), [281_903, 2_449_029]);
        assert_eq!(parse(&["--rows", "5,7"]).unwrap().rows(false), [5, 7]);
    }

    #[test]
    fn kernels_are_asked_for_by_name_or_all() {
        assert_eq!(parse(&[]).unwrap().kernels(), []);
        assert_eq!(
            parse(&["--kernel", ALL]).unwrap().kernels(),
            GemmKernel::ALL
        );
        let last = *GemmKernel::ALL.last().unwrap();
        let first = GemmKernel::ALL[0];
        let names = format!("{},{}", last.name(), first.name());
        assert_eq!(
            parse(&["--kernel", &names]).unwrap().kernels(),
            [first, last]
        );
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        let known = GemmKernel::ALL[0].name();
        assert!(parse(&["--kernel", "none"]).unwrap_err().contains(known));
        assert!(parse(&["--type", "f8"]).unwrap_err().contains("bf16"));
        assert!(parse(&["--samples", "0"]).is_err() && parse(&["--classes", "0"]).is_err());
        assert!(parse(&["--no-cublas", "--cublas", "x"]).is_err());
    }
}
