//! A plan whose runs are recorded, and that many threads and a function that reports progress use at once.

use ndarray::{Array2, ArrayView2};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use support::devices;
use warprow::device::{DeviceError, EmulatorOptions};
use warprow::operand::OperandError;
use warprow::spmm::SpmmError;
use warprow::{
    CsrMatrix, Device, DeviceBuffer, Spmm, SpmmKernel, SpmmOptions, SpmmTuning, generate, reference,
};

/// A matrix with long rows.
fn long_rows() -> CsrMatrix<f32> {
    let rows = [(40, 300), (3, 2500), (25, 100)];
    let rows = rows.map(|(rows, nonzeros)| generate::uniform(rows, 900, nonzeros, 3).unwrap());
    sprs::vstack(&[rows[0].view(), rows[1].view(), rows[2].view()])
}

/// Plans that split rows, and add up their parts from scratch memory.
fn plans(device: &Device, a: &CsrMatrix<f32>) -> [Spmm<f32>; 3] {
    [
        SpmmKernel::Vector,
        SpmmKernel::SlicedTwoPass,
        SpmmKernel::RowBins,
    ]
    .map(|kernel| {
        let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel).task_size(16));
        let plan = Spmm::plan(device, a.view(), options).unwrap();
        let text = plan.to_string();
        let splits = match kernel {
            SpmmKernel::RowBins => "3 rows of more than 16 nonzeros",
            _ => " split rows",
        };
        assert!(text.contains(splits), "{text}");
        assert!(!text.contains(" 0 split rows"), "{text}");
        plan
    })
}

/// X on the host and on the device, and room for Y.
struct Operands {
    x: Array2<f32>,
    x_device: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
}

impl Operands {
    fn new(plan: &Spmm<f32>, features: usize, seed: u64) -> Self {
        let x = generate::dense::<f32>(plan.cols(), features, seed).unwrap();
        Self {
            x_device: plan.device().upload(x.as_slice().unwrap()).unwrap(),
            y: plan.device().zeros(plan.rows() * features).unwrap(),
            x,
        }
    }

    fn run(&mut self, plan: &Spmm<f32>) -> Result<(), SpmmError> {
        plan.run(&self.x_device, self.x.ncols(), &mut self.y)
    }

    #[track_caller]
    fn assert_right(&mut self, a: &CsrMatrix<f32>, what: &str) {
        assert_product(a, self.x.view(), &self.y, what);
        self.y.fill_bytes(0xff).unwrap();
    }
}

#[track_caller]
fn assert_product(a: &CsrMatrix<f32>, x: ArrayView2<'_, f32>, y: &DeviceBuffer<f32>, what: &str) {
    let y = Array2::from_shape_vec((a.rows(), x.ncols()), y.download().unwrap()).unwrap();
    let verification = reference::verify_spmm(a.view(), x, y.view());
    assert!(verification.ok(), "{what}: {verification}");
}

#[test]
fn a_recorded_product_stays_right_when_a_wider_one_needs_more_scratch() {
    let a = long_rows();
    for device in devices() {
        for plan in plans(&device, &a) {
            let what = plan.to_string();
            let (mut narrow, mut wide) = (Operands::new(&plan, 3, 1), Operands::new(&plan, 40, 2));
            narrow.run(&plan).unwrap();
            narrow.assert_right(&a, &what);
            let graph = device.record(|| narrow.run(&plan)).unwrap();
            wide.run(&plan).unwrap();
            for _ in 0..2 {
                // SAFETY: the pointers were taken in the recording, and nobody else uses y.
                unsafe { graph.launch().unwrap() };
                narrow.assert_right(&a, &what);
            }
            wide.assert_right(&a, &what);
        }
    }
}

#[test]
fn a_first_run_can_be_recorded_and_outlives_its_plan_and_operands() {
    let a = long_rows();
    for device in devices() {
        for plan in plans(&device, &a) {
            let what = plan.to_string();
            let mut operands = Operands::new(&plan, 5, 1);
            let graph = device.record(|| operands.run(&plan)).unwrap();
            let Operands { x, x_device, y } = operands;
            drop((plan, x_device));
            // It would get the memory of x if that were free.
            let other = device.zeros::<f32>(x.len()).unwrap();
            // SAFETY: the pointers were taken in the recording.
            unsafe { graph.launch().unwrap() };
            assert_product(&a, x.view(), &y, &what);
            assert_eq!(other.download().unwrap(), vec![0.0; x.len()], "{what}");
        }
    }
}

#[test]
fn many_threads_run_one_plan_and_launch_their_recordings_at_once() {
    const THREADS: usize = 6;
    let a = long_rows();
    for device in devices() {
        for plan in &plans(&device, &a) {
            let start = Barrier::new(THREADS);
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (device, a, start) = (&device, &a, &start);
                    scope.spawn(move || {
                        let mut operands = Operands::new(plan, 2 + 9 * thread, thread as u64);
                        start.wait();
                        let recorded = thread.is_multiple_of(2);
                        let graph = recorded
                            .then(|| device.record(|| operands.run(plan)))
                            .transpose()
                            .unwrap();
                        for _ in 0..4 {
                            match &graph {
                                // SAFETY: the pointers were taken in the recording; y is this thread's.
                                Some(graph) => unsafe { graph.launch().unwrap() },
                                None => operands.run(plan).unwrap(),
                            }
                            operands.assert_right(a, &plan.to_string());
                        }
                    });
                }
            });
        }
    }
}

#[test]
fn a_progress_function_that_runs_the_plan_gets_an_error_and_no_deadlock() {
    let a = long_rows();
    let device = Device::emulator(EmulatorOptions::default());
    for plan in plans(&device, &a).map(Arc::new) {
        let mut operands = Operands::new(&plan, 3, 1);
        let other = (Arc::clone(&plan), Operands::new(&plan, 3, 1));
        let (other, (tell, told)) = (Mutex::new(other), mpsc::channel());
        device.set_progress(Some(Arc::new(move |_, _| {
            let (plan, operands) = &mut *other.lock().unwrap();
            tell.send(operands.run(plan).unwrap_err()).unwrap();
        })));
        let run = thread::spawn(move || {
            operands.run(&plan).unwrap();
            plan.device().set_progress(None);
        });
        let mut answers = 0;
        while let Ok(error) = told.recv_timeout(Duration::from_secs(60)) {
            let SpmmError::Operand(OperandError::Device(DeviceError::DuringProgress { .. })) =
                error
            else {
                panic!("{error}");
            };
            answers += 1;
        }
        assert!(answers > 1);
        run.join().unwrap();
    }
}
