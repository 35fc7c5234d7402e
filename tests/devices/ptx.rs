//! PTX: a kernel that it lacks, text that does not compile.

use crate::kernels::{PTX, affine_wanted, in_no_module, run_affine};
use support::cuda;
use warprow::device::DeviceError;
use warprow::launch;

#[test]
fn a_kernel_that_no_module_has_is_an_error_that_names_it() {
    let Some(device) = cuda() else { return };
    device.load_ptx(PTX).unwrap();
    let in_no_module = in_no_module();
    // SAFETY: nothing is launched.
    let error = unsafe { launch!(device, in_no_module<<<1, 1, 0>>>()) }.unwrap_err();
    assert!(
        matches!(&error, DeviceError::NoKernel { kernel, loaded } if kernel == "in_no_module" && *loaded >= 1),
        "{error}"
    );
}

#[test]
fn ptx_that_does_not_compile_is_an_error_with_the_compiler_s_words() {
    let Some(device) = cuda() else { return };
    device.load_ptx(PTX).unwrap();
    let wrong = PTX.replacen("ld.param.u32", "no.such.instruction", 1);
    let error = device.load_ptx(&wrong).unwrap_err();
    assert!(
        matches!(&error, DeviceError::Ptx { log, .. } if !log.is_empty()),
        "{error}"
    );
    let error = device.load_ptx(".version 7.0\0").unwrap_err();
    assert!(
        matches!(error, DeviceError::NotPtx { position: 12 }),
        "{error}"
    );
    assert_eq!(
        run_affine(&device, 5).unwrap().download().unwrap(),
        affine_wanted(5)
    );
}
