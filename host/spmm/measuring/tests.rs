//! Tests of measured plans, with clocks that know beforehand what is fast, on an emulated H200.

use super::*;
use crate::device::{DeviceProfile, EmulatorOptions};
use crate::generate;
use crate::reference::verify_spmm;
use crate::spmm::{Reduction, RowOrder};

/// A clock by which a candidate takes as many microseconds as a function says.
struct Told<F>(F);

impl<E: SpmmElement, F: Fn(SpmmTuning) -> u64> Clock<E> for Told<F> {
    fn has_time(&self, _: &Device) -> bool {
        true
    }

    fn time(&mut self, plan: &Spmm<E>, _: u32, _: Option<Duration>) -> Result<Duration, SpmmError> {
        Ok(Duration::from_micros((self.0)(plan.options.tuning)))
    }
}

const ROWS: u32 = 30_000;
const NONZEROS: u32 = 270_000;

fn device() -> Device {
    Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default())
}

fn matrix(device: &Device) -> (crate::CsrMatrix<f32>, DeviceCsr<f32>) {
    let a = generate::rmat::<f32>(ROWS, NONZEROS, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let stored = DeviceCsr::upload(device, a.view()).unwrap();
    (a, stored)
}

fn measured(features: u32) -> SpmmOptions {
    SpmmOptions::new().features(features).measure(true)
}

fn plan(
    stored: &DeviceCsr<f32>,
    options: SpmmOptions,
    micros: impl Fn(SpmmTuning) -> u64,
) -> Spmm<f32> {
    Spmm::plan_with_clock(stored, options.transpose, options, Told(micros)).unwrap()
}

#[test]
fn the_fastest_candidate_is_the_plan_whatever_was_predicted() {
    let device = device();
    let (a, stored) = matrix(&device);
    let x = generate::dense::<f32>(ROWS as usize, 33, 2).unwrap();
    for (kernel, lanes) in [
        (SpmmKernel::Vector, Some(32)),
        (SpmmKernel::Vector, Some(16)),
    ] {
        let is_it = |tuning: SpmmTuning| (tuning.kernel, tuning.lanes) == (Some(kernel), lanes);
        let plan = plan(&stored, measured(33), |tuning| match is_it(tuning) {
            true => 50,
            false => 100,
        });
        assert_eq!((plan.kernel(), plan.lanes(33)), (kernel, lanes), "{plan}");
        let all = plan.measurements();
        assert!(is_it(all[0].tuning), "{plan}");
        assert!(
            all.is_sorted_by_key(|measurement| measurement.time),
            "{plan}"
        );
        let text = plan.to_string();
        assert!(
            text.contains("as measured") && text.contains("0.0500 ms"),
            "{text}"
        );
        let y = plan.multiply(x.view()).unwrap();
        assert!(verify_spmm(a.view(), x.view(), y.view()).ok());
    }
}

#[test]
fn other_sizes_of_tasks_are_timed_for_the_fastest_alone() {
    let device = device();
    let (_, stored) = matrix(&device);
    let micros = |tuning: SpmmTuning| match (tuning.lanes, tuning.task_size, tuning.join_tasks) {
        (Some(16), Some(256), Some(false)) => 40,
        (Some(16), ..) => 50,
        _ => 100,
    };
    let plan = plan(&stored, measured(64), micros);
    let best = plan.measurements()[0].tuning;
    assert_eq!(
        (best.lanes, best.task_size),
        (Some(16), Some(256)),
        "{plan}"
    );
    for SpmmMeasurement { tuning, .. } in plan.measurements() {
        assert!(
            tuning.task_size.is_none() || tuning.lanes == Some(16),
            "{plan}"
        );
    }
    let clock = |_| -> u64 { panic!("there is one candidate") };
    for options in [measured(64), measured(64).measure(false)] {
        let again = self::plan(&stored, options.tuning(best), clock);
        assert_eq!(
            again.launch_config(64).unwrap(),
            plan.launch_config(64).unwrap()
        );
        assert!(again.measurements().is_empty());
    }
}

#[test]
fn what_the_caller_asks_for_is_not_measured_otherwise() {
    let device = device();
    let (_, stored) = matrix(&device);
    let tuning = SpmmTuning::new().lanes(16).task_size(100);
    let plan = plan(&stored, measured(64).tuning(tuning), |_| 10);
    assert!(plan.measurements().is_empty());
    let text = plan.to_string();
    assert!(
        text.contains("not measured: there are no two candidates"),
        "{text}"
    );
    let tuning = SpmmTuning::new().kernel(SpmmKernel::Vector).task_size(100);
    let plan = self::plan(&stored, measured(64).tuning(tuning), |_| 10);
    let all = plan.measurements();
    assert!(all.len() > 1, "{plan}");
    for SpmmMeasurement { tuning, .. } in all {
        assert_eq!(
            (tuning.kernel, tuning.task_size),
            (Some(SpmmKernel::Vector), Some(100))
        );
    }
}

#[test]
fn another_number_of_features_has_the_lanes_that_are_predicted_for_it() {
    let device = device();
    let (_, stored) = matrix(&device);
    let plan = plan(&stored, measured(128), |tuning| match tuning.lanes {
        Some(32) => 50,
        _ => 100,
    });
    assert_eq!(
        (plan.lanes(128), plan.lanes(32)),
        (Some(32), Some(8)),
        "{plan}"
    );
    // What the caller asks for is for every number of features.
    let tuning = SpmmTuning::new().lanes(16);
    let plan = self::plan(&stored, measured(128).tuning(tuning), |_| 10);
    assert_eq!((plan.lanes(128), plan.lanes(256)), (Some(16), Some(16)));
}

#[test]
fn without_features_a_clock_or_a_choice_the_prediction_stays_and_the_plan_says_so() {
    let device = device();
    let (_, stored) = matrix(&device);
    let unknown = SpmmOptions::new().measure(true);
    let plans = [
        (
            plan(&stored, unknown, |_| 10),
            "the number of features is unknown",
        ),
        (
            plan(&stored, measured(0), |_| 10),
            "the number of features is unknown",
        ),
        (
            Spmm::plan_device(&stored, measured(64)).unwrap(),
            "the device has no clock",
        ),
    ];
    for (plan, reason) in plans {
        let mut predicted = plan.options;
        predicted.measure = Some(false);
        let predicted = Spmm::<f32>::plan_device(&stored, predicted).unwrap();
        assert_eq!(plan.kernel(), predicted.kernel());
        assert_eq!(plan.lanes(64), predicted.lanes(64));
        let text = plan.to_string();
        assert!(text.contains(&format!("not measured: {reason}")), "{text}");
    }
}

#[test]
fn a_plan_measures_unasked_if_so_many_runs_are_known_to_pay_for_it() {
    let device = device();
    let (_, stored) = matrix(&device);
    let measurements = |options| plan(&stored, options, |_| 10).measurements().len();
    let known = SpmmOptions::new().features(64);
    assert!(measurements(known.runs(10_000_000)) > 1);
    assert_eq!(measurements(known.runs(100)), 0, "too few runs");
    assert_eq!(measurements(known), 0, "nobody has said how many runs");
    assert_eq!(measurements(known.runs(10_000_000).measure(false)), 0);
    let of_any_features = SpmmOptions::new().runs(10_000_000);
    assert_eq!(measurements(of_any_features), 0, "features are unknown");
    let plan = Spmm::<f32>::plan_device(&stored, known.runs(10_000_000)).unwrap();
    assert!(plan.measurements().is_empty(), "the emulator has no clock");
    assert!(!plan.to_string().contains("measured"), "{plan}");
}

#[test]
fn an_order_that_is_predicted_to_gain_little_is_timed_and_taken_if_it_is_faster() {
    // X does not fit into the L2 cache, and some nonzeros are in communities.
    let mut profile = DeviceProfile::h200();
    profile.hardware.l2_bytes = 64 << 10;
    profile.rates.memory_bytes_per_second /= 100;
    let device = Device::emulator_of(&profile, EmulatorOptions::default());
    let communities = generate::Communities {
        sizes: 40..=160,
        inside: 0.1,
        shuffled: true,
    };
    let a = generate::communities::<f32>(2000, 40_000, &communities, 1).unwrap();
    let stored = DeviceCsr::upload(&device, a.view()).unwrap();
    // Rows of `in_step` share columns in any order, so a search for one pays for `vector` only.
    let tuning = SpmmTuning::new().kernel(SpmmKernel::Vector);
    let known = SpmmOptions::new().features(64).tuning(tuning);
    let predicted = Spmm::<f32>::plan_device(&stored, known.runs(1000)).unwrap();
    assert_eq!(predicted.order(), RowOrder::Given, "{predicted}");
    let text = predicted.to_string();
    assert!(
        text.contains("% in first_column"),
        "both were compared: {text}"
    );
    let is_other = |tuning: SpmmTuning| tuning.order.is_some_and(|order| order != RowOrder::Given);
    for options in [known.measure(true), known.runs(10_000_000)] {
        for faster in [false, true] {
            let plan = plan(&stored, options, |tuning| {
                50 + 50 * u64::from(is_other(tuning) != faster)
            });
            let timed = plan.measurements().iter();
            let others = timed.filter(|timed| is_other(timed.tuning)).count();
            assert!((1..plan.measurements().len()).contains(&others), "{plan}");
            assert_eq!(plan.order() != RowOrder::Given, faster, "{plan}");
        }
    }
    // A plan that cannot measure has the order of the prediction.
    let unmeasured = Spmm::<f32>::plan_device(&stored, known.measure(true)).unwrap();
    assert!(unmeasured.measurements().is_empty());
    assert_eq!(unmeasured.order(), RowOrder::Given, "{unmeasured}");
}

#[test]
fn empty_matrices_are_planned_as_well() {
    let device = device();
    for shape in [(0, 0), (0, 5), (5, 0), (9, 7)] {
        let a = sprs::CsMatI::<f32, u32, u32>::zero(shape);
        let stored = DeviceCsr::upload(&device, a.view()).unwrap();
        for features in [1, 8, 64] {
            let plan = plan(&stored, measured(features), |_| 10);
            let x = ndarray::Array2::ones((shape.1, features as usize));
            let y = plan.multiply(x.view()).unwrap();
            assert!(y.iter().all(|&element| element == 0.0));
        }
    }
}

#[test]
fn reductions_transposes_and_new_values_are_right_in_measured_plans() {
    let device = device();
    let (a, stored) = matrix(&device);
    let x = generate::dense::<f32>(ROWS as usize, 64, 2).unwrap();
    for reduction in [Reduction::Mean, Reduction::Max, Reduction::Min] {
        for transpose in [false, true] {
            let options = measured(64).reduction(reduction).transpose(transpose);
            let options = options.updatable(true);
            let mut plan = plan(&stored, options, |tuning| {
                100 - u64::from(tuning.lanes.unwrap_or(0))
            });
            // An extremum may have one candidate alone, which the plan keeps.
            let is_measured = !plan.measurements().is_empty();
            assert!(is_measured || reduction != Reduction::Mean, "{plan}");
            plan.set_values(a.data()).unwrap();
            let y = plan.multiply(x.view()).unwrap();
            let of = match transpose {
                true => a.transpose_view().to_csr(),
                false => a.clone(),
            };
            let operation = crate::reference::Operation::new().reduction(reduction);
            let verification = operation.verify(of.view(), x.view(), y.view());
            assert!(verification.ok(), "{plan}: {verification}");
        }
    }
}

#[test]
fn if_the_memory_does_not_suffice_the_prediction_stays_and_nothing_leaks() {
    let device = device();
    let a = generate::rmat::<f32>(400, 4_000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let stored = DeviceCsr::upload(&device, a.view()).unwrap();
    let before = device.allocated_bytes();
    let mut fell_back = 0;
    for number in 1.. {
        device.fail_allocation(number);
        let plan = Spmm::<f32>::plan_with_clock(&stored, false, measured(64), Told(|_| 10));
        let has_failed = device.fail_allocation(0) == 0;
        match plan {
            Ok(plan) if has_failed => {
                let text = plan.to_string();
                let is_said = text.contains("not measured: the memory does not suffice");
                assert!(is_said || !plan.measurements().is_empty(), "{text}");
                fell_back += u32::from(is_said);
            }
            Ok(_) => break,
            Err(error) => assert!(is_out_of_memory(&error), "{error}"),
        }
        assert_eq!(
            device.allocated_bytes(),
            before,
            "leaked with allocation {number} failing"
        );
    }
    assert!(fell_back > 0);
}

#[test]
fn samples_have_so_many_runs_that_they_take_their_time() {
    let micros = Duration::from_micros;
    assert_eq!(runs_for(micros(500), micros(100)), 5);
    assert_eq!(runs_for(micros(500), micros(600)), 1);
    assert_eq!(runs_for(micros(500), micros(1)), MAX_RUNS);
    assert_eq!(runs_for(micros(500), Duration::ZERO), MAX_RUNS);
}
