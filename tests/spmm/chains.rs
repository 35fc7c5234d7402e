//! Products that follow one another without waiting on the host. Each reads what the one before it has written, and
//! overwrites what that one has read.

use support::devices;
use warprow::spmm::SpmmError;
use warprow::{
    CsrMatrix, Device, DeviceBuffer, Spmm, SpmmKernel, SpmmOptions, SpmmTuning, generate,
};

/// Features: with a few thousand rows, X fits the L1 cache, so old elements might still be there.
const FEATURES: usize = 8;

/// A square matrix, the values of whose powers neither vanish nor grow fast: three nonzeros of 1 or -1 a row in the
/// mean, and one long row, so that kernels with split rows have some.
fn matrix(rows: u32) -> CsrMatrix<f32> {
    let body = generate::uniform::<f32>(rows - 1, rows, 3 * rows, 5).unwrap();
    let long = generate::uniform::<f32>(1, rows, rows / 3, 6).unwrap();
    let all: CsrMatrix<f32> = sprs::vstack(&[body.view(), long.view()]);
    all.map(|value| value.signum())
}

/// Two operands of products that go to and fro between them.
struct Chain<'a> {
    plan: &'a Spmm<f32>,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
}

impl<'a> Chain<'a> {
    fn new(plan: &'a Spmm<f32>) -> Self {
        let x = generate::dense::<f32>(plan.cols(), FEATURES, 7).unwrap();
        let device = plan.device();
        Self {
            plan,
            x: device.upload(x.as_slice().unwrap()).unwrap(),
            y: device.zeros(x.len()).unwrap(),
        }
    }

    /// `y = A x`, then `x = A y`; `after` is called after each.
    fn run(&mut self, after: impl Fn(&Device)) -> Result<(), SpmmError> {
        self.plan.run(&self.x, FEATURES, &mut self.y)?;
        after(self.plan.device());
        self.plan.run(&self.y, FEATURES, &mut self.x)?;
        after(self.plan.device());
        Ok(())
    }
}

#[test]
fn products_in_a_chain_have_the_bits_of_products_that_are_waited_for() {
    const KERNELS: [SpmmKernel; 5] = [
        SpmmKernel::Vector,
        SpmmKernel::InStep,
        SpmmKernel::RowGroups,
        SpmmKernel::RowBins,
        SpmmKernel::WarpPerRow,
    ];
    for device in devices() {
        let (rows, pairs, repetitions) = match device.is_emulator() {
            true => (400, 2, 1),
            false => (4_000, 12, 50),
        };
        let a = matrix(rows);
        for kernel in KERNELS {
            let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel));
            let plan = Spmm::plan(&device, a.view(), options).unwrap();
            let mut waiting = Chain::new(&plan);
            for _ in 0..pairs {
                waiting.run(|device| device.synchronize().unwrap()).unwrap();
            }
            let wanted = waiting.x.download().unwrap();
            assert!(wanted.iter().any(|&x| x.abs() > 1.0), "{plan}");
            assert!(wanted.iter().all(|x| x.is_finite()), "{plan}");
            for _ in 0..repetitions {
                let mut chain = Chain::new(&plan);
                for _ in 0..pairs {
                    chain.run(|_| ()).unwrap();
                }
                assert_eq!(chain.x.download().unwrap(), wanted, "{plan}");
                let mut chain = Chain::new(&plan);
                let graph = device.record(|| (0..pairs).try_for_each(|_| chain.run(|_| ())));
                // SAFETY: the buffers are alive, and used by nobody else.
                unsafe { graph.unwrap().launch().unwrap() };
                assert_eq!(chain.x.download().unwrap(), wanted, "{plan}, recorded");
            }
        }
    }
}
