//! Streams: what one waits for of another, which work goes to which, and what is done at the same time.

use crate::kernels::{increment_late, unshared_devices_with_kernels};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};
use warprow::device::{Device, DeviceError};
use warprow::{
    DeviceBuffer, DeviceCsr, DeviceSlice, DeviceSliceMut, Spgemm, SpgemmOptions, Spmm, SpmmOptions,
    Stream, generate, launch,
};

/// As long as work that is not waited for would be overtaken in.
const LONG: Duration = Duration::from_millis(30);
const SHORT: Duration = Duration::ZERO;

/// `y[0] = x[0] + 1` after some time.
fn increment<'x, 'y>(
    device: &Device,
    after: Duration,
    x: impl Into<DeviceSlice<'x, u32>>,
    y: impl Into<DeviceSliceMut<'y, u32>>,
) {
    let (x, mut y) = (x.into(), y.into());
    let (kernel, ns) = (increment_late(), after.as_nanos() as u32);
    // SAFETY: both have an element, and there is one thread.
    unsafe { launch!(device, kernel<<<1, 1, 0>>>(ns, x.read_only(), y.mutable())).unwrap() };
}

fn number(device: &Device, value: u32) -> DeviceBuffer<u32> {
    device.upload(&[value]).unwrap()
}

fn streams(device: &Device) -> [Stream; 2] {
    [(); 2].map(|()| device.new_stream().unwrap())
}

#[test]
fn a_stream_that_reads_waits_for_the_stream_that_has_written() {
    for device in unshared_devices_with_kernels() {
        let [one, other] = streams(&device);
        let (x, mut y, mut z) = (number(&device, 10), number(&device, 0), number(&device, 0));
        one.scope(|| increment(&device, LONG, &x, &mut y));
        other.scope(|| increment(&device, SHORT, &y, &mut z));
        // And the device's own stream waits for `other`.
        assert_eq!(z.download().unwrap(), [12], "{device}");
        // From the device's own stream to another, which copies.
        increment(&device, LONG, &z, &mut y);
        let read = one.scope(|| y.download());
        assert_eq!(read.unwrap(), [13], "{device}");
    }
}

#[test]
fn a_stream_that_writes_waits_for_all_streams_that_read() {
    for device in unshared_devices_with_kernels() {
        let [one, other] = streams(&device);
        let mut x = number(&device, 10);
        let mut results = [(); 3].map(|()| number(&device, 0));
        let [y, z, last] = &mut results;
        one.scope(|| increment(&device, LONG, &x, y));
        increment(&device, LONG, &x, z);
        other.scope(|| x.copy_from_slice(&[50])).unwrap();
        one.scope(|| increment(&device, SHORT, &x, last));
        let results = results.map(|result| result.download().unwrap()[0]);
        assert_eq!(results, [11, 11, 51], "{device}");
        // The writer of last time reads again, late, and another one writes.
        let mut y = number(&device, 0);
        other.scope(|| increment(&device, LONG, &x, &mut y));
        one.scope(|| x.fill_zero()).unwrap();
        assert_eq!(y.download().unwrap(), [51], "{device}");
    }
}

#[test]
fn memory_that_is_freed_on_one_stream_is_not_written_early_on_another() {
    for device in unshared_devices_with_kernels() {
        let [one, other] = streams(&device);
        let mut y = number(&device, 0);
        for round in 0..3 {
            let x = number(&device, 10 + round);
            one.scope(|| increment(&device, LONG, &x, &mut y));
            drop(x);
            // It gets the same memory.
            let next = other.scope(|| number(&device, 99));
            assert_eq!(y.download().unwrap(), [11 + round], "{device}");
            assert_eq!(next.download().unwrap(), [99], "{device}");
        }
    }
}

#[test]
fn memory_that_the_pool_does_not_keep_is_freed_after_its_last_use() {
    for device in unshared_devices_with_kernels() {
        let [one, _] = streams(&device);
        device.set_pool_limit(0).unwrap();
        let (x, mut y) = (number(&device, 10), number(&device, 0));
        one.scope(|| increment(&device, LONG, &x, &mut y));
        drop(x);
        assert_eq!(device.pool_bytes(), 0, "{device}");
        assert_eq!(y.download().unwrap(), [11], "{device}");
    }
}

#[test]
fn a_stream_is_waited_for_after_it_is_dropped() {
    for device in unshared_devices_with_kernels() {
        let (x, mut y) = (number(&device, 10), number(&device, 0));
        let stream = device.new_stream().unwrap();
        stream.scope(|| increment(&device, LONG, &x, &mut y));
        drop(stream);
        assert_eq!(y.download().unwrap(), [11], "{device}");
    }
}

#[test]
fn to_wait_for_the_device_is_to_wait_for_all_its_streams() {
    for device in unshared_devices_with_kernels() {
        let streams = streams(&device);
        let x = number(&device, 10);
        let mut results = [(); 2].map(|()| number(&device, 0));
        for (stream, y) in streams.iter().zip(&mut results) {
            stream.scope(|| increment(&device, LONG, &x, y));
        }
        let started = Instant::now();
        device.synchronize().unwrap();
        let waited = started.elapsed();
        for (stream, y) in streams.iter().zip(&results) {
            let timer = stream.scope(|| device.start_timer().unwrap());
            assert_eq!(stream.scope(|| y.download()).unwrap(), [11], "{device}");
            stream.synchronize().unwrap();
            timer.stop().unwrap();
        }
        if !device.is_emulator() {
            assert!(waited > LONG / 2, "{waited:?} on {device}");
        }
    }
}

#[test]
fn streams_that_share_what_they_read_run_at_the_same_time() {
    for device in unshared_devices_with_kernels() {
        if device.is_emulator() {
            println!("skipped on {device}, which does one thing after the other");
            continue;
        }
        let streams: Vec<Stream> = (0..4).map(|_| device.new_stream().unwrap()).collect();
        let x = number(&device, 10);
        let mut results: Vec<_> = (0..4).map(|_| number(&device, 0)).collect();
        // The kernel is compiled.
        increment(&device, SHORT, &x, &mut results[0]);
        device.synchronize().unwrap();
        let mut run = || {
            let started = Instant::now();
            for (stream, y) in streams.iter().zip(&mut results) {
                stream.scope(|| increment(&device, LONG, &x, y));
            }
            device.synchronize().unwrap();
            started.elapsed()
        };
        // A GPU has few queues for its streams, and other tests may have work in them.
        let elapsed = (0..10).map(|_| run()).min().unwrap();
        assert!(elapsed < 3 * LONG, "{elapsed:?} on {device}");
        for y in results {
            assert_eq!(y.download().unwrap(), [11], "{device}");
        }
    }
}

#[test]
fn a_scope_ends_with_its_closure_or_its_panic_and_inside_another_one() {
    for device in unshared_devices_with_kernels() {
        let [one, other] = streams(&device);
        let stream = || device.cuda_stream().unwrap();
        let (own, of_one, of_other) = (stream(), one.scope(stream), other.scope(stream));
        let inner = one.scope(|| {
            let inner = other.scope(stream);
            assert_eq!(stream(), of_one);
            inner
        });
        assert_eq!(inner, of_other);
        let panicked = AssertUnwindSafe(|| one.scope(|| panic!("in a scope")));
        assert!(catch_unwind(panicked).is_err());
        assert_eq!(stream(), own);
        if !device.is_emulator() {
            assert!(own != of_one && of_one != of_other && own != of_other);
        }
        // A scope is for its thread and its device.
        let another_device = Device::emulator(Default::default());
        let number_of = |stream: Option<*mut c_void>| stream.map(<*mut c_void>::addr);
        let own = number_of(own);
        one.scope(|| {
            thread::scope(|scope| {
                scope.spawn(|| assert_eq!(number_of(device.cuda_stream().unwrap()), own));
            });
            let y = number(&another_device, 5);
            assert_eq!(y.download().unwrap(), [5]);
        });
    }
}

#[test]
fn what_was_recorded_runs_on_the_stream_that_launches_it_after_what_others_have_written() {
    for device in unshared_devices_with_kernels() {
        let [one, other] = streams(&device);
        let (mut x, mut y) = (number(&device, 10), number(&device, 0));
        let mut z = number(&device, 0);
        let graph = device.record(|| {
            increment(&device, LONG, &x, &mut y);
            Ok::<_, DeviceError>(())
        });
        let graph = graph.unwrap();
        for round in 1..4 {
            let before = number(&device, 10 * round);
            other.scope(|| increment(&device, LONG, &before, &mut x));
            // SAFETY: the buffers are alive.
            one.scope(|| unsafe { graph.launch().unwrap() });
            other.scope(|| increment(&device, SHORT, &y, &mut z));
            assert_eq!(z.download().unwrap(), [10 * round + 3], "{device}");
        }
    }
}

#[test]
fn someone_elses_stream_is_used_and_is_given_back() {
    for device in unshared_devices_with_kernels() {
        let theirs = device.new_stream().unwrap();
        let raw = theirs.scope(|| device.cuda_stream().unwrap());
        let Some(raw) = raw else {
            // SAFETY: it is refused.
            let error = unsafe {
                device
                    .stream_from_raw(std::ptr::null_mut(), ())
                    .unwrap_err()
            };
            assert!(matches!(error, DeviceError::NoCudaStream { .. }), "{error}");
            continue;
        };
        let (x, mut y) = (number(&device, 10), number(&device, 0));
        // SAFETY: `theirs` outlives it.
        let stream = unsafe { device.stream_from_raw(raw, ()).unwrap() };
        stream.scope(|| {
            assert_eq!(device.cuda_stream().unwrap(), Some(raw));
            increment(&device, LONG, &x, &mut y);
        });
        // From now on nobody waits for the stream itself.
        drop(stream);
        let again = theirs.scope(|| y.download());
        assert_eq!(again.unwrap(), [11], "{device}");
        let mut z = number(&device, 0);
        // SAFETY: as above. Null is the legacy default stream, which lives for ever.
        let null = unsafe { device.stream_from_raw(std::ptr::null_mut(), ()).unwrap() };
        null.scope(|| increment(&device, LONG, &y, &mut z));
        drop(null);
        drop(theirs);
        assert_eq!(z.download().unwrap(), [12], "{device}");
    }
}

#[test]
fn plans_run_from_many_threads_and_streams_at_once() {
    // Row 7 is long enough to be split, so runs need room for partial sums.
    let mut rows = sprs::TriMatI::<f32, u32>::new((300, 4000));
    for column in 0..4000 {
        rows.add_triplet(7, column, (column % 3) as f32 - 0.5);
        rows.add_triplet(column % 300, (column * 7) % 4000, 1.0);
    }
    let a = rows.to_csr::<u32>();
    let x = generate::dense::<f32>(4000, 8, 1).unwrap();
    for device in unshared_devices_with_kernels() {
        let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        let there = device.upload(x.as_slice().unwrap()).unwrap();
        let wanted = spmm.multiply(x.view()).unwrap();
        let square = generate::uniform::<f32>(200, 200, 2000, 3).unwrap();
        let square = DeviceCsr::upload(&device, square.view()).unwrap();
        let product =
            Spgemm::<f32>::symbolic(square.pattern(), square.pattern(), SpgemmOptions::default());
        let product = product.unwrap();
        let squared = product.numeric(square.values(), square.values()).unwrap();
        let squared = squared.values().download().unwrap();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let stream = device.new_stream().unwrap();
                    let mut y = device.zeros::<f32>(300 * 8).unwrap();
                    for round in 0..10 {
                        stream.scope(|| {
                            y.fill_bytes(0xff).unwrap();
                            spmm.run(&there, 8, &mut y).unwrap();
                            let c = product.numeric(square.values(), square.values()).unwrap();
                            assert_eq!(c.values().download().unwrap(), squared, "{device}");
                        });
                        // Now and then on another stream.
                        let y = if round % 3 == 0 {
                            y.download().unwrap()
                        } else {
                            stream.scope(|| y.download().unwrap())
                        };
                        assert_eq!(y, wanted.as_slice().unwrap(), "{spmm}");
                    }
                });
            }
        });
    }
}
