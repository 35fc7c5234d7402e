//! Devices in a context and on a stream that somebody else has made, who uses both during and after.

use crate::kernels::{PTX, affine_wanted, increment_late, run_affine};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use support::cuda;
use warprow::reference::verify_spmm;
use warprow::{Device, Spmm, SpmmOptions, generate, launch};

// The driver, as another library would call it; `libcuda` has these functions.
unsafe extern "C" {
    fn cuCtxCreate_v2(context: *mut *mut c_void, flags: c_uint, device: c_int) -> u32;
    fn cuCtxDestroy_v2(context: *mut c_void) -> u32;
    fn cuCtxGetCurrent(context: *mut *mut c_void) -> u32;
    fn cuCtxSetCurrent(context: *mut c_void) -> u32;
    fn cuStreamCreateWithPriority(stream: *mut *mut c_void, flags: c_uint, priority: c_int) -> u32;
    fn cuStreamSynchronize(stream: *mut c_void) -> u32;
    fn cuStreamDestroy_v2(stream: *mut c_void) -> u32;
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> u32;
    fn cuMemFree_v2(address: u64) -> u32;
    fn cuMemsetD32Async(address: u64, value: c_uint, count: usize, stream: *mut c_void) -> u32;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> u32;
}

/// A context of somebody else, current on this thread, with a stream and memory for 100 words.
struct Theirs {
    context: *mut c_void,
    stream: *mut c_void,
    memory: u64,
}

impl Theirs {
    /// In the context that is current.
    fn in_current_context() -> Self {
        let (mut context, mut stream, mut memory) = (ptr::null_mut(), ptr::null_mut(), 0);
        // SAFETY: the driver writes to each pointer; a context is current. 1 is a stream that does not wait for the
        // legacy default stream.
        unsafe {
            assert_eq!(cuCtxGetCurrent(&raw mut context), 0);
            assert!(!context.is_null());
            assert_eq!(cuStreamCreateWithPriority(&raw mut stream, 1, 0), 0);
            assert_eq!(cuMemAlloc_v2(&raw mut memory, 400), 0);
        }
        Self {
            context,
            stream,
            memory,
        }
    }

    /// Uses context, stream and memory: all words become `value`.
    fn work(&self, value: u32) {
        let mut words = [0_u32; 100];
        // SAFETY: the memory has 100 words, and so has `words`.
        unsafe {
            assert_eq!(cuCtxSetCurrent(self.context), 0);
            assert_eq!(cuMemsetD32Async(self.memory, value, 100, self.stream), 0);
            assert_eq!(cuStreamSynchronize(self.stream), 0);
            let to = words.as_mut_ptr().cast();
            assert_eq!(cuMemcpyDtoH_v2(to, self.memory, 400), 0);
        }
        assert_eq!(words, [value; 100]);
    }

    /// Destroys the stream, which must still exist.
    fn end(self) {
        // SAFETY: nobody uses them any more.
        unsafe {
            assert_eq!(cuCtxSetCurrent(self.context), 0);
            assert_eq!(cuMemFree_v2(self.memory), 0);
            assert_eq!(cuStreamDestroy_v2(self.stream), 0);
        }
    }

    /// Runs on a device of this context, drops it, and goes on.
    fn lends_itself(self) {
        self.work(3);
        // SAFETY: context and stream live until the device, its plans and buffers are dropped.
        let device = unsafe { Device::from_cuda_context(self.context, self.stream, ()).unwrap() };
        device.load_ptx(PTX).unwrap();
        assert_eq!(device.cuda_stream().unwrap(), Some(self.stream));
        assert_eq!(
            run_affine(&device, 1000).unwrap().download().unwrap(),
            affine_wanted(1000)
        );
        let a = generate::uniform::<f32>(70, 50, 600, 1).unwrap();
        let x = generate::dense::<f32>(50, 8, 2).unwrap();
        let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        let y = spmm.multiply(x.view()).unwrap();
        assert!(verify_spmm(a.view(), x.view(), y.view()).ok());
        // Their work and ours in the order of one stream, on their memory.
        let mut y = device.zeros::<u32>(1).unwrap();
        let kernel = increment_late();
        // SAFETY: the memory has 100 words, and is written in the order of the stream.
        unsafe {
            assert_eq!(cuMemsetD32Async(self.memory, 40, 100, self.stream), 0);
            let mut theirs = device.slice_from_raw_mut::<u32>(self.memory, 100).unwrap();
            let x = theirs.as_slice().read_only();
            launch!(device, kernel<<<1, 1, 0>>>(20_000_000, x, y.mutable())).unwrap();
            launch!(device, kernel<<<1, 1, 0>>>(0, y.read_only(), theirs.mutable())).unwrap();
            assert_eq!(
                theirs.as_slice().slice(..2).unwrap().download().unwrap(),
                [42, 40]
            );
            assert_eq!(cuMemsetD32Async(self.memory, 50, 100, self.stream), 0);
        }
        assert_eq!(y.download().unwrap(), [41]);
        let other = device.new_stream().unwrap();
        assert_eq!(other.scope(|| y.download()).unwrap(), [41]);
        drop((device, spmm, other));
        self.work(5);
        drop(y);
        self.work(7);
        self.end();
    }
}

#[test]
fn the_primary_context_and_a_stream_of_it_are_lent_and_stay_usable() {
    let Some(device) = cuda() else { return };
    // It makes the primary context current here.
    device.cuda_stream().unwrap();
    Theirs::in_current_context().lends_itself();
    assert_eq!(device.upload(&[1_u8]).unwrap().download().unwrap(), [1]);
}

#[test]
fn another_context_than_the_primary_one_is_lent_and_stays_usable() {
    let Some(device) = cuda() else { return };
    device.cuda_stream().unwrap();
    libcuda::load().unwrap();
    let mut context = ptr::null_mut();
    // SAFETY: the driver writes one pointer, and makes the context current.
    assert_eq!(unsafe { cuCtxCreate_v2(&raw mut context, 0, 0) }, 0);
    Theirs::in_current_context().lends_itself();
    // SAFETY: nobody uses it any more.
    assert_eq!(unsafe { cuCtxDestroy_v2(context) }, 0);
    assert_eq!(device.upload(&[1_u8]).unwrap().download().unwrap(), [1]);
}
