//! A driver library for the tests: it has every function of the table except one, and needs no GPU.
//!
//! The tests compile it with `rustc` as a library of its own.

#![allow(non_snake_case, reason = "the names are the driver's")]

/// The value that each function returns; it depends on its name only. `tests/driver/own_process.rs` has the same
/// function.
const fn code_of(name: &str) -> u32 {
    let name = name.as_bytes();
    let mut code = 7;
    let mut i = 0;
    while i < name.len() {
        code = (code * 31 + name[i] as u32) % 1_000_003;
        i += 1;
    }
    code
}

macro_rules! functions {
    ($($name:ident)*) => {
        $(function! { $name })*
    };
}

macro_rules! function {
    // Missing, as in a driver that is older than this function.
    (cuLaunchCooperativeKernel) => {};
    (cuLaunchKernel) => {
        /// Writes its other arguments to the address in the tenth.
        ///
        /// # Safety
        ///
        /// `kernel_params` must be valid for a write of ten values.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn cuLaunchKernel(
            function: usize,
            grid_x: u32,
            grid_y: u32,
            grid_z: u32,
            block_x: u32,
            block_y: u32,
            block_z: u32,
            shared_bytes: u32,
            stream: usize,
            kernel_params: *mut [usize; 10],
            extra: usize,
        ) -> u32 {
            let [grid_x, grid_y, grid_z] = [grid_x, grid_y, grid_z].map(|size| size as usize);
            let [block_x, block_y, block_z] = [block_x, block_y, block_z].map(|size| size as usize);
            let arguments = [
                function,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                shared_bytes as usize,
                stream,
                extra,
            ];
            // SAFETY: `kernel_params` is valid for a write of ten values, by the contract of the function.
            unsafe { kernel_params.write(arguments) };
            code_of("cuLaunchKernel")
        }
    };
    ($name:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> u32 {
            const { code_of(stringify!($name)) }
        }
    };
}

include!("../../src/functions.rs");
