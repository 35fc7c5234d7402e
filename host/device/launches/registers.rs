//! The registers of this crate's kernels on each architecture, as NVIDIA's assembler gives them.
//!
//! `scripts/kernel-registers` writes the table. A driver's own compiler may give a kernel other numbers.

use crate::device::properties::Version;
use ptx_archive::Arch;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A comment line, then lines `kernel target registers static_shared_bytes`, sorted.
const TABLE: &str = include_str!("../../ptx/registers.txt");

/// What a kernel takes on one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::device) struct KernelRegisters {
    /// What it was assembled for.
    target: Arch,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of static shared memory of a block.
    pub static_shared_bytes: u32,
}

static OF_KERNELS: LazyLock<HashMap<&str, Vec<KernelRegisters>>> = LazyLock::new(|| {
    let mut of_kernels: HashMap<&str, Vec<KernelRegisters>> = HashMap::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let (kernel, registers) = parse(line).expect("a test reads the whole table");
        of_kernels.entry(kernel).or_default().push(registers);
    }
    of_kernels
});

fn parse(line: &str) -> Option<(&str, KernelRegisters)> {
    let mut words = line.split(' ');
    let kernel = words.next()?;
    let registers = KernelRegisters {
        target: words.next()?.parse().ok()?,
        registers: words.next()?.parse().ok()?,
        static_shared_bytes: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some((kernel, registers))
}

/// What a kernel takes on a GPU of that compute capability, or on the nearest older one in the table; `None` for a
/// kernel of another crate.
pub(in crate::device) fn registers_of(kernel: &str, gpu: Version) -> Option<KernelRegisters> {
    let of_targets = OF_KERNELS.get(kernel)?.iter();
    let on_gpu = of_targets.filter(|of| of.target.runs_on((gpu.major, gpu.minor)));
    on_gpu.max_by_key(|of| of.target).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_registers_of_every_kernel() {
        for instance in cuda_std::kernel::instances() {
            let found = registers_of(instance.name(), Version::new(9, 0));
            let found = found.unwrap_or_else(|| panic!("{} is not in the table", instance.name()));
            assert!((1..=255).contains(&found.registers), "{found:?}");
        }
    }

    #[test]
    fn a_gpu_has_the_registers_of_its_own_or_the_nearest_older_target() {
        let target = |kernel, major, minor| {
            registers_of(kernel, Version::new(major, minor)).map(|found| found.target)
        };
        let vector = "spmm_vector_f32_8_4_1";
        assert_eq!(target(vector, 7, 5), None);
        assert_eq!(target(vector, 8, 6), Some(Arch::SM80));
        assert_eq!(target(vector, 9, 0), Some(Arch::SM90));
        assert_eq!(target(vector, 12, 0), Some(Arch::SM90));
        assert_eq!(target("no_such_kernel", 9, 0), None);
    }
}
