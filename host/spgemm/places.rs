//! Where the products of long rows come from and go, kept on the device for all runs of a structure.

use super::lists::Lists;
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use crate::scan::exclusive_scan;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use warprow_kernels::spgemm::products::bins::numeric as bin;
use warprow_kernels::spgemm::reuse::places::TILE;
use warprow_kernels::spgemm::reuse::{cut_pieces, place_products};
use warprow_kernels::spgemm::{Borders, Operands, Places as Argument, Structure};

/// Of the free memory they may take one part in so many.
const FREE_PARTS: u64 = 4;

/// The places of a structure's products, which its first run finds.
#[derive(Debug)]
pub(super) struct Kept(Mutex<State>);

/// What is known of places.
#[derive(Debug)]
enum State {
    /// The next run is to find them; so many bytes may be kept.
    Wanted(Option<u64>),
    /// None are kept.
    Declined,
    /// They are found.
    Found(Arc<Places>),
}

impl Kept {
    /// None ever.
    pub fn none() -> Self {
        Self(Mutex::new(State::Declined))
    }

    /// Those that take no more than so many bytes, if that is said.
    pub fn within(memory: Option<u64>) -> Self {
        Self(Mutex::new(State::Wanted(memory)))
    }

    /// The places, if they are known.
    pub fn known(&self) -> Option<Arc<Places>> {
        self.lock().places()
    }

    /// The places, if they are kept: the first run finds them, unless its launches are recorded.
    pub fn find(&self, device: &Device, of: Of<'_>) -> Result<Option<Arc<Places>>, Error> {
        let mut state = self.lock();
        if let State::Wanted(memory) = *state
            && !device.is_recording()
        {
            *state = match Places::find(device, of, memory) {
                Ok(Some(places)) => State::Found(Arc::new(places)),
                Ok(None) | Err(Error::OutOfMemory { .. }) => State::Declined,
                Err(error) => return Err(error),
            };
        }
        Ok(state.places())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn places(&self) -> Option<Arc<Places>> {
        match self {
            Self::Found(places) => Some(Arc::clone(places)),
            Self::Wanted(_) | Self::Declined => None,
        }
    }
}

/// The products of chunks of long rows.
#[derive(Debug)]
pub(super) struct Places {
    /// The first chunk in the lists.
    first: u32,
    tile_starts: DeviceBuffer<u32>,
    products: DeviceBuffer<u32>,
    begins: DeviceBuffer<u32>,
    before: DeviceBuffer<u32>,
    pieces: DeviceBuffer<u32>,
    places: DeviceBuffer<u16>,
}

/// What decides about them: the operands, their product, and the rows by kernel.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub operands: Operands,
    pub lists: &'a Lists,
    pub borders: Borders,
    pub c: Structure,
}

impl Places {
    /// Finds them out, if there are long rows and they take no more than `memory` bytes and a quarter of what is free. It waits
    /// for the device.
    fn find(device: &Device, of: Of<'_>, memory: Option<u64>) -> Result<Option<Self>, Error> {
        let Some(items) = of.lists.items(bin::RANK..bin::SPREAD) else {
            return Ok(None);
        };
        let chunks = items.count as usize;
        let mut products = device.uninitialized::<u32>(chunks)?;
        let mut tile_starts = device.zeros::<u32>(chunks + 1)?;
        let mut piece_starts = device.zeros::<u32>(chunks + 1)?;
        let Of {
            operands,
            borders: Borders { chunk, .. },
            c,
            ..
        } = of;
        let arguments = (
            operands,
            items,
            chunk,
            c,
            products.mutable(),
            tile_starts.mutable(),
            piece_starts.mutable(),
        );
        let config = cut_pieces::launch(items.count);
        // SAFETY: chunks of a product, and a number for each.
        unsafe { device.launch(&cut_pieces::count_pieces(), config, arguments)? };
        let totals = (|| {
            let tiles = exclusive_scan(device, &mut tile_starts)?;
            Ok((tiles, exclusive_scan(device, &mut piece_starts)?))
        })();
        let (tiles, pieces) = match totals {
            Ok(totals) => totals,
            Err(Error::TooLarge { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Words of what begins, the piece before, and places of two bytes.
        let tile_bytes = u64::from(TILE) / 8 + 4 + 2 * u64::from(TILE);
        let free = device.memory()?.map_or(u64::MAX, |memory| memory.free);
        let most = (free / FREE_PARTS).min(memory.unwrap_or(u64::MAX));
        if tiles * tile_bytes + 8 * pieces > most {
            return Ok(None);
        }
        let tiles = tiles as usize;
        let mut found = Self {
            first: items.first,
            tile_starts,
            products,
            begins: device.zeros(tiles * (TILE / 32) as usize)?,
            before: device.uninitialized(tiles)?,
            pieces: device.uninitialized(2 * pieces as usize)?,
            places: device.uninitialized(tiles * TILE as usize)?,
        };
        let argument = found.argument(items.first);
        let arguments = (
            operands,
            items,
            chunk,
            c,
            argument,
            piece_starts.read_only(),
            found.begins.mutable(),
            found.before.mutable(),
            found.pieces.mutable(),
        );
        // SAFETY: chunks of a product, with room for the pieces and tiles that were counted.
        unsafe { device.launch(&cut_pieces::cut_pieces(), config, arguments)? };
        found.place(device, of)?;
        Ok(Some(found))
    }

    /// Launches the kernels that find the places.
    fn place(&mut self, device: &Device, of: Of<'_>) -> Result<(), Error> {
        let Of {
            operands,
            lists,
            borders,
            c,
        } = of;
        if let Some(items) = lists.items(bin::RANK..bin::SEARCH) {
            let words = operands.b.cols.div_ceil(32).min(borders.rank_words);
            let config = place_products::launch_ranked(items.count, words);
            let (places, to) = (self.argument(items.first), self.places.mutable());
            let arguments = (operands, items, borders.chunk, c, places, to);
            // SAFETY: chunks that span no more than `words` words, and their pieces.
            unsafe { device.launch(&place_products::place_ranked(), config, arguments)? };
        }
        if let Some(items) = lists.items(bin::SEARCH..bin::SPREAD) {
            let config = place_products::launch_searched(items.count, borders.chunk);
            let (places, to) = (self.argument(items.first), self.places.mutable());
            let arguments = (operands, items, borders.chunk, borders.chunk, c, places, to);
            // SAFETY: chunks and their pieces.
            unsafe { device.launch(&place_products::place_searched(), config, arguments)? };
        }
        Ok(())
    }

    /// Those of the items of a launch, of which `first` is the first one in the lists.
    pub fn argument(&self, first: u32) -> Argument {
        let chunk = (first - self.first) as usize;
        Argument {
            tile_starts: self.tile_starts.read_only().offset(chunk),
            products: self.products.read_only().offset(chunk),
            begins: self.begins.read_only(),
            before: self.before.read_only(),
            pieces: self.pieces.read_only(),
            places: self.places.read_only(),
        }
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> u64 {
        let words = [
            &self.tile_starts,
            &self.products,
            &self.begins,
            &self.before,
            &self.pieces,
        ];
        let words: usize = words.iter().map(|words| words.len()).sum();
        4 * words as u64 + 2 * self.places.len() as u64
    }
}
