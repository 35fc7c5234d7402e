//! A sparse product of warprow as a [`CustomOp1`] of candle: on a GPU in candle's memory and on its stream, without a
//! copy; for tensors of the CPU on whatever device the plan is for.
//!
//! ```text
//! cargo run --release                    # on the CPU, by the emulator
//! cargo run --release --features cuda    # on a GPU; needs a CUDA toolkit
//! ```

use candle_core::{CpuStorage, CustomOp1, Device, Error, Layout, Result, Shape, Tensor};
use ndarray::ArrayView2;
use warprow::{CsrMatrix, Spmm, SpmmOptions, generate};

/// `Y = A X` with a sparse A.
struct SparseMatmul {
    spmm: Spmm<f32>,
    #[cfg(feature = "cuda")]
    on: Option<warprow_cudarc::CudarcDevice>,
}

impl SparseMatmul {
    /// Plans the product for tensors of that device.
    fn new(device: &Device, a: &CsrMatrix<f32>) -> Result<Self> {
        #[cfg(feature = "cuda")]
        if let Device::Cuda(device) = device {
            let stream = device.cuda_stream();
            let on = warprow_cudarc::CudarcDevice::new(&stream).map_err(Error::wrap)?;
            let spmm = Spmm::plan(on.device(), a.view(), SpmmOptions::default());
            return Ok(Self {
                spmm: spmm.map_err(Error::wrap)?,
                on: Some(on),
            });
        }
        let _ = device;
        let emulator = warprow::Device::emulator(Default::default());
        let spmm = Spmm::plan(&emulator, a.view(), SpmmOptions::default());
        Ok(Self {
            spmm: spmm.map_err(Error::wrap)?,
            #[cfg(feature = "cuda")]
            on: None,
        })
    }

    /// The range of X in its storage, its columns, and the shape of Y.
    fn operands(&self, x: &Layout) -> Result<(std::ops::Range<usize>, usize, Shape)> {
        let (rows, features) = x.shape().dims2()?;
        if rows != self.spmm.cols() {
            candle_core::bail!("X has {rows} rows, A has {} columns", self.spmm.cols());
        }
        let Some((start, end)) = x.contiguous_offsets() else {
            candle_core::bail!("X is not contiguous");
        };
        Ok((start..end, features, (self.spmm.rows(), features).into()))
    }
}

impl CustomOp1 for SparseMatmul {
    fn name(&self) -> &'static str {
        "sparse-matmul"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (range, features, shape) = self.operands(layout)?;
        let x = &x.as_slice::<f32>()?[range];
        let x = ArrayView2::from_shape((self.spmm.cols(), features), x).map_err(Error::wrap)?;
        let y = self.spmm.multiply(x).map_err(Error::wrap)?;
        Ok((CpuStorage::F32(y.into_raw_vec_and_offset().0), shape))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let Some(on) = &self.on else {
            candle_core::bail!("the product is planned for another device");
        };
        let (range, features, shape) = self.operands(layout)?;
        let device = x.device.clone();
        let x = x.as_cuda_slice::<f32>()?.slice(range);
        let mut y = on
            .stream()
            .alloc_zeros::<f32>(shape.elem_count())
            .map_err(Error::wrap)?;
        on.scope(|operands| -> Result<()> {
            let x = operands.read(&x).map_err(Error::wrap)?;
            let y = operands.write(&mut y).map_err(Error::wrap)?;
            self.spmm.run(x, features, y).map_err(Error::wrap)
        })?;
        Ok((candle_core::CudaStorage::wrap_cuda_slice(y, device), shape))
    }
}

fn main() -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    let a = generate::uniform::<f32>(500, 300, 4000, 1).map_err(Error::wrap)?;
    let product = SparseMatmul::new(&device, &a)?;
    let x = Tensor::randn(0_f32, 1.0, (300, 16), &device)?;
    let y = x.apply_op1_no_bwd(&product)?;
    // candle's own product, with a dense A.
    let dense = Tensor::from_vec(
        a.to_dense().into_raw_vec_and_offset().0,
        (500, 300),
        &device,
    )?;
    let difference = (y - dense.matmul(&x)?)?
        .abs()?
        .max_all()?
        .to_scalar::<f32>()?;
    println!(
        "{}: the greatest difference from a dense product is {difference:e}",
        product.spmm
    );
    if difference < 1e-4 {
        Ok(())
    } else {
        candle_core::bail!("the product is wrong")
    }
}
