//! Dependent launches ([`ptx_archive::waiting`]): two functions of the driver that `cust` does not declare.

use cuda_std::launch::LaunchConfig;
use cust::sys::{CUfunction, CUgraph, CUgraphNode, CUresult, CUstream};
use std::ffi::c_void;
use std::ptr;

/// `CUlaunchAttribute` of cuda.h.
#[repr(C, align(8))]
struct Attribute {
    id: u32,
    padding: u32,
    /// A union of 64 bytes, of which this attribute has the first four.
    value: i32,
    rest: [u32; 15],
}

/// `CUlaunchConfig` of cuda.h.
#[repr(C)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: CUstream,
    attributes: *const Attribute,
    attribute_count: u32,
}

/// `CUgraphEdgeData` of cuda.h.
#[repr(C)]
struct EdgeData {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;

/// `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`: the node behind the edge may start when the blocks of the one before it
/// have ended.
const PROGRAMMATIC_PORT: u8 = 1;

/// `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`.
const PROGRAMMATIC_DEPENDENCY: u8 = 1;

// As in a C compiler, for 64 bits.
const _: () = {
    assert!(size_of::<Attribute>() == 72 && align_of::<Attribute>() == 8);
    assert!(size_of::<Config>() == 56 && size_of::<EdgeData>() == 8);
};

unsafe extern "C" {
    fn cuLaunchKernelEx(
        config: *const Config,
        function: CUfunction,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> CUresult;

    fn cuGraphAddDependencies_v2(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        edges: *const EdgeData,
        count: usize,
    ) -> CUresult;
}

/// Launches a kernel that waits for the launch before it. Drivers have the function from CUDA 11.8 on.
///
/// # Safety
///
/// As for `Stream::launch`.
pub(super) unsafe fn launch(
    stream: CUstream,
    function: CUfunction,
    config: &LaunchConfig,
    arguments: &[*mut c_void],
) -> CUresult {
    let LaunchConfig { grid, block, .. } = config;
    let attribute = Attribute {
        id: PROGRAMMATIC_STREAM_SERIALIZATION,
        padding: 0,
        value: 1,
        rest: [0; 15],
    };
    let config = Config {
        grid: [grid.x, grid.y, grid.z],
        block: [block.x, block.y, block.z],
        shared_bytes: config.shared_bytes,
        stream,
        attributes: &raw const attribute,
        attribute_count: 1,
    };
    // SAFETY: the structures are as cuda.h has them, and one attribute is there; the rest is the caller's contract. The
    // driver does not write to the list of arguments.
    unsafe {
        let arguments = arguments.as_ptr().cast_mut();
        cuLaunchKernelEx(&raw const config, function, arguments, ptr::null_mut())
    }
}

/// Adds an edge to a graph, between a kernel and one that waits for it. Drivers have the function from CUDA 12.3 on.
///
/// # Safety
///
/// The nodes are kernels of the graph, which is alive.
pub(super) unsafe fn add_edge(graph: CUgraph, from: CUgraphNode, to: CUgraphNode) -> CUresult {
    let edge = EdgeData {
        from_port: PROGRAMMATIC_PORT,
        to_port: 0,
        kind: PROGRAMMATIC_DEPENDENCY,
        reserved: [0; 5],
    };
    // SAFETY: the caller's contract; the pointers are to one of each.
    unsafe { cuGraphAddDependencies_v2(graph, &raw const from, &raw const to, &raw const edge, 1) }
}
