//! Loads, stores and shared memory.

use std::panic::Location;

use crate::block::Lane;
use crate::block::current::current;
use crate::block::recording::{load_kind, store_kind};
use crate::counters::Instruction;
use crate::fault::{AccessKind, FaultKind};
use crate::lane::access::Access;
use crate::memory::shared::{BASE, Element};
use crate::memory::word::{self, Word};
use crate::types::Space;

/// Loads `N` consecutive words. The address must be a multiple of their total size.
#[inline(always)]
#[track_caller]
pub fn load<W: Word, const N: usize>(space: Space, address: u64) -> [W; N] {
    load_at(current(), space, address, Location::caller())
}

/// [`load`] by `lane`; a fault is reported at `location`.
#[inline(never)]
fn load_at<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> [W; N] {
    let instruction = Instruction::access(load_kind(space), size_of::<[W; N]>());
    if !lane.access_step(instruction, address, location) {
        return [W::narrow(0); N];
    }
    load_now(lane, space, address, location)
}

/// Does [`load_at`] for what is no load instruction of the kernel.
#[inline(always)]
pub(crate) fn load_unrecorded<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> [W; N] {
    if !lane.step(location) {
        return [W::narrow(0); N];
    }
    load_now(lane, space, address, location)
}

#[inline(always)]
fn load_now<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> [W; N] {
    let access = access::<W, N>(lane, space, address, location);
    if space == Space::Shared {
        let (storage, place) = access.resolve_shared();
        // SAFETY: `resolve_shared` has checked that the access lies in valid memory, which only this worker uses, and
        // that it is aligned. All bytes are valid integers.
        let read = || unsafe { storage.data().add(place as usize).cast::<[W; N]>().read() };
        if !access.lane.block().context().full {
            return read();
        }
        return access.check_shared(storage, place, AccessKind::Load, || (read(), false));
    }
    let (allocation, offset) = access.resolve();
    // SAFETY: `resolve` has checked that the access lies in valid memory and is aligned. All accesses to that memory
    // are those of `word`.
    let perform = || unsafe {
        let data = allocation.data().add(offset as usize);
        std::array::from_fn(|i| word::load(data.add(i * size_of::<W>())))
    };
    match &allocation.shadow {
        None => perform(),
        Some(shadow) if space == Space::GlobalReadOnly => {
            access.check_read_only(allocation, shadow, offset);
            perform()
        }
        Some(shadow) => access.check_global(allocation, shadow, offset, AccessKind::Load, || {
            (perform(), false)
        }),
    }
}

/// Stores `N` consecutive words. The address must be a multiple of their total size.
///
/// # Panics
///
/// If `space` is [`Space::GlobalReadOnly`].
#[inline(always)]
#[track_caller]
pub fn store<W: Word, const N: usize>(space: Space, address: u64, values: [W; N]) {
    store_at(current(), space, address, values, Location::caller());
}

/// [`store`] by `lane`; a fault is reported at `location`.
#[inline(never)]
fn store_at<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    values: [W; N],
    location: &'static Location<'static>,
) {
    let instruction = Instruction::access(store_kind(space), size_of::<[W; N]>());
    if lane.access_step(instruction, address, location) {
        store_now(lane, space, address, values, location);
    }
}

/// Does [`store_at`] for what is no store instruction of the kernel.
#[inline(always)]
pub(crate) fn store_unrecorded<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    values: [W; N],
    location: &'static Location<'static>,
) {
    if lane.step(location) {
        store_now(lane, space, address, values, location);
    }
}

#[inline(always)]
fn store_now<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    values: [W; N],
    location: &'static Location<'static>,
) {
    let access = Access {
        reads: false,
        ..access::<W, N>(lane, space, address, location)
    };
    if writable(space) == Space::Shared {
        let (storage, place) = access.resolve_shared();
        // SAFETY: as in `load_now`.
        let write = || unsafe {
            storage
                .data()
                .add(place as usize)
                .cast::<[W; N]>()
                .write(values)
        };
        if !access.lane.block().context().full {
            return write();
        }
        return access.check_shared(storage, place, AccessKind::Store, || (write(), true));
    }
    let (allocation, offset) = access.resolve();
    // SAFETY: as in `load_now`.
    let perform = || unsafe { word::store(allocation.data().add(offset as usize), values) };
    match &allocation.shadow {
        None => perform(),
        Some(shadow) => {
            access.check_global(allocation, shadow, offset, AccessKind::Store, || {
                (perform(), true)
            });
        }
    }
}

#[inline(always)]
pub(super) fn access<'a, W, const N: usize>(
    lane: &'a Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> Access<'a> {
    const { assert!(matches!(N, 1 | 2 | 4), "1, 2 or 4 words at a time") };
    Access {
        lane,
        space,
        address,
        bytes: (N * size_of::<W>()) as u64,
        reads: true,
        location,
    }
}

#[inline(always)]
#[track_caller]
pub(super) fn writable(space: Space) -> Space {
    assert!(
        space != Space::GlobalReadOnly,
        "read-only memory cannot be written"
    );
    space
}

/// The address of a static variable in shared memory, the same for all threads of the block. `site` identifies the
/// variable.
///
/// # Panics
///
/// If a site is used with two sizes or alignments, or the alignment is no power of two up to 1024.
#[track_caller]
pub fn shared_static(site: usize, bytes: u32, align: u32) -> u64 {
    static_array(site, bytes, align, ("", 0))
}

/// Does [`shared_static`] for an array of `bytes` bytes of elements. Reports count in elements; `element` is the name
/// of their type, and their size in bytes.
#[track_caller]
pub fn shared_array(site: usize, bytes: u32, align: u32, element: (&'static str, u32)) -> u64 {
    static_array(site, bytes, align, element)
}

#[track_caller]
fn static_array(site: usize, bytes: u32, align: u32, element: Element) -> u64 {
    let (lane, location) = (current(), Location::caller());
    if !lane.step(location) {
        return BASE;
    }
    let shared = &lane.block().shared;
    match shared.variable(site, bytes, align, element) {
        Ok(address) => address,
        Err((what, found, most)) => {
            let most = u64::from(most);
            lane.fault(FaultKind::SharedLimit { what, found, most }, location)
        }
    }
}

/// The address, a multiple of 1024, and the size in bytes of the dynamic shared memory of the launch.
#[track_caller]
pub fn shared_dynamic() -> (u64, u32) {
    current().block().shared.dynamic()
}
