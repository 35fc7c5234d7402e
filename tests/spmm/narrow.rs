//! Products with few features: [`Spmv`], and plans that do not know the number of features.

use super::plan::assert_right;
use ndarray::Axis;
use support::devices;
use warprow::{Spmm, SpmmKernel, SpmmOptions, Spmv, generate};

const SKEWED: [f64; 4] = [0.57, 0.19, 0.19, 0.05];

#[test]
fn spmv_is_the_product_with_one_vector() {
    let a = generate::rmat::<f32>(700, 9_000, SKEWED, 3).unwrap();
    let x = generate::dense::<f32>(700, 1, 4).unwrap();
    for device in devices() {
        let spmv = Spmv::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        assert_eq!(spmv.as_spmm().kernel(), SpmmKernel::Narrow);
        let y = spmv.multiply(x.column(0)).unwrap().insert_axis(Axis(1));
        assert_right(a.view(), x.view(), &y, spmv.as_spmm());
    }
}

#[test]
fn a_plan_that_knows_no_features_has_a_kernel_for_few_and_one_for_many() {
    let a = generate::rmat::<f32>(700, 9_000, SKEWED, 3).unwrap();
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        assert_eq!(plan.kernel_for(1), SpmmKernel::Narrow);
        assert_eq!(plan.kernel_for(17), plan.kernel());
        assert_ne!(plan.kernel(), SpmmKernel::Narrow);
        for features in [1, 6, 16, 17] {
            let x = generate::dense::<f32>(700, features, 5).unwrap();
            let y = plan.multiply(x.view()).unwrap();
            assert_right(a.view(), x.view(), &y, &plan);
            assert_eq!(plan.multiply(x.view()).unwrap(), y, "other bits: {plan}");
        }
    }
}
