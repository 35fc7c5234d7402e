//! The normalised adjacency matrix, made on the device.

use super::GcnError;
use crate::csr::{DeviceCsr, DevicePattern};
use crate::primitives::scan::exclusive_scan;
use cuda_std::float::Real;
use std::sync::Arc;
use warprow_kernels::gcn::normalize;
use warprow_kernels::gcn::normalize::AdjacencyMatrix;

/// `D^-1/2 (A + I) D^-1/2` of a graph on a device, D the row sums of `A + I`.
///
/// Row i of A holds the in-neighbours of node i, with the weights of the edges. As in PyTorch Geometric, a node that
/// has a self-loop gets no second one, parallel edges all count, and the edges of a node whose row sum is not
/// positive become zero. A node without edges keeps its own features.
///
/// # Errors
///
/// A graph that is not square; 2^32 nonzeros or more with the loops; too little device memory; the driver's.
pub fn normalized_adjacency<T: Real>(graph: &DeviceCsr<T>) -> Result<DeviceCsr<T>, GcnError> {
    let pattern = graph.pattern();
    let (device, nodes) = (pattern.device(), pattern.rows);
    if pattern.cols != nodes {
        return Err(GcnError::Network {
            reason: format!(
                "its graph is {nodes} x {}, and rows and columns are the same nodes",
                pattern.cols
            ),
        });
    }
    // The last element is no length: the scan writes the sum of all there.
    let mut row_ptr = device.zeros::<u32>(nodes as usize + 1)?;
    let mut scale = device.uninitialized::<T>(nodes as usize)?;
    let a = AdjacencyMatrix {
        row_ptr: pattern.row_ptr.read_only(),
        col_idx: pattern.col_idx.read_only(),
        values: graph.values().read_only(),
    };
    let config = normalize::launch(nodes);
    if nodes > 0 {
        let results = (row_ptr.mutable(), scale.mutable());
        let arguments = (nodes, a.row_ptr, a.col_idx, a.values, results.0, results.1);
        // SAFETY: the buffers are those of one CSR matrix; the results have an element for each row.
        unsafe { device.launch(&normalize::degrees::<T>(), config, arguments)? };
    }
    let nonzeros = exclusive_scan(device, &mut row_ptr)? as usize;
    let mut col_idx = device.uninitialized::<u32>(nonzeros)?;
    let mut values = device.uninitialized::<T>(nonzeros)?;
    if nodes > 0 {
        let results = (col_idx.mutable(), values.mutable());
        let arguments = (
            nodes,
            a,
            scale.read_only(),
            row_ptr.read_only(),
            results.0,
            results.1,
        );
        // SAFETY: the new rows start where the scanned lengths say, and `col_idx` and `values` have room for all.
        unsafe { device.launch(&normalize::fill::<T>(), config, arguments)? };
    }
    let normalized = DevicePattern {
        device: device.clone(),
        rows: nodes,
        cols: nodes,
        row_ptr,
        col_idx,
        longest_row: None,
    };
    Ok(DeviceCsr::from_parts(Arc::new(normalized), values))
}
