//! What the plans choose for a matrix, and why.

use super::statistics::Statistics;
use crate::commands::Global;
use crate::failure::Result;
use crate::output::Out;
use crate::progress;
use crate::terminal::count;
use serde_json::json;
use warprow::device::{DeviceProfile, EmulatorOptions};
use warprow::{CsrMatrix, Device, DeviceCsr, Spgemm, SpgemmOptions, Spmm, SpmmOptions};

/// Products of A x A up to which the emulator plans it: some seconds.
const MOST_EMULATED_PRODUCTS: u64 = 1 << 22;

/// Nonzeros up to which the emulator plans a product.
const MOST_EMULATED_NONZEROS: usize = 1 << 22;

/// Plans the products. Without a GPU and a profile, the emulator makes the plans of an H200.
pub fn show(
    a: &CsrMatrix<f32>,
    found: &Statistics,
    features: &[u32],
    global: &Global,
    out: &mut Out,
) -> Result<()> {
    let (device, _) = Device::select_with_reason(global.selector()?)?;
    let emulated = device.is_emulator();
    let device = match emulated && device.properties().rates.is_none() {
        true => Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default()),
        false => device,
    };
    out.line("device", &device)?;
    out.value("device", device.name());
    if emulated && a.nnz() > MOST_EMULATED_NONZEROS {
        let most = count(MOST_EMULATED_NONZEROS);
        return out.paragraph(
            "plans",
            format!("none: the emulator plans up to {most} nonzeros"),
        );
    }
    let mut plans = Vec::new();
    for &features in features {
        let options = SpmmOptions::new().features(features);
        let spmm = progress::emulated(&device, "planning", || {
            Spmm::plan(&device, a.view(), options)
        })?;
        out.paragraph("plan", &spmm)?;
        let predicted = spmm
            .prediction(features)
            .map(|(time, bound)| json!({ "seconds": time.as_secs_f64(), "bound_by": bound }));
        plans.push(json!({
            "operation": "spmm",
            "features": features,
            "kernel": spmm.kernel().name(),
            "predicted": predicted,
            "plan": spmm.to_string(),
        }));
    }
    if let Some(square) = &found.square {
        if emulated && square.products > MOST_EMULATED_PRODUCTS {
            let most = count(MOST_EMULATED_PRODUCTS);
            out.paragraph(
                "plan",
                format!("none of A x A: the emulator plans up to {most} products"),
            )?;
        } else {
            let on_device = DeviceCsr::upload(&device, a.view())?;
            let pattern = on_device.pattern();
            let spgemm = progress::emulated(&device, "planning A x A", || {
                Spgemm::<f32>::symbolic(pattern, pattern, SpgemmOptions::default())
            })?;
            out.paragraph("plan", &spgemm)?;
            plans.push(json!({ "operation": "spgemm", "plan": spgemm.to_string() }));
        }
    }
    out.value("plans", plans);
    Ok(())
}
