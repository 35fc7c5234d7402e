//! The micro-kernels: one thing each, whose counters are known.

use crate::counters::bench::{Case, Prepared};
use crate::counters::patterns::{Kernel, Pattern, Sum, patterns};
use cuda_std::element::Element;
use cuda_std::memory::{Global, GlobalMut};
use warprow::Device;
use warprow::device::{DeviceBuffer, DeviceError};
use warprow::launch;
use warprow::launch::Kernel as Handle;
use warprow_bench_kernels::counters::{self as kernels, IDLE, SECTOR_WORDS, SHARED_WORDS, STORING};

/// Lanes of a warp.
const LANES: u32 = 32;

/// Elements of each buffer in global memory: more than any index needs.
const ELEMENTS: usize = 2 * SHARED_WORDS;

/// Threads of a block where the occupancy is asked for.
const THREADS: u32 = 128;

/// Bytes of dynamic shared memory of such a block.
const SHARED_BYTES: [u32; 7] = [512, 1_024, 10_000, 24_576, 49_152, 76_800, 116_224];

/// Sectors that the stores write: 8 MB.
const SECTORS: u32 = 1 << 18;

/// The cases of all micro-kernels.
pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = patterns().into_iter().map(of_pattern).collect();
    cases.push(case("collectives".to_owned(), |device| {
        let data = device.zeros::<u32>(ELEMENTS)?;
        let mut output = device.zeros::<u32>(ELEMENTS)?;
        let kernel = kernels::collectives();
        let device = device.clone();
        Ok(Prepared::Product(Box::new(move || {
            let (data, output) = (data.read_only(), output.mutable());
            // SAFETY: both buffers have 32 elements.
            unsafe { launch!(device, kernel<<<1, LANES, 0>>>(data, output))? };
            Ok(device.synchronize()?)
        })))
    }));
    cases.extend(SHARED_BYTES.map(occupancy));
    cases.extend([1, SECTOR_WORDS].map(partial_stores));
    cases
}

fn case(name: String, prepare: impl Fn(&Device) -> anyhow::Result<Prepared> + 'static) -> Case {
    Case {
        name: format!("micro/{name}"),
        prepare: Box::new(move |device, _| prepare(device)),
    }
}

/// A pattern by its kernel.
fn of_pattern(pattern: Pattern) -> Case {
    let prepare = move |device: &Device| match pattern.kernel {
        Kernel::Load(1) => two(device, pattern, kernels::load::<u8, 1>()),
        Kernel::Load(4) => two(device, pattern, kernels::load::<f32, 1>()),
        Kernel::Load(8) => two(device, pattern, kernels::load::<f32, 2>()),
        Kernel::Load(_) => two(device, pattern, kernels::load::<f32, 4>()),
        Kernel::Store(1) => two(device, pattern, kernels::store::<u8, 1>()),
        Kernel::Store(4) => two(device, pattern, kernels::store::<f32, 1>()),
        Kernel::Store(8) => two(device, pattern, kernels::store::<f32, 2>()),
        Kernel::Store(_) => two(device, pattern, kernels::store::<f32, 4>()),
        Kernel::Reduce(Sum::U32) => two(device, pattern, kernels::reduce::<u32>()),
        Kernel::Reduce(Sum::F32) => two(device, pattern, kernels::reduce::<f32>()),
        Kernel::Atomic(Sum::U32) => atomic(device, pattern, kernels::atomic::<u32>()),
        Kernel::Atomic(Sum::F32) => atomic(device, pattern, kernels::atomic::<f32>()),
        Kernel::SharedLoad(4) => shared_load(device, pattern, kernels::shared_load::<1>()),
        Kernel::SharedLoad(8) => shared_load(device, pattern, kernels::shared_load::<2>()),
        Kernel::SharedLoad(_) => shared_load(device, pattern, kernels::shared_load::<4>()),
        Kernel::SharedStore(1) => two(device, pattern, kernels::shared_store::<u8, 1>()),
        Kernel::SharedStore(4) => two(device, pattern, kernels::shared_store::<u32, 1>()),
        Kernel::SharedStore(8) => two(device, pattern, kernels::shared_store::<u32, 2>()),
        Kernel::SharedStore(_) => two(device, pattern, kernels::shared_store::<u32, 4>()),
        Kernel::SharedAtomic => two(device, pattern, kernels::shared_atomic()),
        Kernel::AsyncCopy(4) => two(device, pattern, kernels::async_copy::<1>()),
        Kernel::AsyncCopy(8) => two(device, pattern, kernels::async_copy::<2>()),
        Kernel::AsyncCopy(_) => two(device, pattern, kernels::async_copy::<4>()),
    };
    case(pattern.name(), prepare)
}

/// The index of each lane.
fn indices(device: &Device, pattern: Pattern) -> Result<DeviceBuffer<u32>, DeviceError> {
    let indices = (0..LANES).map(|lane| (pattern.index)(lane).unwrap_or(IDLE));
    device.upload(&indices.collect::<Vec<_>>())
}

/// A kernel with indices, data and an output.
fn two<T: Element, U: Element>(
    device: &Device,
    pattern: Pattern,
    kernel: Handle<(Global<u32>, Global<T>, GlobalMut<U>)>,
) -> anyhow::Result<Prepared> {
    let indices = indices(device, pattern)?;
    let data = device.zeros::<T>(ELEMENTS)?;
    let mut output = device.zeros::<U>(ELEMENTS)?;
    let device = device.clone();
    Ok(Prepared::Product(Box::new(move || {
        let (indices, data) = (indices.read_only(), data.read_only());
        // SAFETY: there is an index for each lane, and each buffer has more elements than any index needs.
        unsafe { launch!(device, kernel<<<1, LANES, 0>>>(indices, data, output.mutable()))? };
        Ok(device.synchronize()?)
    })))
}

/// Indices, data, sums and their values before.
type AtomicArguments<T> = (Global<u32>, Global<T>, GlobalMut<T>, GlobalMut<T>);

/// Additions in global memory with their results.
fn atomic<T: Element>(
    device: &Device,
    pattern: Pattern,
    kernel: Handle<AtomicArguments<T>>,
) -> anyhow::Result<Prepared> {
    let indices = indices(device, pattern)?;
    let data = device.zeros::<T>(ELEMENTS)?;
    let mut sums = device.zeros::<T>(ELEMENTS)?;
    let mut output = device.zeros::<T>(ELEMENTS)?;
    let device = device.clone();
    Ok(Prepared::Product(Box::new(move || {
        let (indices, data) = (indices.read_only(), data.read_only());
        let (sums, output) = (sums.mutable(), output.mutable());
        // SAFETY: there is an index for each lane, and each buffer has more elements than any index needs.
        unsafe { launch!(device, kernel<<<1, LANES, 0>>>(indices, data, sums, output))? };
        Ok(device.synchronize()?)
    })))
}

/// Loads from shared memory.
fn shared_load(
    device: &Device,
    pattern: Pattern,
    kernel: Handle<(Global<u32>, GlobalMut<u32>)>,
) -> anyhow::Result<Prepared> {
    let indices = indices(device, pattern)?;
    let mut output = device.zeros::<u32>(ELEMENTS)?;
    let device = device.clone();
    Ok(Prepared::Product(Box::new(move || {
        let (indices, output) = (indices.read_only(), output.mutable());
        // SAFETY: there is an index for each lane, within the array in shared memory.
        unsafe { launch!(device, kernel<<<1, LANES, 0>>>(indices, output))? };
        Ok(device.synchronize()?)
    })))
}

/// A block with that much dynamic shared memory.
fn occupancy(shared_bytes: u32) -> Case {
    case(format!("occupancy/{shared_bytes}"), move |device| {
        let mut output = device.zeros::<u32>(THREADS as usize)?;
        let kernel = kernels::occupancy();
        let device = device.clone();
        Ok(Prepared::Product(Box::new(move || {
            let output = output.mutable();
            // SAFETY: there is shared memory for a word for each thread, and as many words in the output.
            unsafe { launch!(device, kernel<<<1, THREADS, shared_bytes>>>(output))? };
            Ok(device.synchronize()?)
        })))
    })
}

/// Stores of single words into sectors: the first `words` of each.
fn partial_stores(words: u32) -> Case {
    case(format!("partial_stores/{words}_words"), move |device| {
        let mut output = device.zeros::<u32>((SECTORS * SECTOR_WORDS) as usize)?;
        let kernel = kernels::partial_stores();
        let device = device.clone();
        Ok(Prepared::Product(Box::new(move || {
            let (blocks, threads) = STORING;
            let output = output.mutable();
            // SAFETY: the output has all words of the sectors, and the launch is the kernel's.
            unsafe { launch!(device, kernel<<<blocks, threads, 0>>>(SECTORS, words, output))? };
            Ok(device.synchronize()?)
        })))
    })
}
