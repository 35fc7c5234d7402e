"""Why the emulator and a GPU count differently, where they do."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """A reason, and the cases, kernels and metrics that it is for: regular expressions of names and of keys."""

    cases: str
    kernels: str
    metrics: str
    # Why they differ; empty: nobody knows.
    reason: str
    # What is known, where the reason is not.
    known: str = ""

    def fits(self, case, kernel, metric):
        found = re.search(self.cases, case) and re.search(self.kernels, kernel) and re.fullmatch(self.metrics, metric)
        return bool(found)

    def text(self):
        return self.reason or " ".join(["Not explained.", self.known]).strip()


# Cases whose lanes take different ways, as the data decide. Hardware chooses where they come together again, so
# requests may differ by 5 %.
DIVERGING = r"^spmm/.*/(thread_per_row|in_step)$|^spgemm/"

EXPLANATIONS = [
    Explanation(
        r"^spmm/.*/thread_per_row$",
        "",
        r"loads_(requests|sectors)",
        "LLVM unrolls the loop over a row's nonzeros by 2, and the assembler by 4 more. A lane takes nonzeros in runs "
        "of 1, then of 8, then of 4 and 2. Lanes with rows of other lengths are in other runs, and then their loads "
        "are requests of their own, and sectors that they share count again. By this rule the requests are exactly the "
        "GPU's.",
    ),
    Explanation(
        r"^spmm/.*/(warp_per_row_cached|coarsened)$",
        "",
        r"shared_loads_without_conflicts",
        "The assembler joins two loads of 4 bytes into one of 8 bytes. The emulator counts the loads of the source.",
    ),
    Explanation(
        r"^spmm/",
        r"^spmm_vector_",
        r"loads_sectors",
        "LLVM moves the loads of X below the condition that the sub-warp has nonzeros left. On the GPU, a sub-warp "
        "that has finished loads nothing. In the source it loads column 0, and does not use it.",
    ),
    Explanation(
        r"^spmm/",
        r"^spmm_vector_",
        r"(loads|stores)_requests",
        "On the GPU, sub-warps whose rows end in the same batch leave them together more often. An iteration of "
        "`end_rows` has one load. It has one store of f32, two of f64, or three for 33 features. The differences of "
        "loads and stores are in this ratio, but for one store.",
    ),
    Explanation(
        r"^spmm/.*/33/",
        r"^spmm_vector_",
        r"stores_sectors",
        "A row of Y with 33 features has 132 bytes, so neighbouring rows share a sector. If two sub-warps store such "
        "rows in one request, the sector counts once. On the GPU sub-warps leave together more often, as the requests "
        "show. With 32 and 128 features no rows share a sector, and the sectors agree exactly.",
    ),
    Explanation(
        r"^spmm/",
        r"^spmm_(combine_f|clear_cut_rows)",
        r"memory_read_bytes",
        "The launch reads a few KB. The GPU also reads the kernel's machine code and its parameters, as the caches are "
        "empty. The model does not have these. Micro-kernels of one warp, too, read some KB more than their data.",
    ),
    Explanation(
        r"^xw/",
        r"^gemm_global_sum_",
        r"(loads|stores)_(requests|sectors)",
        "The compiler unrolls the loop over k. It stores the sum after every 4 products and loads it after every 8. "
        "For a depth of 128 a column then has 34 stores instead of 130, and 17 loads of Y instead of 129. For a depth "
        "of 33 there are 11 instead of 35, and 6 instead of 34. These are exactly the GPU's requests.",
    ),
    Explanation(
        r"^xw/1000x33x17/",
        r"^gemm_global_sum_",
        r"memory_read_bytes",
        "The kernel stores to the words of Y before it loads them. The GPU's value is nearly that of X and W: it reads "
        "nothing of Y. The model reads a sector from memory if it is loaded when only some of its bytes were written.",
    ),
    Explanation(
        r"^xw/5000x",
        r"^gemm_staged_",
        r"loads_sectors",
        "An asynchronous copy of 16 bytes (`cp.async.cg`) passes L1 by. For such copies the GPU counts a sector for each "
        "pair of a line of global memory and a sector of shared memory that gets bytes of it. Copies of one warp with 17 "
        "arrangements of both addresses have all shown this. In shared memory a row of 64 bytes is padded to 80, so 8 "
        "rows touch 20 sectors there. This gives exactly the GPU's value. The emulator counts the 16 sectors of global "
        "memory.",
    ),
    Explanation(
        r"^xw/1000x33x17/",
        r"^gemm_staged_",
        r"(loads_requests|loads_sectors|stores_sectors|shared_stores_without_conflicts)",
        "In each iteration a lane copies an element, or stores a zero where X has none. The compiler unrolls the loops, "
        "and on the GPU all lanes meet at the end of each iteration. The emulator sees accesses alone: lanes that copy "
        "wait for others that store, also for those of the next iteration. The GPU's four copies, by their executions, "
        "are exactly 1,024 + 384 + 1,024 + 8 requests.",
    ),
    Explanation(
        r"^xw/1000x33x17/",
        r"^gemm_warpgroup_split_",
        r"loads_(requests|sectors)",
        "The compiler unrolls the loop over the copies of a lane. On the GPU each is an instruction of its own: 619 of "
        "them read something, exactly the GPU's requests less those of `poison`. Copies that only fill with zeros are not "
        "counted. In the emulator they are one line of the source, so lanes that read nothing in one copy join other "
        "lanes with their next one. The sectors of the GPU are those of `cp.async.cg`, as for `staged`.",
    ),
    Explanation(
        r"^xw/",
        r"^gemm_(split_fragments|warpgroup_split|warpgroup_halves)_",
        r"loads_(requests|sectors)",
        "In the source every warp loads `poison` once. On the GPU only warps that have rows do: 313 of 320 for "
        "`split_fragments` of 5000 rows. In all these cases this gives exactly the GPU's requests and sectors.",
    ),
    Explanation(
        r"^xw/",
        r"^gemm_warpgroup_(split|halves)_",
        r"shared_loads_without_conflicts",
        "The GPU's value depends on timing: for 1000 x 33 x 17, `warpgroup_split` and `default` launch the same "
        "kernel, and have 2,254 and 2,472. Only kernels with `wgmma` differ, whose tensor cores read shared memory "
        "while warps load from it. The loads of `split_fragments`, which has no `wgmma`, agree exactly.",
    ),
    Explanation(
        r"^spgemm/",
        r"^spgemm_fitted_sizes$",
        r"loads_(requests|sectors)",
        "The source loads 16 bytes of a row's work and uses two of the four words. The GPU makes exactly twice the "
        "requests and sectors: a load of 4 bytes for each word.",
    ),
    Explanation(
        r"^spgemm/",
        r"^spgemm_(fixed|dynamic|fitted)_(count|fill)",
        r"loads_requests",
        "A lane probes the hash table until it finds its column or an empty slot, and then loads its next product. "
        "Hardware decides which lanes meet again before this load. The sectors agree within 5 %.",
    ),
    Explanation(
        r"^spgemm/",
        r"^spgemm_(fixed|dynamic|fitted)_fill|^spgemm_(rank_chunks|search_rows)_",
        r"shared_loads_without_conflicts",
        "GPUs have no atomic instruction that adds f32 in shared memory. The compiler makes a loop of a load and a "
        "compare-and-swap. The emulator counts one atomic operation, and no load. For `search_rows` and `rank_chunks`, "
        "the emulator's loads plus the GPU's atomics are within 7 % of the GPU's loads.",
    ),
    Explanation(
        r"^spgemm/",
        r"^spgemm_numeric_bins$",
        r"(loads|stores)_(requests|sectors)",
        "At the end of an iteration one lane of each bin adds to a counter. The others are then at the first load of the "
        "next iteration. On the GPU all lanes meet before it, so each load is one request: 480 in all. In the emulator "
        "the others do not wait.",
    ),
    Explanation(
        r"^spgemm/",
        r"^spgemm_(sort_rows|sort_products|search_rows|rank_chunks)_",
        r"(shared_loads_without_conflicts|loads_requests|stores_requests)",
        "",
    ),
    Explanation(
        "",
        "",
        r"registers",
        "Nsight Compute reports no fewer than 16 registers for any kernel. The table of the library's kernels has 12 "
        "and 15.",
    ),
]


def explanation(case, kernel, metric):
    """The first explanation for a metric of a launch, or None."""
    return next((explained for explained in EXPLANATIONS if explained.fits(case, kernel, metric)), None)
