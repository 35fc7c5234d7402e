//! Matrices of more elements than 32 bits count, on a GPU with the memory.

use super::whole_dense;
use sprs::CsMatI;
use support::cuda;
use warprow::{Spmm, SpmmOptions, f16};

#[test]
fn x_and_y_of_more_than_2_to_the_32_elements_are_reached_to_their_ends() {
    let wanted: u64 = 12 << 30;
    let device = match cuda() {
        Some(device) => device,
        None => return println!("skipped: X of 8.6 GB wants a GPU"),
    };
    let free = device.memory().unwrap().map_or(0, |memory| memory.free);
    if free < wanted {
        return println!("skipped: {wanted} bytes wanted on {device}, {free} are free");
    }
    // The first product writes N x 64 elements, all of its rows but five zero; the second one reads those five.
    let (n, features) = ((1_usize << 26) + 1000, 64);
    let rows = [0, 5, n / 2, n - 600, n - 1];
    let mut indptr = vec![0_u32; n + 1];
    for (k, row) in rows.into_iter().enumerate() {
        indptr[row + 1..].fill(k as u32 + 1);
    }
    let scatter = CsMatI::<f16, u32, u32>::new(
        (n, 5),
        indptr,
        vec![0, 1, 2, 3, 4],
        vec![f16::from_f32(3.0); 5],
    );
    let gather = CsMatI::<f16, u32, u32>::new(
        (3, n),
        vec![0, 2, 3, 6],
        [0, n - 1, n - 600, 5, n / 2, n - 2]
            .map(|col| col as u32)
            .to_vec(),
        [1.0, -2.0, 1.0, 1.0, 2.0, 1.0].map(f16::from_f32).to_vec(),
    );
    let x = whole_dense::<f16>(5, features);
    let x_device = device.upload(x.as_slice().unwrap()).unwrap();
    let mut between = device.uninitialized::<f16>(n * features).unwrap();
    let mut y_device = device.uninitialized::<f16>(3 * features).unwrap();
    let plan = Spmm::plan(&device, scatter.view(), SpmmOptions::default()).unwrap();
    plan.run(&x_device, features, &mut between).unwrap();
    let plan = Spmm::plan(&device, gather.view(), SpmmOptions::default()).unwrap();
    plan.run(&between, features, &mut y_device).unwrap();
    let y = y_device.download().unwrap();
    let of = |row: usize, j: usize| 3.0 * x[(row, j)].to_f32();
    for j in 0..features {
        let expected = [
            of(0, j) - 2.0 * of(4, j),
            of(3, j),
            of(1, j) + 2.0 * of(2, j),
        ];
        for (row, expected) in expected.into_iter().enumerate() {
            assert_eq!(
                y[row * features + j].to_f32(),
                expected,
                "row {row}, feature {j}"
            );
        }
    }
}
