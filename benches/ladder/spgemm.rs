//! A case of SpGEMM: a graph times itself, by every rung and by what runs by default.

use crate::harness::host_clock::{Runs, measure_whole};
use crate::ladder::bench::Bench;
use crate::ladder::cases::NamedGraph;
use crate::ladder::report::{Case, Outcome, Verified};
use crate::ladder::rungs::{Rung, spgemm_rungs};
use crate::spgemm::verification::Verifier;
use std::time::Duration;
use warprow::spgemm::{SpgemmKernel, SpgemmOptions, multiply, multiply_unsorted};
use warprow::{DeviceCsr, Error};

/// Multiplications before the first sample.
const WARM_UPS: u32 = 3;

/// The time after which a slow rung takes no more than its third sample.
const BUDGET: Duration = Duration::from_secs(2);

/// All rungs of SpGEMM on a graph.
///
/// # Errors
///
/// The device's, unless it is a limit of a rung.
pub fn case(bench: &mut Bench<'_>, graph: &NamedGraph) -> anyhow::Result<()> {
    let a = &graph.a;
    let case = Case {
        case: graph.name.clone(),
        rows: a.rows(),
        cols: a.cols(),
        nnz: Some(a.nnz()),
        features: None,
        element: "f32",
    };
    let verifier = Verifier::choose(a, a, bench.options.run.seed);
    let on_device = DeviceCsr::upload(&bench.device, a.view())?;
    bench.report.begin_case();
    for kernel in spgemm_rungs() {
        let outcome = Outcome::of(computed(bench, kernel, &on_device, &verifier))?;
        bench
            .report
            .add(&Rung::of_spgemm(kernel), &case, &outcome)?;
    }
    Ok(())
}

/// The product by one rung; for none, by what runs by default.
fn computed(
    bench: &Bench<'_>,
    kernel: Option<SpgemmKernel>,
    a: &DeviceCsr<f32>,
    verifier: &Verifier<'_, f32>,
) -> anyhow::Result<Outcome> {
    let runs = Runs {
        warm_ups: WARM_UPS,
        samples: bench.options.samples,
        budget: BUDGET,
    };
    let (timing, c) = match kernel {
        Some(kernel) => {
            let product = || multiply_unsorted(kernel, a, a);
            let (timing, c) = measure_whole(&bench.device, runs, product)?;
            (timing, c.download_sorted()?)
        }
        None => {
            let options = SpgemmOptions::default();
            let product = || Ok::<_, Error>(multiply(a, a, options)?.c);
            let (timing, c) = measure_whole(&bench.device, runs, product)?;
            (timing, c.download()?)
        }
    };
    let found = verifier.verify(&c);
    let verified = Verified {
        rows: found.rows_verified,
        max_relative_error: found.max_rel_err,
        ok: found.ok,
    };
    Ok(Outcome::computed(timing, verified))
}
