//! XW, a tall dense matrix times a small one: `Y = X W`, planned once for W and run many times; bias and ReLU on request.
//!
//! ```
//! use ndarray::array;
//! use warprow::device::Device;
//! use warprow::gemm::{Gemm, GemmOptions};
//!
//! # fn main() -> Result<(), warprow::Error> {
//! let w = array![[1.0_f32, 2.0], [3.0, 4.0], [5.0, -6.0]];
//! let bias = array![0.5_f32, 1.0];
//! let x = array![[1.0_f32, 0.0, 0.0], [0.0, 1.0, 1.0]];
//!
//! let device = Device::open()?;
//! let options = GemmOptions { relu: true, ..GemmOptions::default() };
//! let gemm = Gemm::plan(&device, w.view(), Some(bias.view()), options)?;
//! assert_eq!(gemm.multiply(x.view())?, array![[1.5, 3.0], [8.5, 0.0]]);
//! # Ok(())
//! # }
//! ```

use crate::device::{Device, DeviceBuffer, Version};
use crate::error::Error;
use crate::scalar::Scalar;
use cuda_std::launch::LaunchConfig;
use cuda_std::memory::Global;
use ndarray::{Array2, ArrayView1, ArrayView2};
use std::fmt;
use warprow_kernels::gemm::Epilogue;
use warprow_kernels::gemm::product::{split_fragments, warpgroup_halves, warpgroup_split};
pub use warprow_kernels::gemm::{GemmKernel, Shape};
use warprow_kernels::matrix::{Dense, DenseMut};

/// An element type that the product has kernels for: f32, f64, f16, bf16. The 16-bit ones are added up in f32.
pub trait GemmElement: Scalar + warprow_kernels::gemm::GemmElement {}

impl<T: Scalar + warprow_kernels::gemm::GemmElement> GemmElement for T {}

/// How a product is to be planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GemmOptions {
    /// The kernel; the plan chooses if it is not said.
    pub kernel: Option<GemmKernel>,
    /// Whether negative results become 0, after the bias is added. A NaN stays.
    pub relu: bool,
    /// Whether f32 may be rounded to tf32 (11 bits of the significand) for tensor cores. It changes nothing for other types.
    pub tf32: bool,
}

/// A matrix W on a device, and the kernel to multiply with it: `Y = X W`, with a bias and ReLU if asked for.
///
/// `Display` says what the plan is and why.
#[derive(Debug)]
pub struct Gemm<T: GemmElement> {
    device: Device,
    depth: u32,
    cols: u32,
    weights: DeviceBuffer<T>,
    bias: Option<DeviceBuffer<T>>,
    kernel: GemmKernel,
    options: GemmOptions,
}

impl<T: GemmElement> Gemm<T> {
    /// Uploads W (k x n) and the bias (n), and chooses a kernel.
    ///
    /// # Errors
    ///
    /// 2^32 rows or columns or more; a bias of another length; a kernel that does not have the type, one that the device is too old for,
    /// and one that computes f32 in tf32 where that is not allowed; too little device memory; the driver's.
    pub fn plan(
        device: &Device,
        w: ArrayView2<'_, T>,
        bias: Option<ArrayView1<'_, T>>,
        options: GemmOptions,
    ) -> Result<Self, Error> {
        let depth = extent("the number of rows of W", w.nrows())?;
        let cols = extent("the number of columns of W", w.ncols())?;
        if let Some(bias) = bias
            && bias.len() != w.ncols()
        {
            return Err(Error::Length {
                what: "the bias",
                wanted: w.ncols() as u64,
                found: bias.len() as u64,
            });
        }
        let kernel = options
            .kernel
            .unwrap_or_else(|| default_kernel(device, w, options.tf32));
        check_kernel::<T>(kernel, device, options)?;
        let shape = Shape {
            rows: 1,
            depth,
            cols,
            multiprocessors: device.properties().multiprocessors,
            shared_bytes: device.properties().max_shared_bytes_per_block,
        };
        let bias = bias.map(|bias| device.upload(&bias.to_vec()));
        Ok(Self {
            weights: device.upload(&T::pack(kernel, w.iter().copied().collect(), shape))?,
            bias: bias.transpose()?,
            device: device.clone(),
            depth,
            cols,
            kernel,
            options,
        })
    }

    /// Rows of W, columns of X.
    pub fn depth(&self) -> usize {
        self.depth as usize
    }

    /// Columns of W and Y.
    pub fn cols(&self) -> usize {
        self.cols as usize
    }

    /// The kernel that the plan runs.
    pub fn kernel(&self) -> GemmKernel {
        self.kernel
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Grid and block of a run with that many rows of X; `None` if the product is empty and nothing is launched.
    ///
    /// # Errors
    ///
    /// 2^32 rows or more.
    pub fn launch(&self, rows: usize) -> Result<Option<LaunchConfig>, Error> {
        let rows = extent("the number of rows of X", rows)?;
        let shape = self.shape(rows);
        Ok(shape.map(|shape| self.kernel.launch::<T>(shape)))
    }

    /// What the kernel's launch depends on; `None` if Y has no elements.
    fn shape(&self, rows: u32) -> Option<Shape> {
        let shape = Shape {
            rows,
            depth: self.depth,
            cols: self.cols,
            multiprocessors: self.device.properties().multiprocessors,
            shared_bytes: self.device.properties().max_shared_bytes_per_block,
        };
        (elements(rows, self.cols) > 0).then_some(shape)
    }

    /// Floating-point operations of a run: a multiplication and an addition for each element of X and column of W.
    pub fn flops(&self, rows: usize) -> u128 {
        2 * rows as u128 * self.depth as u128 * self.cols as u128
    }

    /// Bytes of X, W and Y, each moved once.
    pub fn bytes(&self, rows: usize) -> u128 {
        let (rows, depth, cols) = (rows as u128, self.depth as u128, self.cols as u128);
        (rows * depth + depth * cols + rows * cols) * size_of::<T>() as u128
    }

    /// `y = x w`, with the bias and ReLU if the plan has them, all row-major: `x` of `rows * depth` elements, `y` of
    /// `rows * cols`. It allocates nothing, and on a GPU it returns before the product is there; `y.download()` waits for it.
    ///
    /// # Errors
    ///
    /// A length that does not fit; a buffer of another device; a launch that fails.
    pub fn run(
        &self,
        x: &DeviceBuffer<T>,
        rows: usize,
        y: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let rows = extent("the number of rows of X", rows)?;
        check(&self.device, "x", x, elements(rows, self.depth))?;
        check(&self.device, "y", y, elements(rows, self.cols))?;
        let Some(shape) = self.shape(rows) else {
            return Ok(());
        };
        let x = Dense {
            rows,
            cols: self.depth,
            data: x.read_only(),
        };
        let w = Dense {
            rows: self.depth,
            cols: self.cols,
            data: self.weights.read_only(),
        };
        let y = DenseMut {
            rows,
            cols: self.cols,
            data: y.mutable(),
        };
        let epilogue = Epilogue {
            bias: (self.bias.as_ref()).map_or(Global::from_address(0), DeviceBuffer::read_only),
            has_bias: self.bias.is_some().into(),
            relu: self.options.relu.into(),
        };
        let config = self.kernel.launch::<T>(shape);
        let handle = T::handle(self.kernel, shape).expect("the plan has checked the kernel");
        // SAFETY: the buffers are this device's and have the matrices' sizes; y is borrowed mutably, so it is apart from the
        // others; the bias has an element for each column; the launch is the kernel's own.
        unsafe { self.device.launch(&handle, config, (x, w, y, epilogue)) }
    }

    /// The product with a dense matrix of the host: uploads X, runs, and downloads Y. X may have any memory layout.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), an X that has not as many columns as W has rows, and too little memory.
    pub fn multiply(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>, Error> {
        let (rows, depth) = x.dim();
        if depth != self.depth() {
            return Err(Error::Columns {
                what: "x",
                columns: self.depth(),
                found: x.dim(),
            });
        }
        let len = elements(extent("the number of rows of X", rows)?, self.cols);
        let len = usize::try_from(len).map_err(|_| Error::TooLarge {
            what: "the number of elements of y",
            found: len.into(),
            most: usize::MAX as u64,
        })?;
        let x = upload(&self.device, x)?;
        let mut y = self.device.uninitialized(len)?;
        self.run(&x, rows, &mut y)?;
        let y = Array2::from_shape_vec((rows, self.cols()), y.download()?);
        Ok(y.expect("y has rows * cols elements"))
    }
}

impl<T: GemmElement> fmt::Display for Gemm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "XW in {} with a {} x {} matrix{}{} on {}: {} ({}), {}",
            T::NAME,
            self.depth,
            self.cols,
            if self.bias.is_some() { ", bias" } else { "" },
            if self.options.relu { ", ReLU" } else { "" },
            self.device,
            self.kernel.name(),
            self.kernel.summary(),
            if self.options.kernel.is_some() {
                "as asked for"
            } else {
                "the default"
            },
        )
    }
}

/// Tensor cores for what they multiply without loss; `staged` for an f32 that cannot be split.
fn default_kernel<T: GemmElement>(device: &Device, w: ArrayView2<'_, T>, tf32: bool) -> GemmKernel {
    // With fewer columns the warps' own loads of W are not what takes the time, and between the two most of the wider tile is empty.
    let suits_warpgroups = matches!(w.ncols(), 17..=48 | 65..);
    // 16-bit rows that are no multiple of 8 bytes are copied in small pieces: with few columns the older kernel is faster, and with an
    // odd number of elements in any case.
    let pairs = w.nrows().is_multiple_of(2);
    let copies_well = w.nrows().is_multiple_of(4) || pairs && w.ncols() > 16;
    match T::NAME {
        "f64" if runs_on(GemmKernel::Sm90Fragments, device) => GemmKernel::Sm90Fragments,
        "f64" => GemmKernel::WarpFragments,
        "f32" if tf32 => GemmKernel::WarpFragments,
        "f32" => f32_kernel(device, w),
        _ if !copies_well => GemmKernel::Fragments,
        _ if suits_warpgroups && runs_on(GemmKernel::WarpgroupFragments, device) => {
            GemmKernel::WarpgroupFragments
        }
        _ => GemmKernel::WarpFragments,
    }
}

/// The fastest kernel of parts that suffice for W.
fn f32_kernel<T: GemmElement>(device: &Device, w: ArrayView2<'_, T>) -> GemmKernel {
    // An f32 is the same in f64 and back.
    let weights = || w.iter().map(|weight| weight.to_f64() as f32);
    let depth = w.nrows().try_into().unwrap_or(u32::MAX);
    let has_warpgroups = w.ncols() > 16 && runs_on(GemmKernel::WarpgroupSplit, device);
    // With fewer columns its wider tile is half empty, and with as few rows the writing of Y takes most of the time.
    let is_wide = w.ncols() > 64 && w.nrows() > 64;
    if has_warpgroups && is_wide && warpgroup_halves::suffices(weights(), depth) {
        GemmKernel::WarpgroupHalves
    } else if has_warpgroups && warpgroup_split::suffices(weights(), depth) {
        GemmKernel::WarpgroupSplit
    } else if split_fragments::suffices(weights(), depth, split_fragments::GREATEST) {
        GemmKernel::SplitFragments
    } else {
        GemmKernel::Staged
    }
}

/// Whether the device has the instructions of the kernel.
fn runs_on(kernel: GemmKernel, device: &Device) -> bool {
    let Version { major, minor } = device.properties().compute_capability;
    kernel.runs_on((major, minor))
}

fn check_kernel<T: GemmElement>(
    kernel: GemmKernel,
    device: &Device,
    options: GemmOptions,
) -> Result<(), Error> {
    let refused = |reason: String| {
        Err(Error::Kernel {
            kernel: kernel.name(),
            reason,
        })
    };
    if !kernel.supports::<T>() {
        return refused(format!("it has no instance for {}", T::NAME));
    }
    if !runs_on(kernel, device) {
        let (major, minor) = kernel.least_compute_capability();
        let found = device.properties().compute_capability;
        return refused(format!(
            "it is for compute capability {major}.{minor}{}, {device} has {found}",
            if kernel.runs_on((u32::MAX, 0)) {
                " and newer"
            } else {
                " alone"
            }
        ));
    }
    if kernel.rounds_f32() && T::NAME == "f32" && !options.tf32 {
        return refused("on f32 it computes in tf32, which the options do not allow".to_owned());
    }
    Ok(())
}

/// Uploads a matrix of any memory layout, row-major.
pub(crate) fn upload<T: GemmElement>(
    device: &Device,
    matrix: ArrayView2<'_, T>,
) -> Result<DeviceBuffer<T>, Error> {
    match matrix.as_standard_layout().as_slice() {
        Some(elements) => device.upload(elements),
        None => unreachable!("the standard layout is contiguous"),
    }
}

/// Kernels count rows and columns with 32 bits.
pub(crate) fn extent(what: &'static str, found: usize) -> Result<u32, Error> {
    u32::try_from(found).map_err(|_| Error::TooLarge {
        what,
        found: found as u128,
        most: u32::MAX.into(),
    })
}

/// Two 32-bit extents have a 64-bit product.
pub(crate) fn elements(rows: u32, columns: u32) -> u64 {
    u64::from(rows) * u64::from(columns)
}

/// That a buffer is on the device and has that many elements.
pub(crate) fn check<T: GemmElement>(
    device: &Device,
    what: &'static str,
    buffer: &DeviceBuffer<T>,
    wanted: u64,
) -> Result<(), Error> {
    if buffer.device() != device {
        return Err(Error::OtherDevice {
            what,
            wanted: device.to_string(),
            found: buffer.device().to_string(),
        });
    }
    let found = buffer.len() as u64;
    if found != wanted {
        return Err(Error::Length {
            what,
            wanted,
            found,
        });
    }
    Ok(())
}
