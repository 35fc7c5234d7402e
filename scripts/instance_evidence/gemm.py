"""The instances of XW that plans choose from, and those of LogSoftmax.

A plan chooses among the kernels that the GPU has, that are exact enough for W, and that the options allow. So the runs
of a case are compared once for each of these settings (SETTINGS): a kernel for older GPUs has its evidence among the
kernels for such GPUs, though all were timed on one GPU."""

from instance_evidence.attributes import entry_points
from instance_evidence.evidence import Run, read

SOURCES = ["kernels-gpu/gemm/src/product", "kernels-gpu/log_softmax/src"]
RESULTS = "gemm_choices.jsonl"
BENCH = (
    "gemm -- --rows 281903 --shape 128x16,16x16,100x47,602x41,128x64,128x128,101x16,101x47,1024x128,1024x40,289x25,"
    "3x263,101x1,101x2,48x51,434x63,5x20,23x123,47x35 --sweep --no-cublas --type f32,f64,f16"
)

# The kernels of XW by what a plan needs to choose them, and the kernels of LogSoftmax.
ANY_GPU = {
    "gemm_staged",
    "gemm_shallow",
    "gemm_inner_products",
    "gemm_fragments",
    "gemm_flat_fragments",
    "gemm_warp_fragments",
}
SPLIT = ANY_GPU | {"gemm_split_fragments"}
SM_90 = SPLIT | {"gemm_sm90_fragments"}
SM_90A = SM_90 | {"gemm_warpgroup_fragments", "gemm_warpgroup_split"}
HALVES = SM_90A | {"gemm_warpgroup_halves"}
SETTINGS = {
    "any GPU, f32 with any W": ANY_GPU,
    "any GPU": SPLIT,
    "sm_90": SM_90,
    "sm_90a, f32 in three parts": SM_90A,
    "sm_90a": HALVES,
}
SOFTMAX = {"log_softmax_sub_warp", "log_softmax_staged", "log_softmax_streamed"}

# Instances that round f32 to tf32, which plans choose only if the options allow it.
ROUNDS = "gemm_warp_fragments_f32_"

# Why instances exist that no measured case is faster with.
REASONS = {
    "gemm_shallow_bf16": "bf16: as f16, which is measured",
    "gemm_inner_products_f64_2": "77 and 275 columns of X, which are not measured there: 1.11 to 1.27 times as fast as "
    "the fastest other kernel (docs/notes/gemm.md)",
    "gemm_sm90_fragments_Columns32": "17 to 32 columns of W, of which one is measured there, and deep products: 2 to "
    "15 % (docs/notes/gemm.md)",
    "gemm_shallow_f16": "the columns of X times those of W less than 32, which are not measured there: up to 2.3 times "
    "as fast as flat_fragments (docs/notes/gemm.md)",
    "gemm_fragments_*": "rows of an odd number of 16-bit elements, the default for them",
    "gemm_warpgroup_fragments_f16_Columns128": "65 to 127 columns, which are not measured: the streamed tile takes "
    "1.12 times as long at 64 columns, and as long at 128",
    "gemm_*_bf16_*": "bf16: as f16 with the same tile, which is measured",
    "log_softmax_*_bf16*": "bf16: as f16, which is measured",
    "log_softmax_streamed_*": "rows of any number of classes",
}


def instances(root):
    return set().union(*(entry_points(root / folder) for folder in SOURCES))


def cases(path, names):
    """Each case in each setting."""
    results = read(path, "bench", "rows", "k", "features", "type")
    for (bench, rows, k, features, element), case in results.items():
        shape = f"{rows} x {k} to {features}, {element}" if bench == "gemm" else f"{rows} rows, {k} classes, {element}"
        runs = [Run(result["ms"], {result["variant"]}) for result in case.values() if result.get("variant") in names]
        if bench != "gemm":
            yield (shape,), runs
            continue
        for setting, kernels in SETTINGS.items():
            allowed = [run for run in runs if kernel_of(run) in kernels]
            yield (shape, setting, "tf32"), allowed
            yield (shape, setting), [run for run in allowed if not rounds(run)]


def kernel_of(run):
    """The kernel of a run's only instance: the longest of the known names that its name begins with."""
    (name,) = run.certain
    kernels = [kernel for kernel in HALVES | SOFTMAX if name.startswith(kernel + "_")]
    return max(kernels, key=len, default=None)


def rounds(run):
    (name,) = run.certain
    return name.startswith(ROUNDS)
