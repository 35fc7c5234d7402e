//! The symbolic phase: which kernel takes which rows, and their launches.

use super::lists::Lists;
use super::numeric::EntrySizes;
use super::operands::operands;
use crate::csr::{DevicePattern, extent};
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use crate::scan::Scan;
use std::sync::Arc;
use warprow_kernels::spgemm::bins::{BINS, symbolic as bin};
use warprow_kernels::spgemm::{
    Borders, Operands, bitmap_rows, copy, hash_rows, run_rows, sort_rows, work,
};

/// What the symbolic phase finds out, for the numeric one and for the user.
#[derive(Debug)]
pub(super) struct Structure {
    /// The pattern of C.
    pub pattern: Arc<DevicePattern>,
    /// What each row costs.
    pub work: DeviceBuffer<u32>,
    /// The extents of the rows of B.
    pub extents: DeviceBuffer<u32>,
    /// Products in all.
    pub products: u64,
    /// The rows by kernel.
    pub lists: Lists,
    /// What the numeric phase makes its lists of.
    pub sizes: EntrySizes,
}

/// The structure of `C = A B`.
pub(super) fn structure(
    a: &DevicePattern,
    b: &DevicePattern,
    borders: Borders,
) -> Result<Structure, Error> {
    let device = &a.device;
    let RowCosts {
        work,
        extents,
        words,
        mut starts,
        mut row_ptr,
        counts,
    } = row_costs(a, b, borders)?;
    let operands = operands(a, b, &extents);
    let host_counts = counts.download()?;
    let total = |at: u32| {
        let at = (BINS + 2 * at) as usize;
        u64::from(host_counts[at]) | u64::from(host_counts[at + 1]) << 32
    };
    let (products, bound) = (total(0), total(1));
    let lists = Lists::make(device, a.rows, &words, &counts, &host_counts)?;
    let staged_entries = usize::try_from(bound)
        .ok()
        .filter(|&bound| u32::try_from(bound).is_ok());
    let staged_entries = staged_entries.ok_or(Error::TooLarge {
        what: "the number of entries that C may have, by its products",
        found: bound.into(),
        most: u32::MAX.into(),
    })?;
    let mut scan = Scan::new(device, starts.len())?;
    scan.run(&mut starts)?;
    let mut staged = device.uninitialized::<u32>(staged_entries)?;
    Phase {
        device,
        operands,
        lists: &lists,
        work: &work,
        starts: &starts,
    }
    .launch(&mut staged, &mut row_ptr)?;
    // What the numeric phase wants to know is launched before the host waits for the number of entries.
    scan.run(&mut row_ptr)?;
    let sizes = EntrySizes::launch(a, &work, &row_ptr, borders)?;
    let entries = extent("the number of entries of C", scan.total()? as usize)?;
    let mut col_idx = device.uninitialized::<u32>(entries as usize)?;
    for (bins, handle, block_each) in [
        (bin::COPY..bin::BITMAP, copy::copy_staged::<0>(), false),
        (bin::BITMAP..bin::END, copy::copy_staged::<1>(), true),
    ] {
        let Some(items) = lists.items(bins) else {
            continue;
        };
        let arguments = (
            items,
            starts.read_only(),
            staged.read_only(),
            row_ptr.read_only(),
            col_idx.mutable(),
        );
        // SAFETY: the kernels before have put each row's columns from its start on; there is room for all entries.
        unsafe { device.launch(&handle, copy::launch(items.count, block_each), arguments)? };
    }
    Ok(Structure {
        pattern: Arc::new(DevicePattern {
            device: device.clone(),
            rows: a.rows,
            cols: b.cols,
            row_ptr,
            col_idx,
        }),
        work,
        extents,
        products,
        lists,
        sizes,
    })
}

/// What each row costs.
pub(super) struct RowCosts {
    /// The work of each row.
    pub work: DeviceBuffer<u32>,
    /// The extents of the rows of B.
    extents: DeviceBuffer<u32>,
    /// The bin of each row.
    words: DeviceBuffer<u32>,
    /// An upper bound of each row's entries, and a zero.
    starts: DeviceBuffer<u32>,
    /// Zeros: room for each row's entries, and one more.
    row_ptr: DeviceBuffer<u32>,
    /// The rows of each bin; behind them all products and the sum of all bounds, two numbers of 64 bits.
    counts: DeviceBuffer<u32>,
}

/// Finds out what each row costs.
pub(super) fn row_costs(
    a: &DevicePattern,
    b: &DevicePattern,
    borders: Borders,
) -> Result<RowCosts, Error> {
    let device = &a.device;
    let rows = a.rows as usize;
    let extents = extents(b)?;
    let mut work = device.uninitialized::<u32>(work::WORK * rows)?;
    let mut words = device.uninitialized::<u32>(rows)?;
    // The sums of both are wanted up to the last row's end.
    let mut starts = device.zeros::<u32>(rows + 1)?;
    let mut row_ptr = device.zeros::<u32>(rows + 1)?;
    let mut counts = device.zeros::<u32>(BINS as usize + 4)?;
    // Behind the counts, so that one copy fetches both.
    let totals = counts.mutable().offset(BINS as usize).cast::<u64>();
    let operands = operands(a, b, &extents);
    if a.rows > 0 {
        let arguments = (
            operands,
            borders,
            work::RowWorkOutput {
                work: work.mutable(),
                words: words.mutable(),
                bounds: starts.mutable(),
                entries: row_ptr.mutable(),
                counts: counts.mutable(),
                totals,
            },
        );
        // SAFETY: the operands are what they say, with as many rows of B as columns of A; the buffers have their lengths.
        unsafe { device.launch(&work::row_work(), work::launch_row_work(a.rows), arguments)? };
    }
    Ok(RowCosts {
        work,
        extents,
        words,
        starts,
        row_ptr,
        counts,
    })
}

/// Where each row of B starts and ends, its first and its last column.
fn extents(b: &DevicePattern) -> Result<DeviceBuffer<u32>, Error> {
    let mut extents = b.device.uninitialized::<u32>(4 * b.rows as usize)?;
    if b.rows > 0 {
        let arguments = (b.as_argument(), extents.mutable());
        // SAFETY: four numbers for each row.
        unsafe {
            b.device
                .launch(&work::row_extents(), work::launch_rows(b.rows), arguments)?;
        }
    }
    Ok(extents)
}

/// The launches of the phase.
struct Phase<'a> {
    device: &'a Device,
    operands: Operands,
    lists: &'a Lists,
    work: &'a DeviceBuffer<u32>,
    starts: &'a DeviceBuffer<u32>,
}

impl Phase<'_> {
    /// The columns of all rows, from each row's start on in `staged`, and their numbers.
    fn launch(
        &self,
        staged: &mut DeviceBuffer<u32>,
        entries: &mut DeviceBuffer<u32>,
    ) -> Result<(), Error> {
        let Self {
            device, operands, ..
        } = *self;
        let (work, starts) = (self.work.read_only(), self.starts.read_only());
        let (staged, entries) = (staged.mutable(), entries.mutable());
        let items = |bin| self.lists.items(bin..bin + 1);
        // The longest rows first: they are the last to end.
        if let Some(items) = self.lists.items(bin::BITMAP..bin::END) {
            let shared_bytes = device.properties().max_shared_bytes_per_block;
            let words = bitmap_rows::words(operands.b.cols, shared_bytes);
            let config = bitmap_rows::launch(items.count, words, false);
            let arguments = (operands, items, words, work, starts, staged, entries);
            // SAFETY: any row may have a bitmap.
            unsafe { device.launch(&bitmap_rows::bitmap_rows(), config, arguments)? };
        }
        for size in (0..bin::BITMAP - bin::NARROW).rev() {
            if let Some(items) = items(bin::NARROW + size) {
                let words = 512 << size;
                let config = bitmap_rows::launch(items.count, words, true);
                let arguments = (operands, items, words, work, starts, staged, entries);
                // SAFETY: any row may have a bitmap.
                unsafe { device.launch(&bitmap_rows::bitmap_rows(), config, arguments)? };
            }
        }
        for size in (0..bin::NARROW - bin::BLOCK_HASH).rev() {
            if let Some(items) = items(bin::BLOCK_HASH + size) {
                let capacity = 1024 << size;
                let config = hash_rows::launch(items.count, capacity, true);
                let arguments = (operands, items, capacity, work, starts, staged, entries);
                // SAFETY: rows of up to `capacity` products.
                unsafe { device.launch(&hash_rows::hash_rows::<1>(), config, arguments)? };
            }
        }
        for size in (0..bin::BLOCK_HASH - bin::WARP_HASH).rev() {
            if let Some(items) = items(bin::WARP_HASH + size) {
                let capacity = 256 << size;
                let config = hash_rows::launch(items.count, capacity, false);
                let arguments = (operands, items, capacity, work, starts, staged, entries);
                // SAFETY: rows of up to `capacity` products.
                unsafe { device.launch(&hash_rows::hash_rows::<0>(), config, arguments)? };
            }
        }
        if let Some(items) = items(bin::RUNS) {
            let config = run_rows::launch(items.count);
            let arguments = (operands, items, work, starts, staged, entries);
            // SAFETY: rows whose rows of B are runs.
            unsafe { device.launch(&run_rows::run_rows(), config, arguments)? };
        }
        for (size, handle) in [
            (4, sort_rows::sort_long_rows::<4>()),
            (3, sort_rows::sort_long_rows::<2>()),
        ] {
            if let Some(items) = items(bin::SORT + size) {
                let config = sort_rows::launch(items.count, 32);
                let arguments = (operands, items, starts, staged, entries);
                // SAFETY: rows of up to 128 and 64 products.
                unsafe { device.launch(&handle, config, arguments)? };
            }
        }
        for (size, lanes, handle) in [
            (2, 32, sort_rows::sort_rows::<32>()),
            (1, 16, sort_rows::sort_rows::<16>()),
            (0, 8, sort_rows::sort_rows::<8>()),
        ] {
            if let Some(items) = items(bin::SORT + size) {
                let config = sort_rows::launch(items.count, lanes);
                let arguments = (operands, items, starts, staged, entries);
                // SAFETY: rows of up to `lanes` products.
                unsafe { device.launch(&handle, config, arguments)? };
            }
        }
        if let Some(items) = items(bin::COPY) {
            let config = copy::launch(items.count, false);
            let arguments = (operands, items, starts, staged, entries);
            // SAFETY: rows of one nonzero of A.
            unsafe { device.launch(&copy::copy_columns(), config, arguments)? };
        }
        Ok(())
    }
}
