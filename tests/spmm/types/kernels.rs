//! What each kernel can do, and that what it cannot do is refused.

use warprow::spmm::SpmmError;
use warprow::{Device, Reduction, Spmm, SpmmKernel, SpmmOptions, SpmmTuning, f16, generate};

#[test]
fn a_kernel_that_cannot_do_what_is_asked_for_is_an_error_that_says_what_it_can() {
    let device = Device::emulator(Default::default());
    let a = generate::uniform::<f32>(5, 4, 6, 1).unwrap();
    let narrow = generate::uniform::<f16>(5, 4, 6, 1).unwrap();
    for &kernel in SpmmKernel::ALL {
        let capabilities = kernel.capabilities();
        let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel));
        let refusal = |error: Option<SpmmError>, wanted: &str| match error {
            Some(error @ SpmmError::Kernel { .. }) => {
                let text = error.to_string();
                assert!(
                    text.contains(kernel.name()) && text.contains(wanted),
                    "{text}"
                );
                assert!(text.contains(&capabilities.to_string()), "{text}");
                true
            }
            Some(error) => panic!("{error}"),
            None => false,
        };
        let max = options.reduction(Reduction::Max);
        let error = Spmm::plan(&device, a.view(), max).err();
        assert_eq!(refusal(error, "max in f32"), !capabilities.extrema);
        let error = Spmm::plan(&device, narrow.view(), options).err();
        assert_eq!(refusal(error, "sum in f16"), !capabilities.general);
        let deterministic = options.deterministic(true);
        let error = Spmm::plan(&device, a.view(), deterministic).err();
        assert_eq!(refusal(error, "the same bits"), !capabilities.deterministic);

        let plan = Spmm::plan(&device, a.view(), options).unwrap();
        let x = device.zeros::<f32>(8).unwrap();
        let mut y = device.zeros::<f32>(10).unwrap();
        let error = plan.run_scaled(2.0, &x, 2, 0.0, &mut y).err();
        assert_eq!(
            refusal(error, "alpha 2.0 and beta 0.0"),
            !capabilities.general
        );
        plan.run_scaled(1.0, &x, 2, 0.0, &mut y).unwrap();
    }
    let general = SpmmKernel::ALL.iter().filter(|k| k.capabilities().general);
    let atomic = SpmmKernel::ALL
        .iter()
        .filter(|k| !k.capabilities().deterministic);
    assert!(general.count() >= 1 && atomic.count() >= 1);
}
