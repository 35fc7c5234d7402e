//! The micro-kernels' patterns of addresses, and the counts that the emulator's rules give for them.

/// A micro-kernel, and the width of an access of a lane in bytes, or the type of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// A load from global memory.
    Load(u32),
    /// A store to global memory.
    Store(u32),
    /// An addition in global memory without a result.
    Reduce(Sum),
    /// An addition in global memory with a result.
    Atomic(Sum),
    /// A load from shared memory.
    SharedLoad(u32),
    /// A store to shared memory.
    SharedStore(u32),
    /// An addition in shared memory.
    SharedAtomic,
    /// An asynchronous copy to shared memory.
    AsyncCopy(u32),
}

/// The type of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    U32,
    F32,
}

/// A micro-kernel with an index for each lane.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The kernel.
    pub kernel: Kernel,
    /// The addresses in words.
    pub addresses: &'static str,
    /// The index of each lane, in words of 4 bytes, or in bytes for a width of 1; none: the lane takes no part.
    pub index: fn(u32) -> Option<u32>,
    /// Sectors of the access to global memory, or wavefronts of the access to shared memory.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test compares it"))]
    pub expected: u64,
}

impl Pattern {
    /// Its name, which no other has.
    pub fn name(&self) -> String {
        let kernel = match self.kernel {
            Kernel::Load(bytes) => format!("load_{bytes}"),
            Kernel::Store(bytes) => format!("store_{bytes}"),
            Kernel::Reduce(sum) => format!("red_{}", sum.name()),
            Kernel::Atomic(sum) => format!("atom_{}", sum.name()),
            Kernel::SharedLoad(bytes) => format!("shared_load_{bytes}"),
            Kernel::SharedStore(bytes) => format!("shared_store_{bytes}"),
            Kernel::SharedAtomic => "shared_atom".to_owned(),
            Kernel::AsyncCopy(bytes) => format!("cp_async_{bytes}"),
        };
        format!("{kernel}/{}", self.addresses)
    }
}

impl Sum {
    const fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::F32 => "f32",
        }
    }
}

const fn pattern(
    addresses: &'static str,
    kernel: Kernel,
    index: fn(u32) -> Option<u32>,
    expected: u64,
) -> Pattern {
    Pattern {
        kernel,
        addresses,
        index,
        expected,
    }
}

/// All patterns, in the order in which they run.
pub fn patterns() -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for kernel in [
        Kernel::Reduce(Sum::F32),
        Kernel::Reduce(Sum::U32),
        Kernel::Atomic(Sum::F32),
        Kernel::Atomic(Sum::U32),
    ] {
        patterns.extend([
            pattern("consecutive", kernel, Some, 4),
            pattern("every_second_word", kernel, |lane| Some(2 * lane), 8),
            pattern("one_word", kernel, |_| Some(8), 32),
            pattern("pairs", kernel, |lane| Some(lane / 2), 4),
            pattern("halves", kernel, |lane| Some(lane % 16), 4),
            pattern("a_sector_each", kernel, |lane| Some(8 * lane), 32),
        ]);
    }
    patterns.extend(GLOBAL);
    patterns.extend(SHARED);
    patterns
}

const GLOBAL: [Pattern; 17] = {
    use Kernel::{AsyncCopy, Load, Store};
    [
        pattern("consecutive", Load(1), Some, 1),
        pattern("consecutive", Load(4), Some, 4),
        pattern("one_word", Load(4), |_| Some(8), 1),
        pattern("a_sector_each", Load(4), |lane| Some(8 * lane), 32),
        pattern("consecutive", Load(8), |lane| Some(2 * lane), 8),
        pattern("consecutive", Load(16), |lane| Some(4 * lane), 16),
        pattern(
            "from_half_a_sector",
            Load(16),
            |lane| Some(4 * lane + 4),
            17,
        ),
        pattern("one_address", Load(16), |_| Some(8), 1),
        pattern("quarters", Load(16), |lane| Some(4 * (lane % 8)), 4),
        pattern("consecutive", Store(1), Some, 1),
        pattern("consecutive", Store(4), Some, 4),
        pattern("one_word", Store(4), |_| Some(8), 1),
        pattern("consecutive", Store(8), |lane| Some(2 * lane), 8),
        pattern("consecutive", Store(16), |lane| Some(4 * lane), 16),
        pattern("consecutive", AsyncCopy(4), Some, 4),
        pattern("a_sector_each", AsyncCopy(4), |lane| Some(8 * lane), 32),
        pattern("consecutive", AsyncCopy(16), |lane| Some(4 * lane), 16),
    ]
};

const SHARED: [Pattern; 29] = {
    use Kernel::{SharedAtomic, SharedLoad, SharedStore};
    [
        pattern("consecutive", SharedLoad(4), Some, 1),
        pattern("one_word", SharedLoad(4), |_| Some(8), 1),
        pattern("one_bank", SharedLoad(4), |lane| Some(32 * lane), 32),
        pattern("consecutive", SharedLoad(8), |lane| Some(2 * lane), 2),
        pattern("one_address", SharedLoad(8), |_| Some(8), 1),
        pattern("pairs", SharedLoad(8), |lane| Some(2 * (lane / 2)), 1),
        pattern("halves", SharedLoad(8), |lane| Some(2 * (lane % 16)), 2),
        pattern(
            "pairs_in_the_first_half",
            SharedLoad(8),
            first_half_in_pairs,
            2,
        ),
        pattern("even_lanes", SharedLoad(8), |lane| even(lane, lane), 1),
        pattern(
            "even_lanes_apart",
            SharedLoad(8),
            |lane| even(lane, 2 * lane),
            2,
        ),
        pattern(
            "first_half",
            SharedLoad(8),
            |lane| first(16, lane, 2 * lane),
            1,
        ),
        pattern("consecutive", SharedLoad(16), |lane| Some(4 * lane), 4),
        pattern("one_address", SharedLoad(16), |_| Some(8), 2),
        pattern("pairs", SharedLoad(16), |lane| Some(4 * (lane / 2)), 2),
        pattern("fours", SharedLoad(16), |lane| Some(4 * (lane / 4)), 2),
        pattern(
            "first_quarter",
            SharedLoad(16),
            |lane| first(8, lane, 4 * lane),
            1,
        ),
        pattern("rows_of_128", SharedLoad(16), |lane| Some(32 * lane), 32),
        pattern("rows_of_144", SharedLoad(16), |lane| Some(36 * lane), 4),
        pattern("one_word", SharedStore(1), |lane| Some(lane % 4), 1),
        pattern("consecutive", SharedStore(4), Some, 1),
        pattern("one_word", SharedStore(4), |_| Some(8), 1),
        pattern("one_bank", SharedStore(4), |lane| Some(32 * lane), 32),
        pattern("consecutive", SharedStore(8), |lane| Some(2 * lane), 2),
        pattern("one_address", SharedStore(8), |_| Some(8), 2),
        pattern("consecutive", SharedStore(16), |lane| Some(4 * lane), 4),
        pattern("consecutive", SharedAtomic, Some, 1),
        pattern("one_word", SharedAtomic, |_| Some(8), 32),
        pattern("quarters", SharedAtomic, |lane| Some(lane % 8), 4),
        pattern("one_bank", SharedAtomic, |lane| Some(32 * lane), 32),
    ]
};

/// Pairs of neighbours have one address in the first half of the warp, and each lane its own in the second.
fn first_half_in_pairs(lane: u32) -> Option<u32> {
    Some(2 * if lane < 16 { lane / 2 } else { lane })
}

/// The index, for even lanes.
fn even(lane: u32, index: u32) -> Option<u32> {
    lane.is_multiple_of(2).then_some(index)
}

/// The index, for the first `count` lanes.
fn first(count: u32, lane: u32, index: u32) -> Option<u32> {
    (lane < count).then_some(index)
}
