//! What a plan chose beside the kernel: blocks of columns, lanes, and the size of tasks; what the caller asks for goes before the [`planner`](super::planner).

use super::items::AtATime;
use super::planner::{LINE, Planner, RowOfX};
use super::{SpmmElement, SpmmOptions, task_size};
use crate::csr::DevicePattern;
use crate::error::Error;
use std::fmt;
use warprow_kernels::spmm::product::vector;
use warprow_kernels::spmm::{Ending, ItemKind, Reduction, Shape, SpmmKernel};

/// What a plan chose beside the kernel.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    /// Blocks of columns.
    pub(super) blocks: u32,
    /// Lanes asked for; what else decides is the planner.
    lanes: Option<u32>,
    /// For kernels on tasks, on a device whose cache is known.
    planner: Option<Planner>,
    /// Whether the kernel has these choices.
    any: bool,
}

impl Choices {
    /// Chooses for a matrix that is not cut yet.
    pub(super) fn make<E: SpmmElement>(
        a: &DevicePattern,
        planner: Option<Planner>,
        kernel: SpmmKernel,
        options: SpmmOptions,
    ) -> Self {
        let any = kernel.items() == ItemKind::Tasks;
        let in_blocks =
            any && size_of::<E>() == size_of::<E::Sum>() && !options.reduction.is_extremum();
        let best = || planner.as_ref().map_or(1, Planner::column_blocks);
        let blocks = match options.column_blocks {
            _ if !in_blocks => 1,
            // A block has a column at least.
            Some(blocks) => blocks.clamp(1, a.cols.max(1)),
            None => best(),
        };
        Self {
            blocks,
            lanes: options.lanes,
            planner,
            any,
        }
    }

    /// Steps of a task, at most.
    pub(super) fn task_size(&self) -> Option<u32> {
        self.planner.as_ref().and_then(Planner::task_size)
    }

    /// What the device runs at a time with the number of features that is planned for, if there is one, and the matrix is in one block and so small
    /// that this may be all of it.
    ///
    /// Small tasks that are joined are better where many rows are cut and it is instructions that take the time, as a load brings a lane one element, or
    /// elements of 16 bits are made f32 first: on an H200 169,343 rows of 1.2 million nonzeros with hubs took 1.03 to 1.07 times as long in
    /// tasks that all run at a time with 33 features, and 1.04 times in f16 with 128.
    pub(super) fn at_a_time<E: SpmmElement>(
        &self,
        a: &DevicePattern,
        options: SpmmOptions,
        ending: Ending,
    ) -> Result<Option<AtATime>, Error> {
        let (Some(features @ 1..), 1) = (options.features, self.blocks) else {
            return Ok(None);
        };
        let reduction = options.reduction;
        let Some(lanes) = self.lanes::<E>(features, reduction, ending) else {
            return Ok(None);
        };
        if !task_size::may_run_at_once(a) {
            return Ok(None);
        }
        let shape = Shape {
            rows: a.rows,
            items: 1,
            cols: a.cols,
            features,
            lanes,
        };
        let handle = vector::handle::<E>(shape, reduction, ending);
        let config = vector::launch::<E>(shape, reduction, ending);
        let blocks = a.device().blocks_at_a_time(&handle, &config)?;
        let of_block = u64::from(vector::items_of_block(lanes));
        let is_narrow = size_of::<E>() == 2 || vector::width::<E>(features, reduction) == 1;
        Ok(blocks.map(|blocks| AtATime {
            tasks: blocks * of_block / u64::from(config.grid.y),
            // Sub-warps of 8 lanes join none.
            prefers_joined: lanes > 8 && is_narrow,
        }))
    }

    /// Lanes of a sub-warp for so many features and such ends of rows.
    pub(super) fn lanes<E: SpmmElement>(
        &self,
        features: u32,
        reduction: Reduction,
        ending: Ending,
    ) -> Option<u32> {
        if !self.any {
            return None;
        }
        let row = RowOfX::of::<E>(features, reduction, ending);
        let there_are = row.there_are(self.blocks);
        let wanted = self.lanes.unwrap_or_else(|| match &self.planner {
            Some(planner) => planner.lanes(row, self.blocks),
            None => row.lanes(there_are),
        });
        there_are.at_most(wanted)
    }
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(planner) = &self.planner {
            let held = |blocks| 100.0 * planner.l2_hits(LINE, blocks);
            write!(
                f,
                "; the L2 cache holds the 128-byte tiles of X of {:.0} % of the nonzeros",
                held(1)
            )?;
            if self.blocks > 1 {
                write!(f, ", of {:.0} % block by block", held(self.blocks))?;
            }
        }
        Ok(())
    }
}
