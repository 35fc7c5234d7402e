//! Dependent launches of the fake driver, and graphs.

use super::{INVALID_VALUE, LAUNCHES, SUCCESS, in_context, log, setting};
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};

/// `CUlaunchConfig` of cuda.h, with the attribute that the tests expect.
#[repr(C)]
pub struct Config {
    sizes: [c_uint; 7],
    stream: *mut c_void,
    attributes: *const Attribute,
    attribute_count: c_uint,
}

/// `CUlaunchAttribute` of cuda.h, with an integer as its value.
#[repr(C, align(8))]
pub struct Attribute {
    id: c_uint,
    padding: c_uint,
    value: i32,
    rest: [u8; 60],
}

/// # Safety
///
/// `config` points to a configuration, whose attributes are there.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(config: *const Config) -> u32 {
    // SAFETY: the caller's contract.
    let Config {
        sizes,
        stream,
        attributes,
        attribute_count,
    } = unsafe { &*config };
    if *attribute_count != 1 {
        return INVALID_VALUE;
    }
    // SAFETY: as above.
    let attribute = unsafe { &**attributes };
    // Programmatic stream serialization.
    if (attribute.id, attribute.value) != (6, 1) {
        return INVALID_VALUE;
    }
    log(&format!("dependent launch of {sizes:?} in {stream:p}"));
    let answer = in_context();
    LAUNCHES.fetch_add(1, SeqCst);
    answer
}

/// Kernels in the graph that is made.
static NODES: AtomicI32 = AtomicI32::new(0);

/// # Safety
///
/// `node` is valid for a write, and `dependencies` has `count` elements.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddKernelNode(
    node: *mut *mut c_void,
    _graph: *mut c_void,
    dependencies: *const *mut c_void,
    count: usize,
) -> u32 {
    // Each kernel waits for the one before; a node's handle is its number, counted from 1.
    let before = NODES.fetch_add(1, SeqCst) as usize;
    // SAFETY: the caller's contract.
    let after_the_last = unsafe {
        node.write(ptr::without_provenance_mut(before + 1));
        match count {
            0 => before == 0 || wants_edge(before + 1),
            _ => count == 1 && (*dependencies).addr() == before,
        }
    };
    if after_the_last {
        in_context()
    } else {
        INVALID_VALUE
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphLaunch(_graph: *mut c_void, stream: *mut c_void) -> u32 {
    log(&format!("launch in {stream:p}"));
    if lacks_edge() {
        return INVALID_VALUE;
    }
    let answer = in_context();
    LAUNCHES.fetch_add(NODES.load(SeqCst), SeqCst);
    match answer {
        SUCCESS => setting("FAKE_GRAPH_LAUNCH_ANSWER", 0) as u32,
        error => error,
    }
}

/// The kernel of a graph that was added without what it depends on; 0 for none.
static WITHOUT_EDGE: AtomicUsize = AtomicUsize::new(0);

/// Notes that a kernel wants an edge; whether no other one does.
fn wants_edge(node: usize) -> bool {
    WITHOUT_EDGE.swap(node, SeqCst) == 0
}

/// Whether a kernel lacks its edge.
fn lacks_edge() -> bool {
    WITHOUT_EDGE.load(SeqCst) != 0
}

/// # Safety
///
/// `from`, `to` and `edges` have `count` elements.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddDependencies_v2(
    _graph: *mut c_void,
    from: *const *mut c_void,
    to: *const *mut c_void,
    edges: *const [u8; 8],
    count: usize,
) -> u32 {
    if count != 1 {
        return INVALID_VALUE;
    }
    // SAFETY: the caller's contract.
    let (from, to, edge) = unsafe { ((*from).addr(), (*to).addr(), *edges) };
    // From the port "programmatic" to the default one, of the type "programmatic".
    let is_right = edge == [1, 0, 1, 0, 0, 0, 0, 0] && from + 1 == to;
    if !is_right || WITHOUT_EDGE.swap(0, SeqCst) != to {
        return INVALID_VALUE;
    }
    log(&format!("dependent edge from {from} to {to}"));
    SUCCESS
}
