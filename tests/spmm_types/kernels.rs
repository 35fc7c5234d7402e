//! What each kernel can do: every variant is there, and what is not is refused.

use warprow::spmm::SpmmError;
use warprow::spmm::{Ending, Shape};
use warprow::{Device, Reduction, Spmm, SpmmElement, SpmmKernel, SpmmOptions, bf16, f16, generate};

fn every_shape_has_an_instance<E: SpmmElement>() {
    for &kernel in SpmmKernel::ALL {
        for reduction in Reduction::ALL {
            if !kernel.capabilities().has::<E>(reduction) {
                continue;
            }
            for features in (1..300).chain([602, 1024, 4099]) {
                for lanes in [8, 16, 32] {
                    let shape = Shape {
                        rows: 1000,
                        items: 500,
                        cols: 700,
                        features,
                        lanes,
                    };
                    // It panics where the kernel is not instantiated.
                    let is_own_sum = size_of::<E>() == size_of::<E::Sum>();
                    let added = is_own_sum.then_some(Ending::Added);
                    for ending in [Ending::Plain, Ending::AnyOrder, Ending::Scaled]
                        .into_iter()
                        .chain(added)
                    {
                        let _ = kernel.handle::<E>(shape, reduction, ending);
                    }
                }
            }
        }
    }
}

#[test]
fn every_variant_that_a_launch_may_choose_is_instantiated() {
    in_every_type!(every_shape_has_an_instance());
}

#[test]
fn a_kernel_that_cannot_do_what_is_asked_for_is_an_error_that_says_what_it_can() {
    let device = Device::emulator(Default::default());
    let a = generate::uniform::<f32>(5, 4, 6, 1).unwrap();
    let narrow = generate::uniform::<f16>(5, 4, 6, 1).unwrap();
    for &kernel in SpmmKernel::ALL {
        let capabilities = kernel.capabilities();
        let options = SpmmOptions {
            kernel: Some(kernel),
            ..SpmmOptions::default()
        };
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
        let max = SpmmOptions {
            reduction: Reduction::Max,
            ..options
        };
        let error = Spmm::plan(&device, a.view(), max).err();
        assert_eq!(refusal(error, "max in f32"), !capabilities.general);
        let error = Spmm::plan(&device, narrow.view(), options).err();
        assert_eq!(refusal(error, "sum in f16"), !capabilities.general);
        let deterministic = SpmmOptions {
            deterministic: true,
            ..options
        };
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
