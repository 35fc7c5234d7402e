//! Teams of `in_step`: rows that all warps of a block compute, because they are long or because they fill the device.

use sprs::CsMatI;
use support::devices;
use warprow::device::{Device, DeviceProfile, EmulatorOptions};
use warprow::reference::WholeProduct;
use warprow::{Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16};

/// Rows of 128 to 131 nonzeros, the first one empty, and the last but one of `long`.
fn structure(rows: usize, long: usize) -> CsMatI<(), u32, u32> {
    let cols = long.max(140);
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    for row in 0..rows {
        let length = match row {
            0 => 0,
            _ if row + 2 == rows => long,
            _ => 128 + row % 4,
        };
        let first = row * 5 % (cols - length + 1);
        indices.extend((first..first + length).map(|col| col as u32));
        indptr.push(indices.len() as u32);
    }
    let data = vec![(); indices.len()];
    CsMatI::new((rows, cols), indptr, indices, data)
}

fn in_step() -> SpmmOptions {
    SpmmOptions::new().tuning(SpmmTuning::new().kernel(SpmmKernel::InStep))
}

fn h200() -> Device {
    Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default())
}

/// Multiplies exactly, and returns what the plan says.
fn multiplies<E: SpmmElement>(
    device: &Device,
    a: &CsMatI<(), u32, u32>,
    features: usize,
    options: SpmmOptions,
) -> String {
    let whole = WholeProduct::<E>::new(a.view(), features, 3);
    let plan = Spmm::plan(device, whole.a(), options).unwrap();
    let checked = whole.verify(plan.multiply(whole.x().view()).unwrap().view());
    assert!(checked.ok(), "{checked}: {plan}");
    plan.to_string()
}

#[test]
fn rows_of_any_number_and_length_are_exact() {
    for device in devices() {
        for (rows, long) in [(2, 1), (3, 900), (5, 0), (8, 33), (131, 2_000)] {
            let a = structure(rows, long);
            for features in [3, 4, 12, 16, 28, 36, 64, 132] {
                multiplies::<f32>(&device, &a, features, in_step());
            }
            multiplies::<f64>(&device, &a, 16, in_step());
            multiplies::<f16>(&device, &a, 16, in_step());
            multiplies::<bf16>(&device, &a, 24, in_step());
        }
    }
}

#[test]
fn rows_past_a_whole_wave_have_teams_if_the_plan_knows_the_features() {
    // An H200 runs 1056 blocks of four rows at the same time.
    let a = structure(4_300, 3_000);
    let knows = in_step().features(12);
    let text = multiplies::<f32>(&h200(), &a, 12, knows);
    assert!(
        text.contains("1 rows of more than 256 nonzeros with 4 each, and 79 others"),
        "{text}"
    );
    let text = multiplies::<f32>(&h200(), &a, 12, in_step());
    assert!(text.contains("and 923 others"), "{text}");
}

#[test]
fn all_rows_of_a_matrix_for_half_a_device_have_teams() {
    let text = multiplies::<f32>(&h200(), &structure(300, 200), 20, in_step().features(20));
    assert!(text.contains("and 300 others"), "{text}");
}
