//! The operations on dense matrices: XW and LogSoftmax.

use super::{Failure, Random, compare, size, unexpected, whole_dense, words};
use ndarray::{Array1, Array2};
use warprow::device::Device;
use warprow::gemm::GemmError;
use warprow::log_softmax::{LogSoftmax, SoftmaxElement};
use warprow::reference::verify_log_softmax;
use warprow::{
    DenseView, DenseViewMut, Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning, Scalar, bf16,
    f16,
};

/// A random product of dense matrices, packed or with gaps between the rows of X and Y.
pub fn gemm(
    random: &mut Random,
    device: &Device,
    describe: &dyn Fn(String),
) -> Result<u64, Failure> {
    match random.below(4) {
        0 => gemm_typed::<f32>(random, device, describe),
        1 => gemm_typed::<f64>(random, device, describe),
        2 => gemm_typed::<f16>(random, device, describe),
        _ => gemm_typed::<bf16>(random, device, describe),
    }
}

fn gemm_typed<T: GemmElement>(
    random: &mut Random,
    device: &Device,
    describe: &dyn Fn(String),
) -> Result<u64, Failure> {
    let [k, n] = [50, 150].map(|most| size(random, most));
    let w: Array2<T> = whole_dense(random, k, n);
    let bias = random.maybe(|random| -> Array1<T> { whole_dense(random, 1, n).row(0).to_owned() });
    let options = GemmOptions::new()
        .relu(random.once_in(2))
        .tf32(random.once_in(2))
        .tuning(GemmTuning::new().kernel(random.maybe(|random| *random.choose(GemmKernel::ALL))));
    let what = format!("XW in {}", T::NAME);
    describe(words(&what, &[device, &options, &w, &bias]));
    let bias_view = bias.as_ref().map(|bias| bias.view());
    let plan = match Gemm::plan(device, w.view(), bias_view, options) {
        Err(GemmError::Kernel { .. }) if options.tuning.kernel.is_some() => return Ok(0),
        plan => plan.map_err(unexpected)?,
    };
    let runs = random.within(1..=3) as u64;
    for _ in 0..runs {
        let m = size(random, 70);
        let x: Array2<T> = whole_dense(random, m, k);
        // Multiples of 8 suit all kernels, others some.
        let gaps = [(); 2].map(|()| match random.below(4) {
            0 | 1 => 0,
            2 => random.within(1..=9),
            _ => 8 * random.within(1..=2),
        });
        describe(words(&what, &[device, &options, &w, &bias, &x, &gaps]));
        let found = match gaps {
            [0, 0] => plan.multiply(x.view()),
            gaps => multiply_with_gaps(&plan, &x, gaps)?,
        };
        let found = match found {
            // The kernel does not take the leading dimension, or the kernel of a ladder takes no gaps at all.
            Err(GemmError::Kernel { .. }) if gaps != [0, 0] => continue,
            found => found.map_err(unexpected)?,
        };
        let wanted = Array2::from_shape_fn((m, n), |(i, j)| {
            let terms = x.row(i).into_iter().zip(w.column(j));
            let sum: f64 = terms.map(|(x, w)| x.to_f64() * w.to_f64()).sum();
            let sum = sum + bias.as_ref().map_or(0.0, |bias| bias[j].to_f64());
            if options.relu { sum.max(0.0) } else { sum }
        });
        compare(&found, &wanted, 0.0)?;
    }
    Ok(runs)
}

/// The product with gaps of so many elements after each row of X and Y. They are no numbers, and those of Y must stay.
fn multiply_with_gaps<T: GemmElement>(
    plan: &Gemm<T>,
    x: &Array2<T>,
    gaps: [usize; 2],
) -> Result<Result<Array2<T>, GemmError>, Failure> {
    let (m, n) = (x.nrows(), plan.cols());
    let [of_x, of_y] = [x.ncols() + gaps[0], n + gaps[1]];
    let mut elements = vec![T::from_f64(f64::NAN); m * of_x];
    for ((i, j), &element) in x.indexed_iter() {
        elements[i * of_x + j] = element;
    }
    let x_there = plan.device().upload(&elements).map_err(unexpected)?;
    let old = vec![T::from_f64(f64::NAN); m * of_y];
    let mut y = plan.device().upload(&old).map_err(unexpected)?;
    let of_x = DenseView::new(&x_there, m, x.ncols(), of_x).map_err(unexpected)?;
    let to = DenseViewMut::new(&mut y, m, n, of_y).map_err(unexpected)?;
    if let Err(error) = plan.run(of_x, m, to) {
        return Ok(Err(error));
    }
    let y = y.download().map_err(unexpected)?;
    let is_gap = |k: usize| k % of_y >= n;
    match (0..y.len()).find(|&k| is_gap(k) && !y[k].to_f64().is_nan()) {
        Some(k) => Err(format!("element {k} in a gap of Y was overwritten")),
        None => Ok(Ok(Array2::from_shape_fn((m, n), |(i, j)| y[i * of_y + j]))),
    }
}

/// LogSoftmax of random rows.
pub fn log_softmax(
    random: &mut Random,
    device: &Device,
    describe: &dyn Fn(String),
) -> Result<u64, Failure> {
    match random.below(4) {
        0 => log_softmax_typed::<f32>(random, device, describe),
        1 => log_softmax_typed::<f64>(random, device, describe),
        2 => log_softmax_typed::<f16>(random, device, describe),
        _ => log_softmax_typed::<bf16>(random, device, describe),
    }
}

fn log_softmax_typed<T: SoftmaxElement + Scalar>(
    random: &mut Random,
    device: &Device,
    describe: &dyn Fn(String),
) -> Result<u64, Failure> {
    let (rows, classes) = (size(random, 40), size(random, 140));
    let x: Array2<T> = whole_dense(random, rows, classes);
    let bias =
        random.maybe(|random| -> Array1<T> { whole_dense(random, 1, classes).row(0).to_owned() });
    describe(words(
        &format!("LogSoftmax in {}", T::NAME),
        &[device, &x, &bias],
    ));
    let bias_view = bias.as_ref().map(|bias| bias.view());
    let plan = LogSoftmax::plan(device, classes, bias_view).map_err(unexpected)?;
    let y = plan.apply(x.view()).map_err(unexpected)?;
    let sums = Array2::from_shape_fn(x.dim(), |(i, j)| {
        let bias = bias.as_ref().map_or(0.0, |bias| bias[j].to_f64());
        T::from_f64(x[(i, j)].to_f64() + bias)
    });
    let found = verify_log_softmax(sums.view(), y.view());
    if found.ok() {
        Ok(1)
    } else {
        Err(found.to_string())
    }
}
