//! Slices of buffers and of memory that belongs to someone else: bounds, copies, operations on them, wrong addresses.

use crate::kernels::{BLOCK, affine, affine_wanted, devices_with_kernels};
use ndarray::Array2;
use std::sync::Arc;
use support::devices;
use warprow::device::{Device, DeviceError};
use warprow::gemm::{GemmError, GemmOptions};
use warprow::log_softmax::LogSoftmax;
use warprow::operand::OperandError;
use warprow::spmm::SpmmError;
use warprow::{
    DeviceBuffer, DeviceCsr, DeviceSlice, DeviceSliceMut, Error, Gcn, GcnLayer, GcnOptions, Gemm,
    Spgemm, SpgemmOptions, Spmm, SpmmOptions, generate, launch,
};

#[test]
fn a_part_of_a_buffer_is_read_and_written_alone() {
    for device in devices() {
        let mut buffer = device.upload(&[0_u32, 1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(buffer.slice(..).unwrap().len(), 7);
        assert_eq!(buffer.slice(2..=3).unwrap().download().unwrap(), [2, 3]);
        assert_eq!(
            buffer
                .slice(1..)
                .unwrap()
                .slice(5..)
                .unwrap()
                .download()
                .unwrap(),
            [6]
        );
        assert!(buffer.slice(7..).unwrap().download().unwrap().is_empty());
        let mut part = buffer.slice_mut(1..4).unwrap();
        part.copy_from_slice(&[10, 20, 30]).unwrap();
        part.reborrow().slice(1..2).unwrap().fill_zero().unwrap();
        assert_eq!(part.download().unwrap(), [10, 0, 30]);
        let (mut four, mut five) = buffer.slice_mut(4..6).unwrap().split_at(1).unwrap();
        four.fill_bytes(1).unwrap();
        five.copy_from_slice(&[50]).unwrap();
        assert_eq!(
            buffer.download().unwrap(),
            [0, 10, 0, 30, 0x0101_0101, 50, 6],
            "{device}"
        );
    }
}

#[test]
#[allow(
    clippy::reversed_empty_ranges,
    reason = "such a range is what is refused"
)]
fn a_range_that_is_not_in_the_buffer_is_an_error() {
    for device in devices() {
        let mut buffer = device.zeros::<u16>(5).unwrap();
        let errors = [
            buffer.slice(3..6).unwrap_err(),
            buffer.slice(6..).unwrap_err(),
            buffer.slice(4..2).unwrap_err(),
            buffer.slice(..=5).unwrap_err(),
            buffer.slice(..=usize::MAX).unwrap_err(),
            buffer.slice(1..4).unwrap().slice(2..4).unwrap_err(),
            buffer.slice_mut(5..7).unwrap_err(),
            buffer.as_mut_slice().split_at(6).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, DeviceError::SliceRange { .. }), "{error}");
        }
        let error = buffer.slice_mut(2..).unwrap().copy_from_slice(&[1; 5]);
        assert!(
            matches!(
                error,
                Err(DeviceError::SliceLength {
                    wanted: 3,
                    found: 5,
                    ..
                })
            ),
            "{error:?}"
        );
    }
}

#[test]
fn kernels_write_memory_that_belongs_to_someone_else() {
    for device in devices_with_kernels() {
        let mut theirs = device.upload(&vec![9_u32; 200]).unwrap();
        let address = theirs.as_mut_slice().address();
        // SAFETY: elements 40 to 169 of `theirs`, which nobody else uses until they are downloaded.
        let mut y = unsafe {
            device
                .slice_from_raw_mut::<u32>(address + 160, 130)
                .unwrap()
        };
        let affine = affine();
        // SAFETY: `y` holds 130 elements.
        unsafe {
            launch!(device, affine<<<130_u32.div_ceil(BLOCK), BLOCK, 0>>>(130, y.mutable()))
                .unwrap()
        };
        assert_eq!(y.download().unwrap(), affine_wanted(130), "{device}");
        let all = theirs.download().unwrap();
        assert!(all[..40].iter().chain(&all[170..]).all(|&e| e == 9));
        assert_eq!(all[40..170], affine_wanted(130), "{device}");
    }
}

#[test]
fn an_address_that_cannot_be_memory_is_an_error() {
    for device in devices() {
        // SAFETY: the slices are not used.
        let slice = |address, len| unsafe { device.slice_from_raw::<f64>(address, len).map(drop) };
        for (address, len) in [(0, 1), (0x1004, 1), (0x1000, usize::MAX), (u64::MAX - 7, 2)] {
            let error = slice(address, len).unwrap_err();
            assert!(
                matches!(error, DeviceError::RawMemory { address: found, .. } if found == address),
                "{error}"
            );
        }
        assert!(slice(0, 0).is_ok() && slice(3, 0).is_ok());
    }
}

#[test]
fn an_emulator_reports_memory_that_is_not_its_own() {
    let [device, other] = [(); 2].map(|()| Device::emulator(Default::default()));
    let mut elsewhere = other.zeros::<u32>(10).unwrap();
    let affine = affine();
    for address in [elsewhere.as_mut_slice().address(), 0x1000] {
        // SAFETY: the emulator checks each access.
        unsafe {
            let mut y = device.slice_from_raw_mut::<u32>(address, 10).unwrap();
            let error = launch!(device, affine<<<1, BLOCK, 0>>>(10, y.mutable())).unwrap_err();
            assert!(matches!(error, DeviceError::Fault(_)), "{error}");
            let error = y.download().unwrap_err();
            assert!(matches!(error, DeviceError::EmulatorMemory(_)), "{error}");
        }
    }
}

/// A buffer with `values` in its middle, and other numbers around them.
struct Framed(DeviceBuffer<f32>, usize);

const FRAME: usize = 12;

impl Framed {
    fn new(device: &Device, values: &[f32]) -> Self {
        let frame = [77.0; FRAME];
        let all = [&frame, values, &frame].concat();
        Self(device.upload(&all).unwrap(), values.len())
    }

    fn slice(&self) -> DeviceSlice<'_, f32> {
        self.0.slice(FRAME..FRAME + self.1).unwrap()
    }

    fn slice_mut(&mut self) -> DeviceSliceMut<'_, f32> {
        self.0.slice_mut(FRAME..FRAME + self.1).unwrap()
    }

    /// The same elements as memory of someone else.
    fn raw(&self) -> DeviceSlice<'_, f32> {
        // SAFETY: the elements of `slice`, borrowed as they are.
        unsafe {
            self.0
                .device()
                .slice_from_raw(self.slice().address(), self.1)
                .unwrap()
        }
    }

    /// The middle, if nobody has written around it.
    fn middle(&self) -> Vec<f32> {
        let all = self.0.download().unwrap();
        let (before, rest) = all.split_at(FRAME);
        let (middle, after) = rest.split_at(self.1);
        assert!(before.iter().chain(after).all(|&e| e == 77.0));
        middle.to_vec()
    }
}

/// Runs an operation on whole buffers, on slices of larger ones, and on memory of someone else: all give the same.
/// `run` gets an input and an output.
fn same_on_slices<E: Into<Error>>(
    device: &Device,
    what: &str,
    input: &[f32],
    output_len: usize,
    mut run: impl FnMut(DeviceSlice<'_, f32>, DeviceSliceMut<'_, f32>) -> Result<(), E>,
) {
    let mut run = |x: DeviceSlice<'_, f32>, y: DeviceSliceMut<'_, f32>| {
        run(x, y)
            .map_err(Into::into)
            .unwrap_or_else(|error| panic!("{what} on {device}: {error}"));
    };
    let x = device.upload(input).unwrap();
    let mut y = device.uninitialized::<f32>(output_len).unwrap();
    run(x.as_slice(), y.as_mut_slice());
    let wanted = y.download().unwrap();
    assert!(wanted.iter().any(|&y| y != 0.0));
    let framed_x = Framed::new(device, input);
    let mut framed_y = Framed::new(device, &vec![0.0; output_len]);
    run(framed_x.slice(), framed_y.slice_mut());
    assert_eq!(framed_y.middle(), wanted, "{what} of slices on {device}");
    framed_y.slice_mut().fill_bytes(0xff).unwrap();
    // A network records its second run with the same operands, and replays it in the third.
    for _ in 0..3 {
        run(framed_x.raw(), framed_y.slice_mut());
        assert_eq!(
            framed_y.middle(),
            wanted,
            "{what} of raw memory on {device}"
        );
    }
}

#[test]
fn every_operation_runs_on_slices_as_on_buffers() {
    let a = generate::uniform::<f32>(90, 90, 700, 1).unwrap();
    let weights = generate::dense::<f32>(12, 7, 2).unwrap();
    let x = generate::dense::<f32>(90, 12, 3).unwrap();
    let x = x.as_slice().unwrap();
    for device in devices() {
        let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        same_on_slices(&device, "SpMM", x, 90 * 12, |x, y| spmm.run(x, 12, y));
        same_on_slices(&device, "scaled SpMM", x, 90 * 12, |x, mut y| {
            y.fill_bytes(0)?;
            spmm.run_scaled(0.5, x, 12, 2.0, y).map_err(Error::from)
        });
        let gemm = Gemm::plan(&device, weights.view(), None, GemmOptions::default()).unwrap();
        same_on_slices(&device, "XW", x, 90 * 7, |x, y| gemm.run(x, 90, y));
        let log_softmax = LogSoftmax::<f32>::plan(&device, 12, None).unwrap();
        same_on_slices(&device, "LogSoftmax", x, 90 * 12, |x, y| {
            log_softmax.run(x, 90, y)
        });
        let layer = GcnLayer {
            weights: weights.clone(),
            bias: None,
        };
        let mut gcn = Gcn::plan(&device, a.view(), &[layer], GcnOptions::default()).unwrap();
        same_on_slices(&device, "GCN", x, 90 * 7, |x, y| gcn.run(x, y));
        let there = DeviceCsr::upload(&device, a.view()).unwrap();
        let options = SpgemmOptions::default();
        let product = Spgemm::<f32>::symbolic(there.pattern(), there.pattern(), options).unwrap();
        let entries = product.entries();
        same_on_slices(&device, "SpGEMM", a.data(), entries, |values, c| {
            product.numeric_into(values, values, c)
        });
    }
}

#[test]
fn an_operand_that_is_not_aligned_to_sixteen_bytes_is_refused() {
    let weights = Array2::<f32>::ones((4, 4));
    let a = generate::uniform::<f32>(5, 5, 12, 1).unwrap();
    for device in devices() {
        let mut buffer = device.zeros::<f32>(100).unwrap();
        let gemm = Gemm::plan(&device, weights.view(), None, GemmOptions::default()).unwrap();
        let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        for start in [1, 2, 3] {
            let (x, y) = buffer.as_mut_slice().split_at(40 + start).unwrap();
            let error = gemm.run(x.as_slice().slice(..20).unwrap(), 5, y.slice(..20).unwrap());
            assert!(
                matches!(
                    error,
                    Err(GemmError::Operand(OperandError::Alignment {
                        what: "y",
                        wanted: 16,
                        ..
                    }))
                ),
                "{error:?}"
            );
            let (x, y) = buffer.as_mut_slice().split_at(40).unwrap();
            let x = x.as_slice().slice(start..start + 20).unwrap();
            let error = spmm.run(x, 4, y.slice(..20).unwrap());
            assert!(
                matches!(
                    error,
                    Err(SpmmError::Operand(OperandError::Alignment {
                        what: "x",
                        ..
                    }))
                ),
                "{error:?}"
            );
        }
        // Nothing is read, so nothing is wrong.
        let (x, y) = buffer.as_mut_slice().split_at(1).unwrap();
        gemm.run(x.slice(..0).unwrap(), 0, y.slice(..0).unwrap())
            .unwrap();
    }
}

#[test]
fn a_buffer_of_someone_elses_memory_keeps_its_owner_and_frees_nothing() {
    for device in devices_with_kernels() {
        let theirs = Arc::new(device.upload(&[9_u32; 100]).unwrap());
        let address = theirs.as_slice().address();
        let streams = [(); 2].map(|()| device.new_stream().unwrap());
        for round in 0..2 {
            // SAFETY: the buffer keeps `theirs`, of which nobody uses the elements meanwhile.
            let buffer = unsafe { device.buffer_from_raw::<u32>(address, 70, Arc::clone(&theirs)) };
            let mut buffer = buffer.unwrap();
            let affine = affine();
            let graph = streams[round].scope(|| {
                device.record(|| {
                    // SAFETY: the buffer holds 70 elements.
                    unsafe { launch!(device, affine<<<2, BLOCK, 0>>>(70, buffer.mutable())) }
                })
            });
            drop(buffer);
            assert_eq!(Arc::strong_count(&theirs), 2, "the recording has it");
            let graph = graph.unwrap();
            // SAFETY: the recording keeps the memory.
            streams[1 - round].scope(|| unsafe { graph.launch().unwrap() });
            drop(graph);
            assert_eq!(Arc::strong_count(&theirs), 1);
            let all = theirs.download().unwrap();
            assert_eq!(
                (&all[..70], &all[70..]),
                (&affine_wanted(70)[..], &[9; 30][..])
            );
        }
        // SAFETY: it is refused.
        let error = unsafe { device.buffer_from_raw::<u32>(3, 1, ()).unwrap_err() };
        assert!(matches!(error, DeviceError::RawMemory { .. }), "{error}");
    }
}
