//! Tests of what types other than f32 cost.

use super::*;
use crate::spmm::options::SpmmElement;
use half::f16;

fn typed<E: SpmmElement>(features: u32) -> FeatureRow {
    FeatureRow::new::<E>(features, Reduction::Sum, EpilogueKind::Plain)
}

#[test]
fn lanes_of_a_nonzero_have_its_features_with_the_elements_that_each_loads() {
    fn check<E: SpmmElement>() {
        for features in 2..=128 {
            let row = typed::<E>(features);
            for candidate in row.row_bins().into_iter().chain(row.row_groups()) {
                let vectors = features.div_ceil(candidate.width);
                let lanes = vectors.next_power_of_two().min(32);
                assert_eq!(candidate.lanes, lanes, "{} of {features}", E::NAME);
                assert_eq!(candidate.loads_of_vector(), 1);
            }
        }
    }
    check::<f32>();
    check::<f64>();
    check::<f16>();
}

#[test]
fn only_row_groups_in_f64_take_a_nonzero_in_several_tiles() {
    assert_eq!(
        typed::<f64>(64).row_groups().next().map(|all| all.tile),
        Some(64)
    );
    let groups: Vec<Candidate> = typed::<f64>(128).row_groups().collect();
    assert!(!groups.is_empty() && groups.iter().all(|groups| groups.tile == 64));
    assert!(typed::<f64>(64).row_bins().is_some() && typed::<f64>(128).row_bins().is_none());
    assert!(typed::<f32>(66).row_groups().next().is_none());
}

#[test]
fn four_elements_of_f64_are_two_loads_and_fewer_warps_are_resident() {
    let (double, single) = (typed::<f64>(64).vector(8, 1), typed::<f32>(64).vector(8, 1));
    assert_eq!((double.loads_of_vector(), single.loads_of_vector()), (2, 1));
    assert_eq!(
        (double.resident_warps(), single.resident_warps()),
        (16.0, 28.0)
    );
}

#[test]
fn a_product_takes_more_time_in_f64_and_less_in_f16_with_any_kernel() {
    let profile = DeviceProfile::h200();
    let model = model(&profile);
    let a = even(1_000_000, 30);
    let seconds = |candidate: Option<Candidate>| model.predict(&a, &candidate.unwrap()).seconds;
    let kernels: [fn(FeatureRow) -> Option<Candidate>; 4] = [
        |row| Some(row.vector(8, 1)),
        |row| row.in_step(Some(8)).next(),
        |row| row.row_groups().last(),
        FeatureRow::row_bins,
    ];
    for (index, kernel) in kernels.into_iter().enumerate() {
        let [half, single, double] =
            [typed::<f16>(32), typed::<f32>(32), typed::<f64>(32)].map(|row| seconds(kernel(row)));
        assert!(half < single, "kernel {index}: {half} s, {single} s");
        // A reads 1.5 times the bytes, X and Y twice.
        assert!(
            double > 1.3 * single,
            "kernel {index}: {double} s, {single} s"
        );
    }
}
