//! A kernel of cudarc, a product of warprow, and another kernel of cudarc, on one stream and in memory of cudarc.
//!
//! ```text
//! cargo run -p warprow-cudarc --example one_stream
//! ```
//!
//! Without a GPU it says so and does nothing; with `WARPROW_DEVICE=cuda` that is an error.

use anyhow::{Context, ensure};
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use ndarray::Array2;
use warprow::device::Selector;
use warprow::reference::verify_spmm;
use warprow::{Device, Spmm, SpmmOptions, generate};
use warprow_cudarc::CudarcDevice;

const ROWS: usize = 5_000;
const COLUMNS: usize = 3_001;
const FEATURES: usize = 32;

/// `x[i] = i % 13`, and `y[i] = 2 y[i]`.
const PTX: &str = "
.version 7.0
.target sm_80
.address_size 64

.visible .entry fill(.param .u64 fill_x, .param .u32 fill_n)
{
    .reg .pred %beyond;
    .reg .b32 %n, %block, %size, %thread, %i, %rest;
    .reg .f32 %value;
    .reg .b64 %x, %address;

    ld.param.u64 %x, [fill_x];
    ld.param.u32 %n, [fill_n];
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %i, %block, %size, %thread;
    setp.ge.u32 %beyond, %i, %n;
    @%beyond ret;
    rem.u32 %rest, %i, 13;
    cvt.rn.f32.u32 %value, %rest;
    mad.wide.u32 %address, %i, 4, %x;
    st.global.f32 [%address], %value;
    ret;
}

.visible .entry double(.param .u64 double_y, .param .u32 double_n)
{
    .reg .pred %beyond;
    .reg .b32 %n, %block, %size, %thread, %i;
    .reg .f32 %value;
    .reg .b64 %y, %address;

    ld.param.u64 %y, [double_y];
    ld.param.u32 %n, [double_n];
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %i, %block, %size, %thread;
    setp.ge.u32 %beyond, %i, %n;
    @%beyond ret;
    mad.wide.u32 %address, %i, 4, %y;
    ld.global.f32 %value, [%address];
    add.f32 %value, %value, %value;
    st.global.f32 [%address], %value;
    ret;
}
";

fn main() -> anyhow::Result<()> {
    let selector = Selector::from_environment()?;
    // Without a driver cudarc panics, so warprow looks for one first.
    let (device, reason) = Device::select_with_reason(selector)?;
    if device.is_emulator() {
        let reason = reason.map_or("the emulator was asked for".to_owned(), |r| r.to_string());
        println!("skipped: cudarc needs a GPU: {reason}");
        return Ok(());
    }
    drop(device);
    let ordinal = match selector {
        Selector::Cuda(Some(ordinal)) => ordinal as usize,
        _ => 0,
    };

    let context = CudaContext::new(ordinal)?;
    let stream = context.new_stream()?;
    let module = context.load_module(Ptx::from_src(PTX))?;
    let (fill, double) = (
        module.load_function("fill")?,
        module.load_function("double")?,
    );

    let on = CudarcDevice::new(&stream)?;
    let a = generate::uniform::<f32>(ROWS as u32, COLUMNS as u32, 60_000, 1)?;
    let spmm = Spmm::plan(on.device(), a.view(), SpmmOptions::default())?;

    let mut x = stream.alloc_zeros::<f32>(COLUMNS * FEATURES)?;
    let mut y = stream.alloc_zeros::<f32>(ROWS * FEATURES)?;
    let n = (COLUMNS * FEATURES) as u32;
    // SAFETY: the kernel writes `n` elements, as many as `x` has.
    unsafe {
        let mut launch = stream.launch_builder(&fill);
        launch
            .arg(&mut x)
            .arg(&n)
            .launch(LaunchConfig::for_num_elems(n))?;
    }
    on.scope(|operands| -> anyhow::Result<()> {
        spmm.run(operands.read(&x)?, FEATURES, operands.write(&mut y)?)?;
        Ok(())
    })?;
    let n = (ROWS * FEATURES) as u32;
    // SAFETY: the kernel changes `n` elements, as many as `y` has.
    unsafe {
        let mut launch = stream.launch_builder(&double);
        launch
            .arg(&mut y)
            .arg(&n)
            .launch(LaunchConfig::for_num_elems(n))?;
    }
    let y = stream.clone_dtoh(&y)?;

    // Halves and doubles of f32 are exact.
    let y = Array2::from_shape_vec((ROWS, FEATURES), y)?.mapv(|y| y / 2.0);
    let x = Array2::from_shape_fn((COLUMNS, FEATURES), |(i, j)| {
        ((i * FEATURES + j) % 13) as f32
    });
    let checked = verify_spmm(a.view(), x.view(), y.view());
    ensure!(checked.ok(), "the product is wrong: {checked}");
    println!("device   {}", on.device());
    println!(
        "stream   cudarc filled x, warprow multiplied, cudarc doubled y, with no copy between"
    );
    println!("check    {checked}");
    stream.synchronize().context("the stream has failed")
}
