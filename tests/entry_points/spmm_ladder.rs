//! The rungs of SpMM's ladder.

use crate::assert_all_run;
use crate::operands::skewed;
use warprow::reference::WholeProduct;
use warprow::{Spmm, SpmmKernel, SpmmOptions, SpmmTuning};

#[test]
fn every_entry_point_runs() {
    let product = WholeProduct::<f32>::new(skewed().view(), 45, 1);
    let x = product.x();
    assert_all_run("spmm_ladder", |device| {
        let rungs = SpmmKernel::ALL.iter();
        for &kernel in rungs.filter(|kernel| !kernel.capabilities().general) {
            // Slices that split the long row.
            let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel).task_size(64));
            let plan = Spmm::plan(device, product.a(), options).unwrap();
            let checked = product.verify(plan.multiply(x.view()).unwrap().view());
            assert!(checked.ok(), "{plan}: {checked}");
        }
    });
}
