//! Graph convolution: the graph's normalised adjacency matrix, and what lies between the layers.

pub mod activate;
pub mod normalize;

/// The PTX entry points of the family.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn entry_points() -> Vec<&'static str> {
    [
        activate::activate::<f32>().entry_points(),
        normalize::degrees::<f32>().entry_points(),
        normalize::fill::<f32>().entry_points(),
    ]
    .concat()
}
