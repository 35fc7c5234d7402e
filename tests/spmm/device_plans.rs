//! Plans of matrices that are on a device, and new values for a plan: the same bits as a plan of the host's matrix.

use ndarray::Array2;
use sprs::CsMatI;
use std::iter;
use std::sync::Arc;
use support::{devices, is_in_turn};
use warprow::operand::OperandError;
use warprow::spmm::SpmmError;
use warprow::{
    CsrMatrix, Device, DeviceCsr, Reduction, RowOrder, Scalar, SpgemmOptions, Spmm, SpmmElement,
    SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16, generate, reference, spgemm,
};

const ROWS: u32 = 110;
const COLS: u32 = 90;
const FEATURES: usize = 20;

/// Every way in which a plan reorders nonzeros or changes values, alone and with others.
fn all_options<E: SpmmElement>() -> Vec<SpmmOptions> {
    let reductions = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::Min,
        Reduction::Max,
    ];
    let mut all: Vec<SpmmOptions> = reductions
        .iter()
        .flat_map(|&reduction| {
            let options = SpmmOptions::new().reduction(reduction);
            let cut = options.tuning(SpmmTuning::new().kernel(SpmmKernel::Vector).task_size(24));
            [
                options,
                cut,
                cut.map_tuning(|tuning| tuning.order(RowOrder::Clustered)),
                cut.map_tuning(|tuning| tuning.column_blocks(3)),
                cut.map_tuning(|tuning| tuning.order(RowOrder::FirstColumn).column_blocks(2)),
            ]
        })
        .collect();
    let by_kernel = SpmmKernel::ALL.iter().filter(|kernel| {
        // The others add by atomics: their bits depend on the order of threads.
        let capabilities = kernel.capabilities();
        capabilities.deterministic && capabilities.has::<E>(Reduction::Sum)
    });
    // f32 stands for f64 too, and f16, whose values are made wider, for bf16.
    let by_kernel = by_kernel.filter(|_| ["f32", "f16"].contains(&E::NAME));
    all.extend(
        by_kernel.map(|&kernel| SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel))),
    );
    let transposed: Vec<_> = all.iter().map(|options| options.transpose(true)).collect();
    all.extend(transposed);
    all
}

/// A matrix with a long row and empty ones, and other values for its nonzeros.
fn matrices<V: Scalar>() -> [CsrMatrix<V>; 2] {
    let few = generate::uniform::<f64>(ROWS - 1, COLS, 500, 3).unwrap();
    let one = generate::uniform::<f64>(1, COLS, 85, 4).unwrap();
    let a = sprs::vstack(&[few.view(), one.view()]);
    let other = (0..a.nnz()).map(|k| V::from_f64((k % 61) as f64 / 16.0 - 1.75));
    let structure = (a.indptr().raw_storage().to_vec(), a.indices().to_vec());
    [
        a.map(|&value| V::from_f64(value)),
        CsMatI::new(a.shape(), structure.0, structure.1, other.collect()),
    ]
}

fn product<E: SpmmElement>(plan: &Spmm<E>) -> Vec<u64> {
    let x = generate::dense::<E>(plan.cols(), FEATURES, 9).unwrap();
    let y = plan
        .multiply(x.view())
        .unwrap_or_else(|error| panic!("{plan}: {error}"));
    y.iter().map(|y| y.to_f64().to_bits()).collect()
}

fn plans_agree<E: SpmmElement>() {
    let [a, _] = matrices::<E::Sum>();
    for (number, device) in devices().into_iter().enumerate() {
        let there = DeviceCsr::upload(&device, a.view()).unwrap();
        for (turn, options) in all_options::<E>().into_iter().enumerate() {
            if !is_in_turn(&device, number, turn) {
                continue;
            }
            let of_host = Spmm::<E>::plan_wide(&device, a.view(), options).unwrap();
            let of_device = Spmm::<E>::plan_device(&there, options).unwrap();
            assert_eq!(
                (of_device.rows(), of_device.cols()),
                (of_host.rows(), of_host.cols())
            );
            assert_eq!(
                product(&of_device),
                product(&of_host),
                "{options:?}: {of_device}"
            );
        }
        assert!(
            there.download().unwrap() == a,
            "a plan has changed its matrix"
        );
    }
}

#[test]
fn a_plan_of_a_matrix_on_the_device_has_the_bits_of_a_plan_of_the_host() {
    plans_agree::<f32>();
    plans_agree::<f64>();
    plans_agree::<f16>();
    plans_agree::<bf16>();
}

fn new_values_are_those_of_a_new_plan<E: SpmmElement>() {
    let [a, other] = matrices::<E>();
    let wide =
        |a: &CsrMatrix<E>| -> CsrMatrix<E::Sum> { a.map(|value| E::Sum::from_f64(value.to_f64())) };
    for (number, device) in devices().into_iter().enumerate() {
        let other_values = device.upload(wide(&other).data()).unwrap();
        for (turn, options) in all_options::<E>()
            .into_iter()
            .map(|options| options.updatable(true))
            .enumerate()
        {
            if !is_in_turn(&device, number, turn) {
                continue;
            }
            let rows = [&a, &other].map(Clone::clone);
            // Each type with the default options, and one with all: the order of the host's values is the same code.
            let has_columns = turn == 0 || E::NAME == "f32";
            let columns = has_columns.then(|| [&a, &other].map(CsMatI::to_csc));
            for [a, other] in iter::once(rows).chain(columns) {
                let mut plan = Spmm::plan(&device, a.view(), options).unwrap();
                let [old, new] = [&a, &other].map(|a| {
                    product(&Spmm::plan(&device, a.view(), options.updatable(false)).unwrap())
                });
                assert_ne!(old, new, "{plan}");
                assert_eq!(product(&plan), old, "before: {plan}");
                plan.set_values(other.data()).unwrap();
                assert_eq!(product(&plan), new, "from the host: {plan}");
                plan.set_values_wide(wide(&a).data()).unwrap();
                assert_eq!(product(&plan), old, "the old ones: {plan}");
                if other.is_csr() {
                    plan.set_values_device(&other_values).unwrap();
                    assert_eq!(product(&plan), new, "from the device: {plan}");
                }
            }
        }
    }
}

#[test]
fn new_values_give_the_bits_of_a_new_plan_in_every_type() {
    new_values_are_those_of_a_new_plan::<f32>();
    new_values_are_those_of_a_new_plan::<f64>();
    new_values_are_those_of_a_new_plan::<f16>();
    new_values_are_those_of_a_new_plan::<bf16>();
}

#[test]
fn a_recorded_run_sees_the_values_that_are_set_after_it_and_they_can_be_recorded_too() {
    let [a, other] = matrices::<f32>();
    let options = SpmmOptions::new().updatable(true).reduction(Reduction::Min);
    for device in devices() {
        let [old, new] =
            [&a, &other].map(|a| product(&Spmm::<f32>::plan(&device, a.view(), options).unwrap()));
        let x = generate::dense::<f32>(COLS as usize, FEATURES, 9).unwrap();
        let x = device.upload(x.as_slice().unwrap()).unwrap();
        let mut y = device.zeros::<f32>(ROWS as usize * FEATURES).unwrap();
        let mut plan = Spmm::<f32>::plan(&device, a.view(), options).unwrap();
        let values = device.upload(other.data()).unwrap();
        let run = device.record(|| plan.run(&x, FEATURES, &mut y)).unwrap();
        let set = device.record(|| plan.set_values_device(&values)).unwrap();
        let bits = |y: &warprow::DeviceBuffer<f32>| -> Vec<u64> {
            let y = y.download().unwrap();
            y.iter().map(|&y| f64::from(y).to_bits()).collect()
        };
        // SAFETY: all buffers are alive, and nobody else uses them.
        unsafe {
            run.launch().unwrap();
            assert_eq!(bits(&y), old);
            set.launch().unwrap();
            run.launch().unwrap();
        }
        assert_eq!(bits(&y), new);
    }
}

#[test]
fn values_that_do_not_fit_are_refused_and_change_nothing() {
    let [a, _] = matrices::<f32>();
    let elsewhere = Device::emulator(Default::default());
    for device in devices() {
        let mut plan = Spmm::<f32>::plan(&device, a.view(), SpmmOptions::new()).unwrap();
        let error = plan.set_values(a.data()).unwrap_err();
        assert!(matches!(error, SpmmError::NotUpdatable), "{error}");
        let options = SpmmOptions::new().updatable(true);
        let mut plan = Spmm::<f32>::plan(&device, a.view(), options).unwrap();
        let before = product(&plan);
        let error = plan.set_values(&a.data()[1..]).unwrap_err();
        let is_length = |error| matches!(error, SpmmError::Operand(OperandError::Length { .. }));
        assert!(is_length(error));
        let short = device.zeros::<f32>(a.nnz() + 1).unwrap();
        assert!(is_length(plan.set_values_device(&short).unwrap_err()));
        let foreign = elsewhere.upload(a.data()).unwrap();
        let error = plan.set_values_device(&foreign).unwrap_err();
        assert!(
            matches!(error, SpmmError::Operand(OperandError::OtherDevice { .. })),
            "{error}"
        );
        assert_eq!(product(&plan), before);
    }
}

#[test]
fn one_upload_serves_a_plan_and_the_transposed_plan_and_later_values_do_not_reach_them() {
    let [a, other] = matrices::<f32>();
    for device in devices() {
        let mut there = DeviceCsr::upload(&device, a.view()).unwrap();
        let plan = Spmm::<f32>::plan_device(&there, SpmmOptions::new()).unwrap();
        let transposed = SpmmOptions::new().transpose(true);
        let transposed = Spmm::<f32>::plan_device(&there, transposed).unwrap();
        let before = [product(&plan), product(&transposed)];
        let copy = there.clone();
        there
            .values_mut()
            .unwrap()
            .copy_from_slice(other.data())
            .unwrap();
        assert!(there.download().unwrap() == other);
        assert!(copy.download().unwrap() == a);
        assert!(Arc::ptr_eq(copy.pattern(), there.pattern()));
        assert_eq!([product(&plan), product(&transposed)], before);
        let address = there.values().read_only().address();
        there
            .values_mut()
            .unwrap()
            .copy_from_slice(a.data())
            .unwrap();
        assert_eq!(
            there.values().read_only().address(),
            address,
            "not shared any more"
        );
    }
}

#[test]
fn a_product_of_spgemm_enters_spmm_without_the_host() {
    let a = generate::uniform::<f32>(90, 90, 500, 3).unwrap();
    let whole = a.map(|value| (value * 4.0).round());
    for device in devices() {
        let there = DeviceCsr::upload(&device, whole.view()).unwrap();
        let square = spgemm::multiply(&there, &there, SpgemmOptions::new())
            .unwrap()
            .c;
        let plan = Spmm::<f32>::plan_device(&square, SpmmOptions::new()).unwrap();
        let x = Array2::from_shape_fn((90, 5), |(i, j)| ((i * 7 + j) % 5) as f32 - 2.0);
        let y = plan.multiply(x.view()).unwrap();
        let verification =
            reference::verify_spmm(square.download().unwrap().view(), x.view(), y.view());
        assert!(verification.ok(), "{plan}: {verification}");
        let once = reference::spmm(whole.view(), x.view()).mapv(|y| y as f32);
        let twice = reference::spmm(whole.view(), once.view());
        assert_eq!(y.mapv(f64::from), twice);
    }
}
