//! What a plan may be asked for beside a reduction: the transpose, and the same bits in every run.

use super::{assert_verified, cut_by_each};
use ndarray::{Array2, s};
use support::{devices, is_in_turn};
use warprow::{Reduction, Spmm, SpmmElement, bf16, f16, generate};

fn transposes_are_those_of_the_reference<E: SpmmElement>() {
    let a = generate::uniform::<E>(41, 29, 300, 5).unwrap();
    let features = 48;
    let x = generate::dense::<E>(41, features, 6).unwrap();
    let transpose = a.transpose_view().to_csr();
    let part = a.slice_outer(7..30);
    let part_transpose = part.transpose_view().to_csr();
    let zeros = Array2::from_elem((29, features), E::from_f64(0.0));
    for (number, device) in devices().into_iter().enumerate() {
        let reductions = [Reduction::Sum, Reduction::Mean];
        for (turn, options) in (reductions.into_iter().flat_map(cut_by_each)).enumerate() {
            if !is_in_turn(&device, number, turn) {
                continue;
            }
            let options = options.transpose(true);
            for stored in [a.clone(), a.to_csc()] {
                let plan = Spmm::plan(&device, stored.view(), options).unwrap();
                assert_eq!((plan.rows(), plan.cols()), (29, 41));
                assert!(plan.to_string().contains("the transpose"), "{plan}");
                assert_verified(&plan, &transpose, x.view(), [1.0, 0.0], zeros.view());
            }
            let plan = Spmm::plan(&device, part.view(), options).unwrap();
            let x = x.slice(s![7..30, ..]);
            assert_verified(&plan, &part_transpose, x, [1.0, 0.0], zeros.view());
        }
    }
}

#[test]
fn a_plan_for_the_transpose_multiplies_with_it_however_a_is_stored() {
    in_every_type!(transposes_are_those_of_the_reference());
}

fn bits<E: SpmmElement>(y: &Array2<E>) -> Vec<u64> {
    y.iter().map(|v| v.to_f64().to_bits()).collect()
}

fn two_runs_have_the_same_bits<E: SpmmElement>() {
    let a = generate::rmat::<E>(150, 1500, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    let x = generate::dense::<E>(150, 40, 4).unwrap();
    for device in devices() {
        for options in Reduction::ALL.iter().copied().flat_map(cut_by_each) {
            let options = options.deterministic(true);
            let plan = || Spmm::plan(&device, a.view(), options).unwrap();
            let product = |plan: &Spmm<E>| plan.multiply(x.view()).unwrap();
            let (first, second) = (plan(), plan());
            let [one, two, three] = [&first, &first, &second].map(product);
            assert_eq!(bits(&one), bits(&two), "{options:?} on {device}");
            assert_eq!(
                bits(&one),
                bits(&three),
                "another plan: {options:?} on {device}"
            );
        }
    }
}

#[test]
fn deterministic_plans_give_the_same_bits_in_every_run() {
    in_every_type!(two_runs_have_the_same_bits());
}
