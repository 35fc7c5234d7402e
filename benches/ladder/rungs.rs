//! The rungs of each family: what the tables of the kernels say of them.

use serde::Serialize;
use warprow::spgemm::SpgemmKernel;
use warprow::{GemmKernel, SpmmKernel};
use warprow_kernels::spgemm as spgemm_kernels;

/// The name of what SpGEMM runs by default, the rung after its ladder.
const SPGEMM_DEFAULT: &str = "default";

/// A family of kernels with a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Sparse times dense.
    Spmm,
    /// Sparse times sparse.
    Spgemm,
    /// XW, a tall and narrow matrix times a small one.
    Gemm,
}

/// A rung of a ladder. The ladder is a tree: the parent is the rung that this one continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rung {
    /// Its family.
    pub family: Family,
    /// Its name.
    #[serde(rename = "rung")]
    pub name: &'static str,
    /// The name of its parent; none for the root.
    pub parent: Option<&'static str>,
    /// What it does, in one line.
    pub idea: &'static str,
}

impl Rung {
    /// The rung of a kernel of SpMM.
    pub fn of_spmm(kernel: SpmmKernel) -> Self {
        Self {
            family: Family::Spmm,
            name: kernel.name(),
            parent: kernel.parent().map(SpmmKernel::name),
            idea: kernel.summary(),
        }
    }

    /// A rung of SpGEMM; for none, what runs by default.
    pub fn of_spgemm(kernel: Option<SpgemmKernel>) -> Self {
        let (name, parent, idea) = match kernel {
            Some(kernel) => (kernel.name(), kernel.parent(), kernel.summary()),
            None => (
                SPGEMM_DEFAULT,
                spgemm_kernels::PARENT,
                spgemm_kernels::SUMMARY,
            ),
        };
        Self {
            family: Family::Spgemm,
            name,
            parent: parent.map(SpgemmKernel::name),
            idea,
        }
    }

    /// The rung of a kernel of XW.
    pub fn of_gemm(kernel: GemmKernel) -> Self {
        Self {
            family: Family::Gemm,
            name: kernel.name(),
            parent: kernel.parent().map(GemmKernel::name),
            idea: kernel.summary(),
        }
    }
}

/// The rungs of SpGEMM with what runs by default, which is none of [`SpgemmKernel`].
pub fn spgemm_rungs() -> impl Iterator<Item = Option<SpgemmKernel>> {
    SpgemmKernel::ALL.iter().copied().map(Some).chain([None])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rungs of each family, in their order.
    fn ladders() -> [Vec<Rung>; 3] {
        [
            SpmmKernel::ALL.iter().copied().map(Rung::of_spmm).collect(),
            spgemm_rungs().map(Rung::of_spgemm).collect(),
            GemmKernel::ALL.iter().copied().map(Rung::of_gemm).collect(),
        ]
    }

    #[test]
    fn a_ladder_has_one_root_and_every_other_rung_stands_after_its_parent() {
        for ladder in ladders() {
            for (index, rung) in ladder.iter().enumerate() {
                // A parent that stands before its children excludes circles, too.
                let before = |parent| ladder[..index].iter().any(|other| other.name == parent);
                assert_eq!(rung.parent.is_some_and(before), index > 0, "{rung:?}");
            }
        }
    }

    #[test]
    fn every_rung_has_a_name_of_its_own_and_an_idea_of_one_line() {
        for ladder in ladders() {
            for (index, rung) in ladder.iter().enumerate() {
                assert!(ladder[..index].iter().all(|other| other.name != rung.name));
                assert!(!rung.idea.is_empty() && !rung.idea.contains(['\n', '|']));
            }
        }
    }
}
