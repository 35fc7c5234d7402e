//! Each allocation of each operation fails: the operation returns an error, leaks nothing, leaves its operands as they
//! were, and works when it is tried again.

use ndarray::Array2;
use support::cuda;
use warprow::device::{DeviceError, EmulatorOptions, Selector};
use warprow::gcn::GcnLayer;
use warprow::gemm::GemmOptions;
use warprow::log_softmax::LogSoftmax;
use warprow::reference::{Operation, verify_spgemm};
use warprow::spgemm::{SpgemmKernel, multiply, multiply_unsorted};
use warprow::spmm::RowOrder;
use warprow::{
    CsrMatrix, Device, DeviceBuffer, DeviceCsr, Error, Gcn, GcnOptions, Gemm, Reduction, Spgemm,
    SpgemmOptions, SpgemmTuning, Spmm, SpmmKernel, SpmmOptions, SpmmTuning, generate, scan, sort,
    spgemm,
};

/// Devices that no other test uses meanwhile: failures and bytes are those of a device and its clones.
fn own_devices() -> Vec<Device> {
    let mut devices = vec![Device::emulator(EmulatorOptions::default())];
    if cuda().is_some() {
        devices.push(Device::select(Selector::from_environment().unwrap()).unwrap());
    }
    devices
}

/// Calls `operation` with its first allocation failing, then with its second, until none fails.
fn each_allocation_fails<E: Into<Error>>(
    device: &Device,
    what: &str,
    mut operation: impl FnMut() -> Result<(), E>,
) {
    let before = device.allocated_bytes();
    for number in 1.. {
        device.fail_allocation(number);
        let result = operation().map_err(Into::into);
        let has_failed = device.fail_allocation(0) == 0;
        let which = format!("{what} with allocation {number} failing on {device}");
        assert_eq!(device.allocated_bytes(), before, "leaked: {which}");
        match result {
            // Caches may be left out.
            Ok(()) if has_failed => {}
            Ok(()) => {
                assert!(number > 1, "nothing is allocated: {which}");
                return;
            }
            Err(Error::Device(DeviceError::OutOfMemory { .. })) => assert!(has_failed, "{which}"),
            Err(error) => panic!("{which}: {error}"),
        }
    }
}

/// Calls `run` until it does not fail, which is at the second time at the latest. Returns how it failed at first.
fn retried<E: std::fmt::Debug>(mut run: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let first = run();
    if first.is_err() {
        run().unwrap();
    }
    first
}

fn holds(buffer: &DeviceBuffer<f32>, wanted: &[f32]) -> bool {
    buffer.download().unwrap() == wanted
}

/// Short rows, empty ones, and one with a nonzero in each column.
fn matrix() -> CsrMatrix<f32> {
    let mut rows = sprs::TriMatI::<f32, u32>::new((60, 70));
    for row in 0..60_u32 {
        let length = if row == 17 { 70 } else { row % 6 };
        for k in 0..length {
            let column = if row == 17 {
                k
            } else {
                (7 * row + 11 * k) % 70
            };
            rows.add_triplet(row as usize, column as usize, (k % 5) as f32 - 1.5);
        }
    }
    rows.to_csr()
}

#[test]
fn conversions_scans_and_sorts() {
    let a = matrix();
    let counts: Vec<u32> = (0..9000).map(|i| i % 7).collect();
    for device in own_devices() {
        each_allocation_fails(&device, "upload by columns", || {
            let uploaded = DeviceCsr::upload(&device, a.to_csc().view())?;
            assert!(uploaded.download().unwrap() == a);
            Ok::<_, Error>(())
        });
        let on_device = DeviceCsr::upload(&device, a.view()).unwrap();
        each_allocation_fails(&device, "transpose", || {
            let transposed = on_device.transpose()?;
            assert!(transposed.download().unwrap() == a.transpose_view().to_csr());
            Ok::<_, Error>(())
        });
        each_allocation_fails(&device, "by column", || on_device.by_column().map(drop));
        each_allocation_fails(&device, "row of each", || {
            on_device.pattern().row_of_each().map(drop)
        });
        assert!(on_device.download().unwrap() == a);
        let mut buffers = [(); 2].map(|()| device.upload(&counts).unwrap());
        each_allocation_fails(&device, "scan", || {
            let result = scan::exclusive_scan(&device, &mut buffers[0]);
            if result.is_err() {
                assert!(buffers[0].download().unwrap() == counts);
            }
            result.map(drop)
        });
        let [keys, values] = &mut buffers;
        keys.copy_from_slice(&counts).unwrap();
        each_allocation_fails(&device, "sort", || {
            let result = sort::sort_pairs(&device, keys, values, 3);
            if result.is_err() {
                assert!(keys.download().unwrap() == counts);
                assert!(values.download().unwrap() == counts);
            }
            result
        });
        assert!(keys.download().unwrap().is_sorted());
    }
}

/// Plans and runs a product with an alpha and a beta, if the kernel has them.
fn spmm_survives(device: &Device, a: &CsrMatrix<f32>, options: SpmmOptions) {
    const FEATURES: usize = 12;
    let x = generate::dense::<f32>(a.cols(), FEATURES, 1).unwrap();
    let y = generate::dense::<f32>(a.rows(), FEATURES, 2).unwrap();
    let (x_list, y_list) = (x.as_slice().unwrap(), y.as_slice().unwrap());
    each_allocation_fails(device, &format!("{options:?}"), || {
        let plan = Spmm::<f32>::plan(device, a.view(), options)?;
        let (x_device, mut y_device) = (device.upload(x_list)?, device.upload(y_list)?);
        let is_general = plan.kernel().capabilities().general;
        let (alpha, beta) = if is_general { (2.0, 0.5) } else { (1.0, 0.0) };
        let result = retried(|| {
            let result = plan.run_scaled(alpha, &x_device, FEATURES, beta, &mut y_device);
            if result.is_err() && is_general {
                assert!(holds(&y_device, y_list), "Y has changed: {plan}");
            }
            result
        });
        assert!(holds(&x_device, x_list));
        let operation = Operation::new()
            .reduction(options.reduction)
            .alpha(alpha.into())
            .beta(beta.into())
            .y(y.view());
        let found = Array2::from_shape_vec(y.dim(), y_device.download().unwrap()).unwrap();
        let verification = operation.verify(a.view(), x.view(), found.view());
        assert!(verification.ok(), "{plan}: {verification}");
        result.map_err(Error::from)
    });
}

#[test]
fn spmm_by_every_kernel() {
    let a = matrix();
    for device in own_devices() {
        spmm_survives(&device, &a, SpmmOptions::default());
        for &kernel in SpmmKernel::ALL {
            let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel).task_size(16));
            spmm_survives(&device, &a, options);
        }
    }
}

#[test]
fn spmm_with_a_row_order_a_mean_and_blocks_of_columns() {
    // Rows that are split in each block of columns.
    let a = generate::banded::<f32>(60, 90, 20, 40, 9).unwrap();
    let cut = SpmmOptions::new().tuning(SpmmTuning::new().kernel(SpmmKernel::Vector).task_size(16));
    for device in own_devices() {
        for options in [
            cut.map_tuning(|tuning| tuning.column_blocks(3)),
            cut.reduction(Reduction::Mean)
                .map_tuning(|tuning| tuning.order(RowOrder::Clustered)),
            cut.reduction(Reduction::Min)
                .map_tuning(|tuning| tuning.order(RowOrder::FrequentColumn)),
        ] {
            spmm_survives(&device, &a, options);
        }
    }
}

#[test]
fn spgemm_by_phases_at_once_and_by_the_ladder() {
    let a = generate::rmat::<f32>(100, 1000, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    for device in own_devices() {
        let on_device = DeviceCsr::upload(&device, a.view()).unwrap();
        let assert_right = |c: &CsrMatrix<f32>| {
            let verification = verify_spgemm(a.view(), a.view(), c.view());
            assert!(verification.ok(), "{verification}");
        };
        // Long rows in chunks, of which a product map is made.
        let mut bin_limits = warprow::spgemm::BinLimits::new(227 << 10, 4);
        bin_limits.sort_products = 64;
        bin_limits.numeric_sort_products = 64;
        bin_limits.search_row_products = 0;
        bin_limits.window_span = 0;
        bin_limits.spread_products = 0;
        let options = SpgemmOptions::new().tuning(SpgemmTuning::new().bin_limits(bin_limits));
        each_allocation_fails(&device, "phases", || {
            let (pattern, values) = (on_device.pattern(), on_device.values());
            let phases = Spgemm::<f32>::symbolic(pattern, pattern, options)?;
            let mut c = device.uninitialized(phases.entries())?;
            let result = retried(|| phases.numeric_into(values, values, &mut c));
            assert_right(
                &DeviceCsr::new(phases.pattern().clone(), c)?
                    .download()
                    .unwrap(),
            );
            result.map_err(Error::from)
        });
        for drop_zeros in [false, true] {
            let options = SpgemmOptions::new().drop_zeros(drop_zeros);
            each_allocation_fails(&device, "the whole product", || {
                let c = multiply(&on_device, &on_device, options)?.c.download();
                if !drop_zeros {
                    assert_right(&c.unwrap());
                }
                Ok::<_, Error>(())
            });
        }
        each_allocation_fails(&device, "the product of the host", || {
            let product = spgemm(&device, a.view(), a.view(), SpgemmOptions::default())?;
            assert_right(&product.c);
            Ok::<_, Error>(())
        });
        for &kernel in SpgemmKernel::ALL {
            each_allocation_fails(&device, kernel.name(), || {
                let c = multiply_unsorted(kernel, &on_device, &on_device)?;
                assert_right(&c.download_sorted().unwrap());
                Ok::<_, Error>(())
            });
        }
        assert!(on_device.download().unwrap() == a);
    }
}

#[test]
fn dense_products_log_softmax_and_networks() {
    let x = generate::dense::<f32>(60, 12, 1).unwrap();
    let layer = |inputs, outputs, seed| GcnLayer {
        weights: generate::dense::<f32>(inputs, outputs, seed).unwrap(),
        bias: Some(
            generate::dense(1, outputs, seed + 1)
                .unwrap()
                .row(0)
                .to_owned(),
        ),
    };
    let layers = [layer(12, 16, 3), layer(16, 5, 5)];
    let graph = generate::banded::<f32>(60, 60, 30, 30, 7).unwrap();
    // Rows that are split, so that the first run allocates.
    let options =
        GcnOptions::new().tuning(SpmmTuning::new().kernel(SpmmKernel::Vector).task_size(16));
    for device in own_devices() {
        each_allocation_fails(&device, "gemm", || {
            let (w, bias) = (layers[0].weights.view(), layers[0].bias.as_ref());
            let bias = bias.map(|bias| bias.view());
            let plan = Gemm::plan(&device, w, bias, GemmOptions::default())?;
            plan.multiply(x.view()).map(drop)
        });
        each_allocation_fails(&device, "log_softmax", || {
            let bias = x.row(0);
            LogSoftmax::plan(&device, 12, Some(bias))?
                .apply(x.view())
                .map(drop)
        });
        let wanted = Gcn::plan(&device, graph.view(), &layers, options)
            .and_then(|mut gcn| gcn.classify(x.view()))
            .unwrap();
        each_allocation_fails(&device, "gcn", || {
            let mut gcn = Gcn::plan(&device, graph.view(), &layers, options)?;
            let x_device = device.upload(x.as_slice().unwrap())?;
            let mut y = device.uninitialized::<f32>(wanted.len())?;
            let result = retried(|| gcn.run(&x_device, &mut y));
            // The second run records, the third repeats.
            for _ in 0..3 {
                y.fill_bytes(0xff)?;
                gcn.run(&x_device, &mut y)?;
                assert!(holds(&y, wanted.as_slice().unwrap()));
            }
            assert!(holds(&x_device, x.as_slice().unwrap()));
            assert!(format!("{gcn:?}").contains("Recorded("), "{gcn:?}");
            result.map_err(Error::from)
        });
    }
}
