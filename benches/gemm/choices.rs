//! The products of this crate that a run times: the plan's own, those of kernels that are asked for, and a sweep over
//! all instances.

use crate::gemm::options::Options;
use cuda_std::kernel::instances;
use warprow::device::Device;
use warprow::gemm::GemmElement;
use warprow::log_softmax::SoftmaxKernel;
use warprow::{GemmKernel, GemmOptions, GemmTuning};

/// The name of the product whose instance the plan chooses.
pub const OURS: &str = "warprow";

/// A product: its name in the results, and the options of its plan.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The name.
    pub name: String,
    /// What is not left to the plan.
    pub options: GemmOptions,
}

impl Choice {
    /// Whether the plan chooses by itself. Kernels and instances that are asked for may refuse a product.
    pub fn is_own(&self) -> bool {
        self.name == OURS
    }
}

/// The plan's own product and those that the options ask for, for an X with `depth` columns. Some may not suit the
/// number of columns of W: their plans are refused.
pub fn choices<T: GemmElement>(options: &Options, device: &Device, depth: usize) -> Vec<Choice> {
    let own = Choice {
        name: OURS.to_owned(),
        options: GemmOptions::default(),
    };
    let of_kernel = |kernel: GemmKernel| Choice {
        name: kernel.name().to_owned(),
        options: GemmOptions::new()
            .tf32(true)
            .tuning(GemmTuning::new().kernel(kernel)),
    };
    let capability = device.properties().compute_capability;
    let runs = |kernel: &GemmKernel| {
        kernel.refusal::<T>(depth as u32).is_none()
            && (kernel.required_arch()).includes((capability.major, capability.minor))
    };
    let kernels = options.kernels().into_iter().filter(runs).map(of_kernel);
    let mut choices: Vec<_> = [own].into_iter().chain(kernels).collect();
    let is_swept = |kernel: &GemmKernel| options.sweep && kernel.folder() == "product";
    for kernel in GemmKernel::ALL
        .iter()
        .copied()
        .filter(runs)
        .filter(is_swept)
    {
        let prefix = format!("gemm_{}_", kernel.name());
        let of_instance = |name: &'static str| Choice {
            name: name.to_owned(),
            options: of_kernel(kernel)
                .options
                .map_tuning(|tuning| tuning.instance(name)),
        };
        let mut names: Vec<_> = instances()
            .map(|instance| instance.name())
            .filter(|name| name.starts_with(&prefix))
            .collect();
        names.sort_unstable();
        choices.extend(names.into_iter().map(of_instance));
    }
    choices
}

/// The kernels of LogSoftmax to run beside the plan's own: all of them in a sweep.
pub fn softmax_kernels(options: &Options) -> &'static [SoftmaxKernel] {
    if options.sweep {
        &SoftmaxKernel::ALL
    } else {
        &[]
    }
}
