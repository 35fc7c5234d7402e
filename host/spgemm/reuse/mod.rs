//! The product map, cached on the device.
//!
//! The first run of a numeric phase finds which nonzeros each product multiplies, and where in C it is added. Later
//! runs read this map instead of sorting and searching again.

mod chunk_map;
mod entry_map;
mod spread_map;

use super::analysis::row_lists::RowLists;
use crate::device::{Device, DeviceBuffer, DeviceError};
use crate::operand::OperandError;
pub use chunk_map::ChunkMap;
pub use entry_map::EntryMap;
pub use spread_map::SpreadMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use warprow_kernels::spgemm::{BinLimits, OperandPatterns, OutputPattern};

/// The cache takes at most the free memory divided by this.
const FREE_PARTS: u64 = 4;

/// The product map of a structure; the first run makes it.
#[derive(Debug)]
pub struct ProductMapCache(Mutex<State>);

/// The state of the cache.
#[derive(Debug)]
enum State {
    /// The next run makes the map, of at most so many bytes.
    Wanted(Option<u64>),
    /// The map; without parts if no run makes one.
    Found(Arc<ProductMap>),
}

/// The product map of a structure.
#[derive(Debug, Default)]
pub struct ProductMap {
    /// The products of searched rows, and of chunks of long rows.
    pub chunks: Option<ChunkMap>,
    /// The products of rows that are spread over the device if there is no map.
    pub spread: Option<SpreadMap>,
    /// The products of rows that are sorted if there is no map.
    pub entries: Option<EntryMap>,
}

/// A product: its operands, the rows by kernel, and C.
#[derive(Clone, Copy)]
pub struct MappedProduct<'a> {
    pub operands: OperandPatterns,
    pub lists: &'a RowLists,
    pub bin_limits: BinLimits,
    pub c: OutputPattern,
    /// Where each row of C starts.
    pub row_ptr: &'a DeviceBuffer<u32>,
    /// Entries of C.
    pub entries: usize,
}

impl ProductMapCache {
    /// A cache that stays empty.
    pub fn none() -> Self {
        Self(Mutex::new(State::Found(Arc::default())))
    }

    /// A cache of at most `memory` bytes; default: a part of the free memory.
    pub fn within(memory: Option<u64>) -> Self {
        Self(Mutex::new(State::Wanted(memory)))
    }

    /// The map, if it has been made; it may have no parts.
    pub fn known(&self) -> Option<Arc<ProductMap>> {
        // A run that makes it holds the lock meanwhile.
        match self.0.try_lock() {
            Ok(state) => state.map(),
            Err(TryLockError::Poisoned(state)) => state.into_inner().map(),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The map, with the parts for which there is room. The first run makes it that is not recorded; a recording made
    /// before that run has no map.
    pub fn find(
        &self,
        device: &Device,
        product: MappedProduct<'_>,
    ) -> Result<Arc<ProductMap>, OperandError> {
        let mut state = self.lock();
        if let State::Wanted(memory) = *state
            && !device.is_recording()
        {
            let map = ProductMap::make(device, product, memory)?;
            *state = State::Found(Arc::new(map));
        }
        Ok(state.map().unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn map(&self) -> Option<Arc<ProductMap>> {
        match self {
            Self::Found(map) => Some(Arc::clone(map)),
            Self::Wanted(_) => None,
        }
    }
}

impl ProductMap {
    /// Makes the parts that take at most `memory` bytes and a quarter of the free memory together. It waits for the
    /// device, but not for the last kernels.
    fn make(
        device: &Device,
        product: MappedProduct<'_>,
        memory: Option<u64>,
    ) -> Result<Self, OperandError> {
        let free = device.memory()?.map_or(u64::MAX, |memory| memory.free);
        let most = (free / FREE_PARTS).min(memory.unwrap_or(u64::MAX));
        let chunks = if_there_is_memory(ChunkMap::make(device, product, most))?;
        let most = most.saturating_sub(chunks.as_ref().map_or(0, ChunkMap::bytes));
        let spread = if_there_is_memory(SpreadMap::make(device, product, most))?;
        let most = most.saturating_sub(spread.as_ref().map_or(0, SpreadMap::bytes));
        let entries = if_there_is_memory(EntryMap::make(device, product, most))?;
        Ok(Self {
            chunks,
            spread,
            entries,
        })
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> u64 {
        let chunks = self.chunks.as_ref().map_or(0, ChunkMap::bytes);
        let spread = self.spread.as_ref().map_or(0, SpreadMap::bytes);
        chunks + spread + self.entries.as_ref().map_or(0, EntryMap::bytes)
    }
}

/// The part, or none if the device had too little memory for it.
fn if_there_is_memory<T>(part: Result<Option<T>, OperandError>) -> Result<Option<T>, OperandError> {
    match part {
        Err(OperandError::Device(DeviceError::OutOfMemory { .. })) => Ok(None),
        part => part,
    }
}
