"""Small workspaces for `scripts/check-rooms --self-test`, with the fault that must be found in each."""


def example(files, crates=()):
    """A small workspace: the host crate with these files, and other crates as (folder, dependencies)."""
    members = ", ".join(f'"{folder}"' for folder, _ in crates)
    needs = "".join(f"{folder.replace('/', '-')} = {{ path = '{folder}' }}\n" for folder, _ in crates)
    texts = {
        "Cargo.toml": f'[workspace]\nmembers = [{members}]\n[package]\nname = "warprow"\n[lib]\npath = "host/lib.rs"\n'
        f"[dependencies]\n{needs}"
    }
    for folder, dependencies in crates:
        lines = "".join(f"{name} = {{ workspace = true }}\n" for name in dependencies)
        texts[f"{folder}/Cargo.toml"] = f'[package]\nname = "{folder.replace("/", "-")}"\n[dependencies]\n{lines}'
    return texts | files


SPMM, GEMM = ("kernels-gpu/spmm", ()), ("kernels-gpu/gemm", ())

# Name, workspace, and a part of the only message that it must give; None if it has no fault.
SELF_TESTS = [
    ("an empty crate", example({"host/lib.rs": ""}), None),
    ("below", example({"host/lib.rs": "", "host/csr.rs": "struct A;", "host/spmm.rs": "use crate::csr::A;"}), None),
    (
        "a crate in the folder of the host, whose tests use what is above",
        example(
            {
                "host/lib.rs": "pub struct A;",
                "host/csr.rs": "use host_parallel::B;",
                "host/parallel/src/lib.rs": "pub struct B;\n#[cfg(test)]\nmod tests;",
                "host/parallel/src/tests.rs": "use super::*;",
            },
            [("host/parallel", ())],
        ),
        None,
    ),
    (
        "beside",
        example({"host/lib.rs": "", "host/gemm.rs": "struct A;", "host/spmm.rs": "use crate::gemm::A;"}),
        "host/spmm.rs:1: spmm imports from gemm, a family beside it",
    ),
    (
        "above, by a path in the code",
        example({"host/lib.rs": "", "host/gcn.rs": "fn f() {}", "host/spmm.rs": "fn g() {\n    crate::gcn::f();\n}"}),
        "host/spmm.rs:2: spmm imports from gcn, a family above it",
    ),
    (
        "in a tree of uses",
        example(
            {
                "host/lib.rs": "",
                "host/csr.rs": "struct A;",
                "host/gemm/tile.rs": "",
                "host/spmm.rs": "use crate::{csr::A, gemm::{tile::{B as C}}};",
            }
        ),
        "spmm imports from gemm",
    ),
    (
        "by super, through a re-export of the facade",
        example(
            {
                "host/lib.rs": "pub use gemm::A;",
                "host/gemm.rs": "pub struct A;",
                "host/csr/mod.rs": "use super::A;",
            }
        ),
        "csr imports from gemm, a family above it",
    ),
    (
        "through a glob",
        example(
            {
                "host/lib.rs": "pub use gemm::*;",
                "host/gemm.rs": "pub struct A;",
                "host/csr.rs": "fn f(a: crate::A) {}",
            }
        ),
        "csr imports from gemm, a family above it",
    ),
    (
        "a name of another file",
        example({"host/lib.rs": "", "host/gemm.rs": "", "host/csr.rs": "use crate::gemm as g;\nfn f() { g::h() }"}),
        "host/csr.rs:1: csr imports from gemm",
    ),
    (
        "comments, strings and tests",
        example(
            {
                "host/lib.rs": "",
                "host/gemm.rs": "struct A;",
                "host/spmm.rs": '// crate::gemm::A\nconst B: &str = "crate::gemm::A";\n/* crate::gemm */\n'
                "#[cfg(test)]\nmod tests {\n    use crate::gemm::A;\n}\n#[cfg(test)]\nmod more;\n",
                "host/spmm/more.rs": "use crate::gemm::A;",
            }
        ),
        None,
    ),
    (
        "a room without a layer",
        example({"host/lib.rs": "", "host/new.rs": "use crate::csr::A;", "host/csr.rs": ""}),
        "new",
    ),
    (
        "kernels of the same family",
        example(
            {
                "host/lib.rs": "",
                "host/spmm.rs": "use kernels_gpu_spmm::A;",
                "kernels-gpu/spmm/src/lib.rs": "",
            }, [SPMM]
        ),
        None,
    ),
    (
        "kernels of another family",
        example(
            {
                "host/lib.rs": "",
                "host/spmm.rs": "use kernels_gpu_gemm::A;",
                "kernels-gpu/gemm/src/lib.rs": "",
            }, [GEMM]
        ),
        "spmm imports from gemm, a family beside it",
    ),
    (
        "a circle within a folder",
        example({"host/lib.rs": "", "host/spmm/a.rs": "use super::b::B;", "host/spmm/b.rs": "use super::a::A;"}),
        None,
    ),
    (
        "a circle of a file and its own folder",
        example({"host/lib.rs": "", "host/spmm.rs": "use a::A;\nstruct B;", "host/spmm/a.rs": "use super::B;"}),
        None,
    ),
    (
        "a circle across folders",
        example(
            {
                "host/lib.rs": "",
                "host/spmm/mod.rs": "use plan::a::A;\nstruct B;",
                "host/spmm/plan/a.rs": "use crate::spmm::B;",
            }
        ),
        "an import circle of 2 files crosses folders",
    ),
    (
        "a name that a module above re-exports is no circle",
        example(
            {
                "host/lib.rs": "",
                "host/spmm/mod.rs": "pub use options::B;\nuse plan::a::A;",
                "host/spmm/options.rs": "pub struct B;",
                "host/spmm/plan/a.rs": "use crate::spmm::B;",
            }
        ),
        None,
    ),
    (
        "an inline module",
        example(
            {
                "host/lib.rs": "",
                "host/csr.rs": "mod inner {\n    use super::super::gemm::A;\n}",
                "host/gemm.rs": "struct A;",
            }
        ),
        "csr imports from gemm",
    ),
    (
        "a room of the emulator that imports upwards",
        example(
            {
                "host/lib.rs": "",
                "rust-cuda/simt/src/lib.rs": "mod block;\nmod memory;",
                "rust-cuda/simt/src/block.rs": "pub(crate) struct Lane;",
                "rust-cuda/simt/src/memory.rs": "use crate::block::Lane;",
            },
            [("rust-cuda/simt", ())],
        ),
        "memory imports from block, a room above it",
    ),
    (
        "a room of warprow-mpi that imports sideways",
        example(
            {
                # The host does not depend on it.
                "Cargo.toml": '[workspace]\nmembers = ["mpi"]\n[package]\nname = "warprow"\n'
                '[lib]\npath = "host/lib.rs"\n',
                "host/lib.rs": "",
                "mpi/src/lib.rs": "mod matrix;\nmod transport;\nmod world;",
                "mpi/src/world.rs": "pub(crate) struct World;",
                "mpi/src/matrix.rs": "use crate::world::World;\nuse crate::transport::Transport;",
                "mpi/src/transport.rs": "use crate::world::World;\npub(crate) struct Transport;",
            },
            [("mpi", ())],
        ),
        "matrix imports from transport, a room beside it",
    ),
    (
        "a crate that depends sideways",
        example({"host/lib.rs": ""}, [("kernels-gpu/spmm", ["kernels-gpu-gemm"]), GEMM]),
        "kernels-gpu-spmm depends on kernels-gpu-gemm, a crate beside it",
    ),
    (
        "a crate that depends upwards",
        example({"host/lib.rs": ""}, [("kernels-gpu/spmm", ["kernels-gpu-gcn"]), ("kernels-gpu/gcn", ())]),
        "kernels-gpu-spmm depends on kernels-gpu-gcn, a crate above it",
    ),
    (
        "a crate without a layer",
        example({"host/lib.rs": ""}, [("elsewhere", ())]),
        "elsewhere: the crate elsewhere has no layer",
    ),
]
