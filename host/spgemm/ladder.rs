//! The rungs of the ladder before the product: hash tables, a warp a row, rows that come out unsorted.

use super::analysis::row_costs::{RowCosts, row_costs};
use super::analysis::row_lists::RowLists;
use super::options::SpgemmOptions;
use super::products::operands::check_operands;
use crate::csr::{CsrMatrix, DeviceCsr, DevicePattern};
use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use crate::primitives::scan;
use sprs::CsMatI;
pub use warprow_kernels::spgemm::ladder::SpgemmKernel;
use warprow_kernels::spgemm::ladder::fitted_table;
use warprow_kernels::spgemm::ladder::fitted_table::bin;
use warprow_kernels::spgemm::ladder::{Output, dynamic_table, fixed_table, split_table};
use warprow_kernels::spgemm::products::bins::BINS;
use warprow_kernels::spgemm::{Factors, OperandPatterns};

/// Bytes of a value: the rungs compute in f32.
const VALUE_BYTES: u32 = size_of::<f32>() as u32;

/// A product on a device whose rows are not sorted by column.
#[derive(Debug)]
pub struct UnsortedCsr {
    shape: (usize, usize),
    row_ptr: DeviceBuffer<u32>,
    col_idx: DeviceBuffer<u32>,
    values: DeviceBuffer<f32>,
}

impl UnsortedCsr {
    /// Entries.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Row pointers, columns and values as they are on the device.
    pub fn parts(&self) -> (&DeviceBuffer<u32>, &DeviceBuffer<u32>, &DeviceBuffer<f32>) {
        (&self.row_ptr, &self.col_idx, &self.values)
    }

    /// The matrix on the host, its rows sorted there.
    ///
    /// # Errors
    ///
    /// A launch that failed before; a host without memory for it.
    pub fn download_sorted(&self) -> Result<CsrMatrix<f32>, OperandError> {
        let row_ptr = self.row_ptr.download()?;
        let (columns, values) = (self.col_idx.download()?, self.values.download()?);
        let sorted: Vec<(u32, f32)> = parallel::flat_map(self.shape.0, |row, sorted| {
            let row = row_ptr[row] as usize..row_ptr[row + 1] as usize;
            let (columns, values) = (&columns[row.clone()], &values[row]);
            let first = sorted.len();
            sorted.extend(columns.iter().copied().zip(values.iter().copied()));
            sorted[first..].sort_unstable_by_key(|&(column, _)| column);
        });
        let (columns, values) = sorted.into_iter().unzip();
        Ok(CsMatI::new(self.shape, row_ptr, columns, values))
    }
}

/// The product `C = A B` by a rung of the ladder.
///
/// # Errors
///
/// Those of [`Spgemm::symbolic`](super::Spgemm::symbolic); a row that has more entries than the rung's table slots.
pub fn multiply_unsorted(
    kernel: SpgemmKernel,
    a: &DeviceCsr<f32>,
    b: &DeviceCsr<f32>,
) -> Result<UnsortedCsr, OperandError> {
    let factors = Factors::new(a.values().read_only(), b.values().read_only());
    let (a, b) = (a.pattern(), b.pattern());
    check_operands(a, b)?;
    let run = LadderRun {
        kernel,
        device: &a.device,
        a,
        b,
        shared_bytes: a.device.properties().max_shared_bytes_per_block,
    };
    let mut row_ptr = run.count()?;
    let entries = scan::exclusive_scan(&a.device, &mut row_ptr)? as usize;
    let mut c = UnsortedCsr {
        shape: (a.rows(), b.cols()),
        col_idx: a.device.uninitialized(entries)?,
        values: a.device.uninitialized(entries)?,
        row_ptr,
    };
    if a.rows > 0 {
        run.fill(factors, &mut c)?;
    }
    Ok(c)
}

/// A run of a rung: its operands and the limits of the device.
struct LadderRun<'a> {
    kernel: SpgemmKernel,
    device: &'a Device,
    a: &'a DevicePattern,
    b: &'a DevicePattern,
    shared_bytes: u32,
}

impl LadderRun<'_> {
    /// A and B; without extents, which these kernels do not read.
    fn operands(&self) -> OperandPatterns {
        OperandPatterns {
            a: self.a.as_argument(),
            b: self.b.as_argument(),
            extents: cuda_std::memory::Global::from_address(0),
        }
    }

    /// The entries of each row, and a zero.
    fn count(&self) -> Result<DeviceBuffer<u32>, OperandError> {
        let rows = self.a.rows;
        let mut entries = self.device.zeros::<u32>(rows as usize + 1)?;
        let mut longest = self.device.zeros::<u32>(1)?;
        let outputs = (entries.mutable(), longest.mutable());
        let (device, operands) = (self.device, self.operands());
        if rows == 0 {
            return Ok(entries);
        }
        let most = match self.kernel {
            SpgemmKernel::FixedTable => {
                let config = fixed_table::launch(rows);
                let arguments = (operands, outputs.0, outputs.1);
                // SAFETY: `multiply_unsorted` has checked the operands; `entries` has a number for each row, and
                // `longest` is one.
                unsafe { device.launch(&fixed_table::fixed_count(), config, arguments)? };
                fixed_table::SLOTS
            }
            SpgemmKernel::DynamicTable => {
                let slots = dynamic_table::slots(self.shared_bytes, VALUE_BYTES);
                let config = dynamic_table::launch(rows, slots, 0);
                let arguments = (operands, slots, outputs.0, outputs.1);
                // SAFETY: as for `fixed_count`; the launch has shared memory for tables of `slots` slots.
                unsafe { device.launch(&dynamic_table::dynamic_count(), config, arguments)? };
                slots
            }
            SpgemmKernel::FittedTable | SpgemmKernel::SplitTable => {
                let options = SpgemmOptions::default();
                let costs = row_costs(self.a, self.b, options.bin_limits::<f32>(device, rows))?;
                let lists = self.by_size(&costs)?;
                let most = dynamic_table::slots(self.shared_bytes, 0);
                for (items, slots) in by_slots(&lists) {
                    if slots > most && self.kernel == SpgemmKernel::SplitTable {
                        let config = split_table::launch(items.count, 0);
                        let len = config.grid.x as usize * slots as usize;
                        let mut tables = device.uninitialized::<u32>(len)?;
                        let tables = tables.mutable();
                        let arguments = (operands, items, slots, tables, outputs.0, outputs.1);
                        let handle = split_table::device_count();
                        // SAFETY: as for `fixed_count`; the items are rows of at most `slots` products, and `tables`
                        // has `slots` slots for each block.
                        unsafe { device.launch(&handle, config, arguments)? };
                        continue;
                    }
                    // A row whose products are too many may have few enough entries.
                    let slots = slots.min(most);
                    let config = dynamic_table::launch(items.count, slots, 0);
                    let arguments = (operands, items, slots, outputs.0, outputs.1);
                    let handle = fitted_table::fitted_count();
                    // SAFETY: as for `fixed_count`; the items are rows of A, and the launch has shared memory for
                    // tables of `slots` slots.
                    unsafe { device.launch(&handle, config, arguments)? };
                }
                match self.kernel {
                    SpgemmKernel::SplitTable => u32::MAX,
                    _ => dynamic_table::slots(self.shared_bytes, VALUE_BYTES),
                }
            }
            other => unreachable!("{} is none of the rungs above", other.name()),
        };
        let found = longest.download()?[0];
        if found > most {
            return Err(OperandError::TooLarge {
                what: "the number of entries of a row of C, counted up to the first one too many \
                       for the kernel's table,",
                found: found.into(),
                most: most.into(),
            });
        }
        Ok(entries)
    }

    /// Columns and values of all rows.
    fn fill(&self, factors: Factors<f32>, c: &mut UnsortedCsr) -> Result<(), OperandError> {
        let (device, operands, rows) = (self.device, self.operands(), self.a.rows);
        let row_ptr = c.row_ptr.read_only();
        let output = Output {
            row_ptr,
            col_idx: c.col_idx.mutable(),
            values: c.values.mutable(),
        };
        let most = dynamic_table::slots(self.shared_bytes, VALUE_BYTES);
        match self.kernel {
            SpgemmKernel::FixedTable => {
                let config = fixed_table::launch(rows);
                let handle = fixed_table::fixed_fill::<f32>();
                // SAFETY: the count before failed if a row had more entries than the table has slots; C has room for
                // all entries.
                unsafe { device.launch(&handle, config, (operands, factors, output))? };
            }
            SpgemmKernel::DynamicTable => {
                let config = dynamic_table::launch(rows, most, VALUE_BYTES);
                let handle = dynamic_table::dynamic_fill::<f32>();
                // SAFETY: the count before failed if a row had more entries than the table has slots; C has room for
                // all entries.
                unsafe { device.launch(&handle, config, (operands, factors, most, output))? };
            }
            SpgemmKernel::FittedTable | SpgemmKernel::SplitTable => {
                let mut words = device.uninitialized::<u32>(rows as usize)?;
                let mut counts = device.zeros::<u32>(BINS as usize)?;
                let arguments = (rows, 0, row_ptr, words.mutable(), counts.mutable());
                let config = fitted_table::launch_sizes(rows);
                // SAFETY: `row_ptr` has a number for each row and one more, `words` a number for each row, and `counts`
                // has `BINS` zeros.
                unsafe { device.launch(&fitted_table::sizes(), config, arguments)? };
                let lists = RowLists::make(device, rows, &words, &counts)?;
                for (items, slots) in by_slots(&lists) {
                    if slots <= most {
                        let config = dynamic_table::launch(items.count, slots, VALUE_BYTES);
                        let arguments = (operands, factors, items, slots, output);
                        let handle = fitted_table::fitted_fill::<f32>();
                        // SAFETY: `sizes` put only rows of at most `slots` entries into this list, and the launch has
                        // shared memory for so many.
                        unsafe { device.launch(&handle, config, arguments)? };
                        continue;
                    }
                    let shared = slots <= dynamic_table::slots(self.shared_bytes, 0);
                    let config = split_table::launch(items.count, if shared { slots } else { 0 });
                    let len = config.grid.x as usize * slots as usize;
                    let mut tables = device.uninitialized::<u32>(if shared { 0 } else { len })?;
                    let mut sums = device.uninitialized::<f32>(len)?;
                    let (tables, sums) = (tables.mutable(), sums.mutable());
                    let arguments = (operands, factors, items, slots, tables, sums, output);
                    let handle = if shared {
                        split_table::split_fill::<f32, 0>()
                    } else {
                        split_table::split_fill::<f32, 1>()
                    };
                    // SAFETY: `sizes` put only rows of at most `slots` entries into this list; `sums`, and `tables` if
                    // it is used, have `slots` slots for each block.
                    unsafe { device.launch(&handle, config, arguments)? };
                }
            }
            other => unreachable!("{} is none of the rungs above", other.name()),
        }
        Ok(())
    }

    /// The rows by the size of their tables before their entries are counted.
    fn by_size(&self, costs: &RowCosts) -> Result<RowLists, OperandError> {
        let rows = self.a.rows;
        let mut words = self.device.uninitialized::<u32>(rows as usize)?;
        let mut counts = self.device.zeros::<u32>(BINS as usize)?;
        let arguments = (
            rows,
            1,
            costs.work.read_only(),
            words.mutable(),
            counts.mutable(),
        );
        let config = fitted_table::launch_sizes(rows);
        // SAFETY: `costs.work` has four numbers for each row, `words` a number for each row, and `counts` has `BINS`
        // zeros.
        unsafe {
            self.device
                .launch(&fitted_table::sizes(), config, arguments)?;
        }
        RowLists::make(self.device, rows, &words, &counts)
    }
}

/// The items of each size of tables, the largest first.
fn by_slots(
    lists: &RowLists,
) -> impl Iterator<Item = (warprow_kernels::spgemm::RowList, u32)> + use<'_> {
    (0..u32::BITS).rev().filter_map(|log| {
        let slots = 1 << log;
        lists
            .items(bin(slots)..bin(slots) + 1)
            .map(|items| (items, slots))
    })
}
