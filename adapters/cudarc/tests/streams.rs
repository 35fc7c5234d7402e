//! Operands of several streams of cudarc: each comes after the work before it, and before the work after it.

use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use std::sync::Arc;
use warprow::device::Selector;
use warprow::log_softmax::LogSoftmax;
use warprow::{Device, Spmm, SpmmOptions, generate};
use warprow_cudarc::{CudarcDevice, OperandError};

/// The GPU that tests run on; `None` without one, which is printed. With `WARPROW_DEVICE=cuda` that is an error.
fn gpu() -> Option<Arc<CudaContext>> {
    let selector = Selector::from_environment().unwrap();
    let (device, reason) = Device::select_with_reason(selector).unwrap();
    if device.is_emulator() {
        let reason = reason.map(|reason| reason.to_string()).unwrap_or_default();
        println!("skipped: cudarc needs a GPU. {reason}");
        return None;
    }
    let ordinal = match selector {
        Selector::Cuda(Some(ordinal)) => ordinal as usize,
        _ => 0,
    };
    Some(CudaContext::new(ordinal).unwrap())
}

const NODES: usize = 60_000;
const FEATURES: usize = 64;

fn numbers(stream: &Arc<CudaStream>, first: f32) -> CudaSlice<f32> {
    let numbers: Vec<f32> = (0..NODES * FEATURES)
        .map(|i| first + (i % 97) as f32)
        .collect();
    stream.clone_htod(&numbers).unwrap()
}

#[test]
fn runs_come_between_copies_of_other_streams() {
    let Some(context) = gpu() else { return };
    let [ours, theirs] = [(); 2].map(|()| context.new_stream().unwrap());
    let on = CudarcDevice::new(&ours).unwrap();
    let a = generate::uniform::<f32>(NODES as u32, NODES as u32, 2_000_000, 1).unwrap();
    let spmm = Spmm::plan(on.device(), a.view(), SpmmOptions::default()).unwrap();
    let beside = on.device().new_stream().unwrap();
    let (first, second) = (numbers(&theirs, 1.0), numbers(&theirs, 500.0));
    let zeros = theirs.alloc_zeros::<f32>(NODES * FEATURES).unwrap();
    let mut x = theirs.alloc_zeros::<f32>(NODES * FEATURES).unwrap();
    let mut y = theirs.alloc_zeros::<f32>(NODES * FEATURES).unwrap();
    let mut multiply = |input: &CudaSlice<f32>, on_beside: bool| {
        // The copies before and after are on another stream than the run.
        theirs.memcpy_dtod(&zeros, &mut x).unwrap();
        theirs.memcpy_dtod(input, &mut x).unwrap();
        on.scope(|operands| {
            let (x, y) = (operands.read(&x).unwrap(), operands.write(&mut y).unwrap());
            if on_beside {
                beside.scope(|| spmm.run(x, FEATURES, y).unwrap());
            } else {
                spmm.run(x, FEATURES, y).unwrap();
            }
        });
        theirs.memcpy_dtod(&zeros, &mut x).unwrap();
        let result = theirs.clone_dtoh(&y).unwrap();
        theirs.memcpy_dtod(&zeros, &mut y).unwrap();
        result
    };
    let wanted = [multiply(&first, false), multiply(&second, false)];
    assert_ne!(wanted[0], wanted[1]);
    for round in 0..10 {
        let (input, wanted) = match round % 2 {
            0 => (&first, &wanted[0]),
            _ => (&second, &wanted[1]),
        };
        assert!(multiply(input, round % 3 == 0) == *wanted, "round {round}");
    }
}

#[test]
fn views_are_operands_and_the_rest_of_their_slice_stays() {
    let Some(context) = gpu() else { return };
    let stream = context.default_stream();
    let on = CudarcDevice::new(&stream).unwrap();
    let plan = LogSoftmax::<f32>::plan(on.device(), 4, None).unwrap();
    let all = stream.clone_htod(&[0.0_f32; 48]).unwrap();
    let mut results = stream.clone_htod(&[9.0_f32; 48]).unwrap();
    let x = all.slice(16..32);
    let mut y = results.slice_mut(8..24);
    on.scope(|operands| {
        let (x, y) = (operands.read(&x).unwrap(), operands.write(&mut y).unwrap());
        plan.run(x, 4, y).unwrap();
    });
    let results = stream.clone_dtoh(&results).unwrap();
    for (i, result) in results.iter().enumerate() {
        let wanted = if (8..24).contains(&i) {
            -(4.0_f32.ln())
        } else {
            9.0
        };
        assert!((result - wanted).abs() < 1e-6, "element {i} is {result}");
    }
}

#[test]
fn the_stream_lives_as_long_as_the_device_and_no_longer() {
    let Some(context) = gpu() else { return };
    let stream = context.new_stream().unwrap();
    let on = CudarcDevice::new(&stream).unwrap();
    let buffer = on.device().upload(&[1_u32, 2, 3]).unwrap();
    drop(on);
    assert!(Arc::strong_count(&stream) > 1);
    assert_eq!(buffer.download().unwrap(), [1, 2, 3]);
    drop(buffer);
    assert_eq!(Arc::strong_count(&stream), 1);
    assert_eq!(
        stream
            .clone_dtoh(&stream.clone_htod(&[7_u8]).unwrap())
            .unwrap(),
        [7]
    );
}

#[test]
fn a_slice_of_another_context_is_refused() {
    let Some(context) = gpu() else { return };
    let on = CudarcDevice::new(&context.new_stream().unwrap()).unwrap();
    let other = CudaContext::new_non_primary(context.ordinal(), 0).unwrap();
    let x = other.new_stream().unwrap().alloc_zeros::<f32>(5).unwrap();
    on.scope(|operands| {
        let error = operands.read(&x).unwrap_err();
        assert!(
            matches!(error, OperandError::OtherContext { .. }),
            "{error}"
        );
    });
}
