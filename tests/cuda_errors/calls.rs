//! Which calls the driver gets: the waits between streams, and what is destroyed.

use super::{PTX, innocent, with_driver};
use std::env;
use std::ffi::c_void;
use std::fs;
use std::ptr::without_provenance_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use warprow::device::{Device, DeviceBuffer, DeviceError, Stream};
use warprow::launch;
use warprow::spgemm::{SpgemmOptions, multiply};
use warprow::{DeviceCsr, generate};

/// Names the file to which the fake driver writes its calls.
const LOG: &str = "FAKE_LOG";

/// Runs `body` as [`with_driver`] does, with a log of the driver's calls.
pub fn with_log(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let environment = [&[(LOG, path)], environment].concat();
    with_driver(name, &environment, body);
}

/// The calls since the last time.
pub fn calls() -> Vec<String> {
    let path = env::var_os(LOG).unwrap();
    let lines = fs::read_to_string(&path).unwrap();
    fs::write(path, "").unwrap();
    lines.lines().map(str::to_owned).collect()
}

/// What each call does to which stream, without the numbers of events.
fn waits(calls: &[String], names: &[(&str, *mut c_void)]) -> Vec<String> {
    let mut recorded = None;
    let named = |text: &str| {
        let name = names
            .iter()
            .find(|&&(_, stream)| text == format!("{stream:p}"));
        name.map_or_else(|| text.to_owned(), |(name, _)| (*name).to_owned())
    };
    let mut found = Vec::new();
    for call in calls {
        if let Some((event, stream)) = call
            .strip_prefix("record ")
            .and_then(|c| c.split_once(" in "))
        {
            recorded = Some((event.to_owned(), named(stream)));
        } else if let Some((stream, event)) = call.split_once(" waits for ") {
            let (of, in_stream) = recorded
                .clone()
                .expect("an event is recorded before it is waited for");
            assert_eq!(of, event);
            found.push(format!("{} after {in_stream}", named(stream)));
        } else if let Some(stream) = call.strip_prefix("launch in ") {
            found.push(format!("launch in {}", named(stream)));
        }
    }
    found
}

fn with_kernel() -> Device {
    let device = Device::cuda(0).unwrap();
    device.load_ptx(PTX).unwrap();
    device
}

fn raw(device: &Device) -> *mut c_void {
    device.cuda_stream().unwrap().unwrap()
}

fn launch(device: &Device, y: &mut DeviceBuffer<u32>) {
    let innocent = innocent();
    // SAFETY: the kernel does nothing.
    unsafe { launch!(device, innocent<<<1, 1, 0>>>(y.mutable())).unwrap() };
}

#[test]
fn streams_wait_for_each_other_where_they_must_and_only_there() {
    with_log(
        "calls::streams_wait_for_each_other_where_they_must_and_only_there",
        &[],
        || {
            let device = with_kernel();
            let [one, other] = [(); 2].map(|()| device.new_stream().unwrap());
            let names = [
                ("own", raw(&device)),
                ("one", one.scope(|| raw(&device))),
                ("other", other.scope(|| raw(&device))),
            ];
            let mut y = device.uninitialized::<u32>(5).unwrap();
            calls();
            let check = |what: &str, wanted: &[&str]| {
                assert_eq!(waits(&calls(), &names), wanted, "{what}");
            };
            launch(&device, &mut y);
            check("its own stream alone", &["launch in own"]);
            one.scope(|| launch(&device, &mut y));
            check(
                "a writer after a writer",
                &["one after own", "launch in one"],
            );
            one.scope(|| launch(&device, &mut y));
            check("the same writer", &["launch in one"]);
            for _ in 0..2 {
                let _ = y.read_only();
            }
            check("a reader, twice", &["own after one"]);
            other.scope(|| y.read_only());
            check("another reader", &["other after one"]);
            one.scope(|| y.read_only());
            check("the writer reads", &[]);
            other.scope(|| launch(&device, &mut y));
            check(
                "a writer after readers",
                &["other after one", "other after own", "launch in other"],
            );
            drop(y);
            let again = one.scope(|| device.uninitialized::<u32>(5).unwrap());
            check("the memory's next owner", &["one after other"]);
            drop(again);
        },
    );
}

#[test]
fn a_context_and_a_stream_of_someone_else_are_not_destroyed() {
    with_log(
        "calls::a_context_and_a_stream_of_someone_else_are_not_destroyed",
        &[],
        || {
            struct Owner(Arc<AtomicBool>);

            impl Drop for Owner {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Relaxed);
                }
            }

            let dropped = Arc::new(AtomicBool::new(false));
            let [context, stream, second] = [0x7000, 0x7100, 0x7200].map(without_provenance_mut);
            let owner = Owner(Arc::clone(&dropped));
            // SAFETY: the fake driver takes any handle.
            let device = unsafe { Device::from_cuda_context(context, stream, owner).unwrap() };
            device.load_ptx(PTX).unwrap();
            assert_eq!(raw(&device), stream);
            let mut y = device.zeros::<u32>(5).unwrap();
            launch(&device, &mut y);
            // SAFETY: as above.
            let theirs: Stream = unsafe { device.stream_from_raw(second, ()).unwrap() };
            theirs.scope(|| launch(&device, &mut y));
            let found = calls();
            assert!(found.contains(&"launch in 0x7100".to_owned()), "{found:?}");
            assert!(found.contains(&"launch in 0x7200".to_owned()), "{found:?}");
            let clone = theirs.clone();
            drop(theirs);
            assert_eq!(calls(), [""; 0]);
            // Then it may be destroyed: an event is recorded after its work, and waited for in its place.
            drop(clone);
            assert_eq!(calls().len(), 1);
            let _ = y.read_only();
            let found = calls();
            assert!(
                matches!(&found[..], [wait] if wait.starts_with("0x7100 waits for ")),
                "{found:?}"
            );
            // The same handle again, of the same stream or a later one, which waits for the work of the former.
            // SAFETY: as above.
            let again = unsafe { device.stream_from_raw(second, ()).unwrap() };
            let found = calls();
            assert!(
                matches!(&found[..], [wait] if wait.starts_with("0x7200 waits for ")),
                "{found:?}"
            );
            drop(again);
            calls();
            let own = device.new_stream().unwrap();
            let raw_own = own.scope(|| raw(&device));
            drop(own);
            let own = device.new_stream().unwrap();
            assert_eq!(
                own.scope(|| raw(&device)),
                raw_own,
                "a dropped stream is used again"
            );
            drop((device, own));
            assert!(!dropped.load(Ordering::Relaxed), "a buffer is left");
            calls();
            drop(y);
            assert!(dropped.load(Ordering::Relaxed));
            for call in calls() {
                for theirs in [
                    "destroy context",
                    "destroy stream 0x7",
                    "release the primary",
                ] {
                    assert!(!call.starts_with(theirs), "{call}");
                }
            }
        },
    );
}

#[test]
fn a_device_of_its_own_gives_its_context_and_stream_back() {
    with_log(
        "calls::a_device_of_its_own_gives_its_context_and_stream_back",
        &[],
        || {
            let device = with_kernel();
            let stream = format!("destroy stream {:p}", raw(&device));
            let buffer = device.zeros::<u32>(5).unwrap();
            drop(device);
            let found = calls();
            assert!(!found.contains(&stream), "{found:?}");
            drop(buffer);
            let found = calls();
            let position = |line: &str| found.iter().position(|call| call == line);
            let (stream, context) = (position(&stream), position("release the primary context"));
            assert!(stream.is_some() && stream < context, "{found:?}");
        },
    );
}

#[test]
fn the_pool_keeps_what_its_limit_allows() {
    with_log("calls::the_pool_keeps_what_its_limit_allows", &[], || {
        let device = Device::cuda(0).unwrap();
        let frees = || {
            calls()
                .iter()
                .filter(|call| call.starts_with("free "))
                .count()
        };
        let buffers = |sizes: &[usize]| -> Vec<DeviceBuffer<u8>> {
            let buffer = |&bytes| device.uninitialized(bytes).unwrap();
            sizes.iter().map(buffer).collect()
        };
        drop(buffers(&[16_000, 32_000, 64_000]));
        assert_eq!((device.pool_bytes(), frees()), (112_000, 0));
        device.set_pool_limit(100_000).unwrap();
        // The one that was freed first.
        assert_eq!((device.pool_bytes(), frees()), (96_000, 1));
        drop(buffers(&[200_000]));
        assert_eq!((device.pool_bytes(), frees()), (96_000, 1));
        assert_eq!(device.trim_pool().unwrap(), 96_000);
        assert_eq!((device.pool_bytes(), frees()), (0, 2));
        drop(buffers(&[16_000]));
        assert_eq!(
            (device.pool_bytes(), device.trim_pool().unwrap()),
            (16_000, 16_000)
        );
    });
}

#[test]
fn a_copy_that_runs_keeps_its_pinned_memory_until_it_is_waited_for() {
    const NOT_READY: &str = "600";
    let environment = [("FAKE_EVENT_QUERY_ANSWER", NOT_READY)];
    let name = "calls::a_copy_that_runs_keeps_its_pinned_memory_until_it_is_waited_for";
    with_log(name, &environment, || {
        let device = Device::cuda(0).unwrap();
        let buffer = device.zeros::<u32>(5).unwrap();
        let waited = || {
            calls()
                .iter()
                .any(|call| call.starts_with("wait for event"))
        };
        for drops in [false, true] {
            let pinned = device.pinned::<u32>(5).unwrap();
            let download = buffer.as_slice().start_download(pinned).unwrap();
            assert!(!download.is_done().unwrap());
            assert!(!waited());
            match drops {
                true => drop(download),
                false => assert_eq!(*download.wait().unwrap(), [0; 5]),
            }
            assert!(waited());
        }
        let error = device.record(|| {
            let pinned = device.pinned::<u32>(5)?;
            buffer.as_slice().start_download(pinned).map(drop)
        });
        assert!(
            matches!(error, Err(DeviceError::NotRecordable { .. })),
            "{error:?}"
        );
    });
}

/// What a download of so many numbers does: whether it pins memory, waits for an event, and waits for a stream.
fn of_download(buffer: &DeviceBuffer<u32>, len: usize) -> [bool; 3] {
    calls();
    let numbers = buffer.slice(..len).unwrap().download().unwrap();
    assert_eq!(numbers, vec![0; len]);
    let calls = calls();
    ["pin ", "wait for event", "wait for stream"]
        .map(|start| calls.iter().any(|call| call.starts_with(start)))
}

#[test]
fn small_downloads_take_pinned_memory_that_the_device_keeps() {
    let name = "calls::small_downloads_take_pinned_memory_that_the_device_keeps";
    with_log(name, &[], || {
        let device = Device::cuda(0).unwrap();
        let pinned = calls()
            .iter()
            .filter(|call| **call == "pin 4096 bytes")
            .count();
        assert_eq!(pinned, 1);
        let buffer = device.zeros::<u32>(2000).unwrap();
        for len in [1, 1024, 7] {
            assert_eq!(
                of_download(&buffer, len),
                [false, true, false],
                "{len} numbers"
            );
        }
        assert_eq!(of_download(&buffer, 1025), [false, false, true]);
    });
}

#[test]
fn without_pinned_memory_small_downloads_take_ordinary_memory() {
    const OUT_OF_MEMORY: &str = "2";
    let name = "calls::without_pinned_memory_small_downloads_take_ordinary_memory";
    with_log(name, &[("FAKE_PIN_ANSWER", OUT_OF_MEMORY)], || {
        let device = Device::cuda(0).unwrap();
        let buffer = device.zeros::<u32>(9).unwrap();
        assert_eq!(of_download(&buffer, 9), [true, false, true]);
        multiply_nothing(&device);
        let waits = |call: &String| call.starts_with("wait for stream");
        assert!(calls().iter().any(waits));
    });
}

/// A product of the fake driver, which launches nothing: all counters are 0, and C has no entries.
fn multiply_nothing(device: &Device) {
    let a = generate::uniform::<f32>(40, 40, 200, 1).unwrap();
    let a = DeviceCsr::upload(device, a.view()).unwrap();
    calls();
    let product = multiply(&a, &a, SpgemmOptions::default()).unwrap();
    assert_eq!((product.c.pattern().nnz(), product.products), (0, 0));
}

#[test]
fn the_counts_of_a_product_are_copied_beside_the_next_launch() {
    let name = "calls::the_counts_of_a_product_are_copied_beside_the_next_launch";
    with_log(name, &[], || {
        let device = Device::cuda(0).unwrap();
        multiply_nothing(&device);
        let calls = calls();
        let own = format!("{:p}", raw(&device));
        // The place of the first call from `start` on that `is_wanted` finds, and what that gives.
        let find = |start: usize, what: &str, is_wanted: &dyn Fn(&str) -> Option<String>| {
            let found = (calls.iter().enumerate().skip(start))
                .find_map(|(at, call)| Some((at, is_wanted(call)?)));
            found.unwrap_or_else(|| panic!("{what}: {calls:#?}"))
        };
        let recorded = |in_stream: String| {
            move |call: &str| {
                let event = call.strip_prefix("record ")?.strip_suffix(&in_stream)?;
                Some(event.to_owned())
            }
        };
        let (fork, event) = find(
            0,
            "no event in its own stream",
            &recorded(format!(" in {own}")),
        );
        let (waits, beside) = find(fork, "no stream waits for it", &|call| {
            let stream = call.strip_suffix(&format!(" waits for {event}"))?;
            (stream != own).then(|| stream.to_owned())
        });
        let same = |text: String| move |call: &str| (call == text).then(String::new);
        let copy = format!("copy to the host in {beside}");
        let (copied, _) = find(waits, "the copy is elsewhere", &same(copy));
        let of_copy = recorded(format!(" in {beside}"));
        let (end, event) = find(copied, "no event after the copy", &of_copy);
        let (waited, _) = find(end, "no wait", &same(format!("wait for event {event}")));
        let launched = calls[end..waited]
            .iter()
            .any(|call| call.contains("launch of"));
        assert!(launched, "the next launch waits for the copy: {calls:#?}");
    });
}
