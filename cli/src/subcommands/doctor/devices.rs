//! The devices: which there are, why others do not serve, and a product on each.

use super::checks::Check;
use crate::commands::Global;
use warprow::device::{CudaUnavailable, Device, EmulatorOptions, Selector};
use warprow::reference::WholeProduct;
use warprow::{Error, Spmm, SpmmOptions, generate};

/// More devices than any machine has.
const MOST_DEVICES: u32 = 64;

/// The emulator, and every CUDA device.
pub fn all(global: &Global, checks: &mut Vec<Check>) {
    let emulator = Device::emulator(EmulatorOptions::default());
    checks.push(with_product("emulator", &emulator));
    for ordinal in 0..MOST_DEVICES {
        match Device::cuda(ordinal) {
            Ok(device) => {
                let name = format!("cuda:{ordinal}");
                checks.push(with_product(&name, &device));
            }
            // One after the last.
            Err(CudaUnavailable::NoSuchOrdinal { .. }) if ordinal > 0 => {
                if let Ok(Selector::Cuda(Some(wanted))) = global.selector()
                    && wanted > ordinal
                    && let Err(reason) = Device::cuda(wanted)
                {
                    checks.push(no_cuda(global, wanted, &reason));
                }
                break;
            }
            Err(reason) => {
                let goes_on = matches!(reason, CudaUnavailable::TooOld { .. });
                checks.push(no_cuda(global, ordinal, &reason));
                if !goes_on {
                    break;
                }
            }
        }
    }
}

/// A device that does not serve: a fault if it is asked for.
fn no_cuda(global: &Global, ordinal: u32, reason: &CudaUnavailable) -> Check {
    let insists = matches!(global.selector(), Ok(Selector::Cuda(_)));
    let advice = match reason {
        CudaUnavailable::NotBuilt if cfg!(target_os = "linux") => {
            "build with the feature `cuda`".to_owned()
        }
        CudaUnavailable::NotBuilt => "use Linux for GPUs; the emulator works everywhere".to_owned(),
        CudaUnavailable::NoDriver { .. } => {
            "on a machine with an NVIDIA GPU, install the driver (Debian: nvidia-driver; in a container: run it with \
             --gpus all); `nvidia-smi` then lists the GPU"
                .to_owned()
        }
        CudaUnavailable::NoDevice { visible: Some(_) }
        | CudaUnavailable::NoSuchOrdinal { visible: Some(_), .. } => {
            "unset CUDA_VISIBLE_DEVICES, or set it to the numbers that `nvidia-smi -L` lists".to_owned()
        }
        CudaUnavailable::NoDevice { .. } => {
            "`nvidia-smi` lists the GPUs that the driver sees; in a container, run it with --gpus all".to_owned()
        }
        CudaUnavailable::TooOld { .. } => {
            "use a GPU of compute capability 8.0 or newer (Ampere and later)".to_owned()
        }
        CudaUnavailable::DriverTooOld(error) => {
            format!("install a driver for CUDA {} or newer", error.wanted)
        }
        _ => "`nvidia-smi` and the kernel's log (dmesg | grep -i nvrm) tell more".to_owned(),
    };
    let name = format!("cuda:{ordinal}");
    match insists {
        true => Check::fails(name, reason.to_string(), advice),
        false => Check::missing(name, reason.to_string(), advice),
    }
}

/// A product on the device: of small whole numbers, so every entry must be exact.
fn with_product(name: &str, device: &Device) -> Check {
    let product = || -> Result<bool, Error> {
        let a = generate::uniform::<f32>(300, 200, 2_000, 1)?;
        let whole = WholeProduct::<f32>::new(a.view(), 33, 1);
        let spmm = Spmm::plan(device, whole.a(), SpmmOptions::default())?;
        let y = spmm.multiply(whole.x().view())?;
        Ok(whole.verify(y.view()).ok())
    };
    match product() {
        Ok(true) => Check::ok(name, format!("{device}; a test product is right")),
        Ok(false) => Check::fails(
            name,
            format!("{device}; a test product is WRONG"),
            "this must not happen: please report it, with the output of `warprow doctor`",
        ),
        Err(error) => Check::fails(
            name,
            format!("{device}; a test product fails: {error}"),
            "look for other programs that use the device, and for messages in the kernel's log (dmesg)",
        ),
    }
}
