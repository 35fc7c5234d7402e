//! SpMM: any type, kernel, reduction, layout, factors and options.

use super::{Failure, Random, compare, size, sparse, to_dense, unexpected, whole_dense, words};
use ndarray::Array2;
use warprow::device::Device;
use warprow::spmm::SpmmError;
use warprow::{
    CsrMatrix, Reduction, RowOrder, Scalar, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning,
    bf16, f16,
};

/// A random product.
pub fn run(
    random: &mut Random,
    device: &Device,
    describe: &dyn Fn(String),
) -> Result<u64, Failure> {
    match random.below(5) {
        0 => run_typed::<f64>(random, device, describe),
        1 => run_typed::<f16>(random, device, describe),
        2 => run_typed::<bf16>(random, device, describe),
        _ => run_typed::<f32>(random, device, describe),
    }
}

fn options(random: &mut Random) -> SpmmOptions {
    SpmmOptions::new()
        .features(random.maybe(|random| size(random, 140) as u32))
        .reduction(match random.once_in(4) {
            true => Reduction::Sum,
            false => *random.choose(Reduction::ALL),
        })
        .transpose(random.once_in(4))
        .deterministic(random.once_in(8))
        .tuning(
            SpmmTuning::new()
                .kernel(random.maybe(|random| *random.choose(SpmmKernel::ALL)))
                .task_size(
                    random
                        .maybe(|random| *random.choose(&[1, 2, 5, 16, 33, 64, 1 << 20, u32::MAX])),
                )
                .join_tasks(random.maybe(|random| random.once_in(2)))
                .shared_x(random.maybe(|random| random.once_in(2)))
                .lanes(random.maybe(|random| *random.choose(&[0, 1, 8, 16, 32, u32::MAX])))
                .column_blocks(random.maybe(|random| *random.choose(&[0, 1, 2, 3, 7, u32::MAX])))
                .order(random.maybe(|random| *random.choose(RowOrder::ALL))),
        )
}

fn run_typed<E: SpmmElement>(
    random: &mut Random,
    device: &Device,
    describe: &dyn Fn(String),
) -> Result<u64, Failure> {
    let (rows, cols) = (size(random, 40), size(random, 40));
    let a: CsrMatrix<E> = sparse(random, rows, cols);
    let options = options(random);
    let is_csc = random.once_in(4);
    let stored = if is_csc { a.to_csc() } else { a.clone() };
    let is_wide = random.once_in(4);
    let what = format!("SpMM in {}, wide values: {is_wide}", E::NAME);
    describe(words(&what, &[device, &options, &stored]));
    let plan = if is_wide {
        let wide = stored.map(|value| <E::Sum as Scalar>::from_f64(value.to_f64()));
        Spmm::<E>::plan_wide(device, wide.view(), options)
    } else {
        Spmm::<E>::plan(device, stored.view(), options)
    };
    let cannot = options.tuning.kernel.is_some_and(|kernel| {
        let capabilities = kernel.capabilities();
        !capabilities.has::<E>(options.reduction)
            || (options.deterministic && !capabilities.deterministic)
    });
    let plan = match plan {
        Err(SpmmError::Kernel { .. }) if cannot => return Ok(0),
        Ok(_) if cannot => return Err("a plan that its kernel cannot run".to_owned()),
        plan => plan.map_err(unexpected)?,
    };
    // Of A, or of its transpose, by rows.
    let dense = to_dense(&a);
    let dense = if options.transpose {
        dense.reversed_axes()
    } else {
        dense
    };
    let runs = random.within(1..=5) as u64;
    for _ in 0..runs {
        let most = if random.once_in(8) { 140 } else { 40 };
        let features = size(random, most);
        let x: Array2<E> = whole_dense(random, dense.ncols(), features);
        let y: Array2<E> = whole_dense(random, dense.nrows(), features);
        let factors = random.maybe(|random| [random.whole(3), random.whole(3)]);
        describe(words(&what, &[device, &options, &stored, &x, &factors, &y]));
        run_plan(&plan, &dense, &x, factors, y)?;
    }
    Ok(runs)
}

/// One run of a plan for `a`.
fn run_plan<E: SpmmElement>(
    plan: &Spmm<E>,
    a: &Array2<Option<f64>>,
    x: &Array2<E>,
    factors: Option<[f64; 2]>,
    y: Array2<E>,
) -> Result<(), Failure> {
    let [alpha, beta] = factors.unwrap_or([1.0, 0.0]);
    let wanted = naive(a, x, plan.reduction(), [alpha, beta], &y);
    let tolerance = match plan.reduction() {
        // The reciprocal of a length is rounded, and a 16-bit result may be the neighbour.
        Reduction::Mean if E::UNIT_ROUNDOFF > E::SUM_UNIT_ROUNDOFF => 2.5 * E::UNIT_ROUNDOFF,
        // Of terms of up to 48, rounded four times.
        Reduction::Mean => 256.0 * E::UNIT_ROUNDOFF,
        _ => 0.0,
    };
    let found = if factors.is_none() {
        plan.multiply(x.view()).map_err(unexpected)?
    } else {
        let upload = |matrix: &Array2<E>| {
            let numbers = matrix.as_slice().expect("it is by rows");
            plan.device().upload(numbers).map_err(unexpected)
        };
        let (x_device, mut result) = (upload(x)?, upload(&y)?);
        let [alpha, beta] = [alpha, beta].map(<E::Sum as Scalar>::from_f64);
        match plan.run_scaled(alpha, &x_device, x.ncols(), beta, &mut result) {
            Err(SpmmError::Kernel { .. }) if !plan.kernel().capabilities().general => return Ok(()),
            outcome => outcome.map_err(unexpected)?,
        }
        let numbers = result.download().map_err(unexpected)?;
        Array2::from_shape_vec(y.dim(), numbers).expect("Y has its shape")
    };
    compare(&found, &wanted, tolerance)
}

fn naive<E: Scalar>(
    a: &Array2<Option<f64>>,
    x: &Array2<E>,
    reduction: Reduction,
    [alpha, beta]: [f64; 2],
    y: &Array2<E>,
) -> Array2<f64> {
    Array2::from_shape_fn(y.dim(), |(i, j)| {
        let terms = a.row(i).into_iter().zip(x.column(j));
        let products = terms.filter_map(|(a, x)| a.map(|a| a * x.to_f64()));
        let products: Vec<f64> = products.collect();
        let sum: f64 = products.iter().sum();
        let reduced = match reduction {
            _ if products.is_empty() => 0.0,
            Reduction::Sum => sum,
            Reduction::Mean => sum / products.len() as f64,
            Reduction::Max => products.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Reduction::Min => products.iter().copied().fold(f64::INFINITY, f64::min),
            other => panic!(
                "the fuzzer has no reference of the reduction {}",
                other.name()
            ),
        };
        alpha * reduced + beta * y[(i, j)].to_f64()
    })
}
