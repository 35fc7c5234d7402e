//! What the assembler makes of each module: it takes it as it is, for its target and for every newer GPU, and spills
//! nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use cuda_builder::{Arch, KernelResources, Module, Ptxas};
use half::{bf16, f16};
use ptx_archive::{DEPENDENT, waiting};
use rayon::prelude::*;
use warprow_kernels::gemm::{GemmKernel, GemmProblem};
use warprow_kernels::matrix::Operand;

use super::{all, modules, skip};

/// The architectures from the least that the kernels support to the newest.
const ARCHITECTURES: [Arch; 4] = [Arch::SM80, Arch::SM90, Arch::SM100, Arch::SM120];

/// Registers of a multiprocessor, which a block shares out.
const REGISTERS: u32 = 1 << 16;

/// Into blocks of how many threads XW's kernels are launched at most, by their names, over problems that choose every
/// tile.
fn threads_of_xw() -> HashMap<String, u32> {
    fn add<T: Operand>(most: &mut HashMap<String, u32>, problem: GemmProblem) {
        let kernels = GemmKernel::ALL.iter();
        for &kernel in kernels.filter(|kernel| kernel.refusal::<T>(problem.depth).is_none()) {
            if let Some(plan) = kernel.plan::<T>(problem) {
                let block = plan.config.block;
                let most = most.entry(plan.kernel.name().to_owned()).or_default();
                *most = (*most).max(block.x * block.y * block.z);
            }
        }
    }
    let mut most = HashMap::new();
    for shared_bytes in [99 << 10, 163 << 10, 227 << 10] {
        for depth in [4, 16, 40, 100, 128, 256, 300, 400, 512, 602, 800, 1024] {
            for cols in [1, 16, 17, 41, 48, 49, 64, 65, 100, 128, 129, 1024] {
                let problem = GemmProblem {
                    rows: 1 << 20,
                    depth,
                    cols,
                    multiprocessors: 132,
                    shared_bytes,
                    instance: None,
                };
                add::<f32>(&mut most, problem);
                add::<f64>(&mut most, problem);
                add::<f16>(&mut most, problem);
                add::<bf16>(&mut most, problem);
            }
        }
    }
    most
}

/// Bytes that a thread has in local memory, or writes there, at most for the limit of registers of its kernel, on the
/// architecture where they are most; and the oldest target whose modules have the limit. With it the kernels of `spmm`
/// were measured to be no slower in the mean on sm_90, where they have up to 24 bytes, those of `vector_added` while
/// their additions were atomic. Those of `gemm` write there once for each tile, 8 bytes on sm_90; they were not measured
/// without the limit. That of `spgemm` writes outside its loops over products; it was not measured without the limit.
/// Newer architectures were not measured.
const SPILLED: [(&str, Arch, u32); 15] = [
    ("gemm_flat_fragments_f16_4", Arch::SM80, 16),
    ("gemm_flat_fragments_bf16_4", Arch::SM80, 16),
    ("spgemm_bitmap_rows_1", Arch::SM80, 8),
    ("spmm_in_step_f32_16_4_1", Arch::SM90, 24),
    ("spmm_in_step_f32_32_4_1", Arch::SM90, 24),
    ("spmm_vector_f32_32_4_1", Arch::SM90, 8),
    ("spmm_vector_any_order_f32_32_4_1", Arch::SM90, 8),
    ("spmm_vector_any_order_f32_16_4_1", Arch::SM90, 8),
    ("spmm_vector_f32_16_1_3", Arch::SM90, 20),
    ("spmm_vector_added_f32_32_4_1", Arch::SM90, 8),
    ("spmm_vector_added_f32_16_1_3", Arch::SM90, 28),
    ("spmm_vector_f16_8_8_1", Arch::SM90, 16),
    ("spmm_vector_f16_16_8_1", Arch::SM90, 24),
    ("spmm_vector_bf16_8_8_1", Arch::SM90, 16),
    ("spmm_vector_bf16_16_8_1", Arch::SM90, 24),
];

/// How many modules one run of the assembler takes: its start costs as much as a small kernel.
const MODULES_A_RUN: usize = 16;

/// The architectures that a module is assembled for: its target, and those of [`ARCHITECTURES`] that run it.
fn architectures_of(module: &Module) -> BTreeSet<Arch> {
    let newer = ARCHITECTURES
        .into_iter()
        .filter(|&arch| !module.target.is_specific() && arch > module.target);
    newer.chain([module.target]).collect()
}

/// Whether a thread may write so many bytes to local memory.
fn may_spill(module: &Module, kernel: &KernelResources) -> bool {
    let allowed = SPILLED
        .iter()
        .find(|(limited, least, _)| *limited == kernel.name && module.target >= *least);
    // A stack frame is an array that is not in registers, which costs as much.
    kernel.spill_store_bytes.max(kernel.stack_bytes) <= allowed.map_or(0, |&(.., bytes)| bytes)
}

/// A kernel of a module on one architecture.
pub struct Assembled {
    /// The kernel's module.
    pub module: Module,
    /// The architecture that it was assembled for.
    pub arch: Arch,
    /// What the kernel takes.
    pub kernel: KernelResources,
}

/// The assembler that is here, and all kernels on all architectures that run them; `None`, and a line that says so,
/// without an assembler. Tests share them: it takes a minute.
pub fn assembled() -> Option<(&'static Ptxas, &'static [Assembled])> {
    static ASSEMBLED: LazyLock<Result<(Ptxas, Vec<Assembled>), String>> = LazyLock::new(|| {
        let ptxas = Ptxas::find().map_err(|error| error.to_string())?;
        let all = assemble(&ptxas);
        Ok((ptxas, all))
    });
    match &*ASSEMBLED {
        Ok((ptxas, all)) => Some((ptxas, all)),
        Err(error) => {
            skip(error);
            None
        }
    }
}

fn assemble(ptxas: &Ptxas) -> Vec<Assembled> {
    let modules: Vec<(Module, String)> = all()
        .iter()
        .flat_map(|checked_in| modules(&checked_in.open()))
        .collect();
    // By target too, as modules for two targets have kernels of the same names.
    let mut runs: BTreeMap<(Arch, Arch), Vec<&(Module, String)>> = BTreeMap::new();
    for module in &modules {
        for arch in architectures_of(&module.0) {
            runs.entry((arch, module.0.target))
                .or_default()
                .push(module);
        }
    }
    let runs: Vec<(Arch, &[&(Module, String)])> = runs
        .iter()
        .flat_map(|(&(arch, _), modules)| modules.chunks(MODULES_A_RUN).map(move |run| (arch, run)))
        .collect();
    let scratch = tempfile::tempdir().unwrap();
    runs.par_iter()
        .flat_map_iter(|&(arch, run)| {
            // As the library loads them.
            let texts: Vec<String> = run
                .iter()
                .map(|(_, text)| match arch >= DEPENDENT {
                    true => waiting(text).unwrap(),
                    false => text.clone(),
                })
                .collect();
            let texts = texts.iter().map(String::as_str);
            let kernels = ptxas.assemble(texts, arch, scratch.path()).unwrap();
            let kernels: HashMap<String, KernelResources> = kernels
                .into_iter()
                .map(|kernel| (kernel.name.clone(), kernel))
                .collect();
            run.iter().flat_map(move |(module, _)| {
                let of_module = module.kernels.iter().map(|name| Assembled {
                    module: module.clone(),
                    arch,
                    kernel: kernels[name].clone(),
                });
                of_module.collect::<Vec<_>>()
            })
        })
        .collect()
}

#[test]
fn every_module_assembles_as_it_is_for_its_target_and_newer_ones_and_none_spills() {
    let Some((_, all)) = assembled() else {
        return;
    };
    let threads = threads_of_xw();
    assert!(threads.len() > 50, "{threads:?}");
    let mut refused = Vec::new();
    for Assembled {
        module,
        arch,
        kernel,
    } in all
    {
        let KernelResources {
            name,
            registers,
            stack_bytes,
            ..
        } = kernel;
        println!("{arch} {name}: {registers} registers, {stack_bytes} bytes of stack");
        let threads = threads.get(name).copied().unwrap_or(1);
        // A warp's registers are given out in units of 256.
        if registers.next_multiple_of(8) * threads > REGISTERS {
            refused.push(format!(
                "{} for {arch}: {registers} registers are too many for blocks of {threads} threads",
                module.name
            ));
        }
        if !may_spill(module, kernel) {
            refused.push(format!(
                "{} for {arch}: not all is in registers: {kernel:?}",
                module.name
            ));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
