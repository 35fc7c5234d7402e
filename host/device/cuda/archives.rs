//! The archives of this crate's own kernels.

use crate::device::properties::Version;
use ptx_archive::{Archive, PtxVersion};
use std::sync::LazyLock;

/// The archives, a family each; `build.rs` writes the table.
const BYTES: &[&[u8]] = &include!(concat!(env!("OUT_DIR"), "/archives.rs"));

/// The archives, opened: their indices are read once in a process, each module when it is first wanted.
pub(super) static ARCHIVES: LazyLock<Vec<Archive>> = LazyLock::new(|| {
    let open = |&bytes: &&'static [u8]| Archive::open(bytes);
    let archives: Result<_, _> = BYTES.iter().map(open).collect();
    archives.expect("the build embeds archives that it has opened itself")
});

/// The PTX version that a driver must know for any of the kernels.
pub(super) fn least_version() -> Option<Version> {
    let modules = ARCHIVES.iter().flat_map(Archive::modules);
    modules.map(|module| ptx_version(module.version)).min()
}

/// A checksum of all archives.
pub(super) fn checksum() -> u32 {
    let checksums = ARCHIVES.iter().map(Archive::checksum);
    // An odd multiplier: the order counts, and no bit is lost.
    checksums.fold(0, |all, one| all.wrapping_mul(0x9e37_79b1) ^ one)
}

/// A PTX version of an index.
pub(super) fn ptx_version(PtxVersion { major, minor }: PtxVersion) -> Version {
    Version::new(major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_kernel_is_in_one_archive_for_every_gpu_that_it_may_be_launched_on() {
        let kernels: HashSet<&str> = cuda_std::kernel::instances()
            .map(cuda_std::kernel::Instance::name)
            .collect();
        for kernel in kernels {
            let holding = ARCHIVES
                .iter()
                .filter(|archive| archive.modules_of(kernel).next().is_some());
            assert_eq!(holding.count(), 1, "{kernel}");
            let of = |gpu| {
                ARCHIVES
                    .iter()
                    .find_map(|archive| archive.module_for(kernel, gpu))
            };
            assert!(of((9, 0)).is_some(), "{kernel} is not for sm_90");
        }
    }

    #[test]
    fn a_kernel_has_its_limit_of_registers_from_sm_90_on() {
        let kernel = "spmm_vector_f32_32_4_1";
        let text = |gpu| {
            let of = |archive: &Archive| Some(archive.text(archive.module_for(kernel, gpu)?));
            ARCHIVES.iter().find_map(of).unwrap().unwrap()
        };
        assert!(text((9, 0)).contains("\n.maxnreg 64\n{"));
        assert!(!text((8, 9)).contains(".maxnreg"));
    }
}
