//! XW by every kernel of the product: leading dimensions that it takes, and those that it refuses.

use super::{Layout, Wide, layout};
use crate::gemm::choices;
use ndarray::{Array2, ArrayView2};
use warprow::gemm::GemmError;
use warprow::{Gemm, GemmElement, GemmKernel, GemmOptions, bf16, f16, generate};

/// Columns of X and of Y: whole vectors, halves, and odd ones.
const SHAPES: [(usize, usize); 8] = [
    (16, 16),
    (40, 47),
    (37, 24),
    (96, 33),
    (64, 130),
    (5, 6),
    // One and two columns of W, and rows of X of halves of vectors.
    (72, 1),
    (42, 2),
];

/// Gaps that all kernels take if X has an even number of columns and Y has whole vectors, and others.
const GAPS: [(usize, usize); 5] = [(0, 8), (16, 0), (2, 2), (1, 3), (6, 5)];

fn run<T: GemmElement>(
    gemm: &Gemm<T>,
    x: ArrayView2<'_, T>,
    [of_x, of_y]: [Layout; 2],
) -> Result<Array2<T>, GemmError> {
    let x = Wide::new(gemm.device(), x, of_x);
    let old = Array2::from_elem((x.rows, gemm.cols()), T::from_f64(7.0));
    let mut y = Wide::new(gemm.device(), old.view(), of_y);
    gemm.run(x.view(), x.rows, y.view_mut())?;
    Ok(y.download()
        .unwrap_or_else(|error| panic!("{gemm}, {of_x:?}, {of_y:?}: {error}")))
}

/// The product of an X and a Y with gaps of so many elements between rows.
pub fn multiply_with_gaps<T: GemmElement>(
    gemm: &Gemm<T>,
    x: ArrayView2<'_, T>,
    (of_x, of_y): (usize, usize),
) -> Array2<T> {
    run(gemm, x, [layout(0, of_x), layout(0, of_y)])
        .unwrap_or_else(|error| panic!("{gemm}: {error}"))
}

fn is_ladder(options: GemmOptions) -> bool {
    options
        .tuning
        .kernel
        .is_some_and(|kernel| kernel.folder() == "ladder")
}

/// Whether the kernel takes rows of X and Y of so many elements of `size` bytes, with these gaps.
fn takes(
    kernel: GemmKernel,
    size: usize,
    (k, n): (usize, usize),
    (of_x, of_y): (usize, usize),
) -> bool {
    let vector = 1 << (n * size).trailing_zeros().min(4);
    use GemmKernel::{FlatFragments, Fragments, InnerProducts, Shallow, Staged};
    let takes_any = matches!(
        kernel,
        Staged | Shallow | InnerProducts | Fragments | FlatFragments
    );
    let starts_in_words = !(k * size).is_multiple_of(4) || ((k + of_x) * size).is_multiple_of(4);
    takes_any || starts_in_words && ((n + of_y) * size).is_multiple_of(vector)
}

/// Runs with all gaps, the first rows of X and Y after `before` elements. A product has the bits of `packed`, or the
/// kernel refuses the leading dimension.
fn every_gap_agrees<T: GemmElement>(
    gemm: &Gemm<T>,
    x: ArrayView2<'_, T>,
    packed: ArrayView2<'_, T>,
    before: usize,
) {
    let shape = (gemm.depth(), gemm.cols());
    for gaps in [(0, 0)].into_iter().chain(GAPS) {
        let what = format!("{gemm}, {before} elements before, gaps {gaps:?}");
        let found = run(gemm, x, [layout(before, gaps.0), layout(before, gaps.1)]);
        if takes(gemm.kernel(), size_of::<T>(), shape, gaps) {
            let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(found, packed, "{what}");
        } else {
            let is_refused = matches!(&found, Err(GemmError::Kernel { reason, .. })
                if reason.contains("leading dimension"));
            assert!(is_refused, "{what}: {found:?}");
        }
    }
}

fn every_kernel_agrees<T: GemmElement>() {
    for (number, device) in support::devices().into_iter().enumerate() {
        for (place, (k, n)) in SHAPES.into_iter().enumerate() {
            let x = generate::dense::<T>(83, k, 1).unwrap();
            let w = generate::dense::<T>(k, n, 2).unwrap();
            for (turn, options) in choices::<T>(&device, k).into_iter().enumerate() {
                // The emulators change places with the next shape.
                if is_ladder(options) || !support::is_in_turn(&device, number, turn + place) {
                    continue;
                }
                let gemm = Gemm::plan(&device, w.view(), None, options.relu(true)).unwrap();
                let packed = run(&gemm, x.view(), [layout(0, 0); 2]).unwrap();
                // Of 47 and of 130 columns, Y also starts in the middle of a sector of 32 bytes.
                let in_sector = (n == 47 || n == 130).then_some(16 / size_of::<T>());
                for before in [Some(0), in_sector].into_iter().flatten() {
                    every_gap_agrees(&gemm, x.view(), packed.view(), before);
                }
            }
        }
    }
}

#[test]
fn every_kernel_gives_the_bits_of_packed_operands_or_says_what_it_wants() {
    every_kernel_agrees::<f32>();
    every_kernel_agrees::<f64>();
    every_kernel_agrees::<f16>();
    every_kernel_agrees::<bf16>();
}

#[test]
fn w_may_be_columns_of_a_wider_array_of_the_host() {
    let wide = generate::dense::<f32>(12, 20, 2).unwrap();
    let w = wide.slice(ndarray::s![.., 3..10]);
    let x = generate::dense::<f32>(9, 12, 1).unwrap();
    for device in support::devices() {
        let of = |w: ArrayView2<'_, f32>| {
            let gemm = Gemm::plan(&device, w, None, GemmOptions::default()).unwrap();
            gemm.multiply(x.view()).unwrap()
        };
        assert_eq!(of(w), of(w.to_owned().view()));
    }
}
