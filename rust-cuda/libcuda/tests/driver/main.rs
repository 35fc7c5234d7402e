//! Calls through the stubs: with a fake driver, without a driver, and with libraries that are no drivers.
//!
//! A process opens its driver once. So each test runs itself again in a process of its own, with the environment
//! variables that it needs.

#![cfg(target_os = "linux")]

mod own_process;

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, c_void};
use std::path::{Path, PathBuf};
use std::process::id;
use std::sync::Barrier;
use std::thread;

use cust::CudaFlags;
use cust::device::Device;
use cust::error::CudaError;
use libcuda::{LIBRARY_VARIABLE, LoadError, last_error, load};
use own_process::{CHILD, code_of, fake_driver_for_child, in_fake_driver, in_own_process};

const UNKNOWN: u32 = 999;
const STUB_LIBRARY: u32 = 34;
const NOT_FOUND: u32 = 500;

macro_rules! functions {
    ($($name:ident)*) => {
        // Not those of `cust::sys`, which lacks some. They have the same addresses.
        #[allow(non_snake_case, reason = "the names are the driver's")]
        unsafe extern "C" {
            $(fn $name();)*
        }

        /// The name of every function of the table, and the address that programs link to.
        fn functions() -> Vec<(&'static str, *const c_void)> {
            vec![$((stringify!($name), $name as *const c_void)),*]
        }
    };
}
include!("../../src/functions.rs");

/// Calls a function with two null arguments, and returns the code of the driver.
fn call(function: *const c_void) -> u32 {
    // SAFETY: the address is that of a stub, which passes on the arguments of any C function.
    let function: unsafe extern "C" fn(usize, usize) -> u32 =
        unsafe { std::mem::transmute(function) };
    // SAFETY: the functions of the fake driver and the substitutes accept two null arguments.
    driver_code(unsafe { function(0, 0) })
}

/// The driver's code, for which a stub has just returned `code`.
fn driver_code(code: u32) -> u32 {
    if code == UNKNOWN { last_error() } else { code }
}

/// The type of `cuLaunchKernel`. Its pointers are integers, except the one to which the fake driver writes.
type Launch = unsafe extern "C" fn(
    usize,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    usize,
    *mut [usize; 10],
    usize,
) -> u32;

#[test]
fn each_stub_calls_the_function_of_its_name() {
    in_fake_driver("each_stub_calls_the_function_of_its_name", || {
        let codes: BTreeSet<u32> = functions().iter().map(|(name, _)| code_of(name)).collect();
        assert_eq!(codes.len(), functions().len(), "two names with one code");
        for (name, function) in functions() {
            match name {
                "cuLaunchCooperativeKernel" | "cuLaunchKernel" => {}
                _ => assert_eq!(call(function), code_of(name), "{name}"),
            }
        }
    });
}

#[test]
fn every_argument_of_a_launch_arrives_at_the_first_call_and_at_later_ones() {
    in_fake_driver(
        "every_argument_of_a_launch_arrives_at_the_first_call_and_at_later_ones",
        || {
            // SAFETY: the function of the fake driver has this type.
            let launch: Launch =
                unsafe { std::mem::transmute(cust::sys::cuLaunchKernel as *const c_void) };
            for call in 1..=3usize {
                let word = |i: usize| 0x0123_4567_89ab_0000 + call * 0x100 + i;
                let half = |i: usize| word(i) as u32;
                let mut arrived = [0; 10];
                // SAFETY: the tenth argument is valid for a write by the fake driver, which only reads the others.
                let code = unsafe {
                    launch(
                        word(0),
                        half(1),
                        half(2),
                        half(3),
                        half(4),
                        half(5),
                        half(6),
                        half(7),
                        word(8),
                        &mut arrived,
                        word(10),
                    )
                };
                assert_eq!(driver_code(code), code_of("cuLaunchKernel"));
                let halves = (1..8).map(|i| half(i) as usize);
                let sent: Vec<usize> = [word(0)]
                    .into_iter()
                    .chain(halves)
                    .chain([word(8), word(10)])
                    .collect();
                assert_eq!(arrived.to_vec(), sent, "call {call}");
            }
        },
    );
}

#[test]
fn a_function_that_the_driver_lacks_gives_not_found() {
    in_fake_driver("a_function_that_the_driver_lacks_gives_not_found", || {
        let function = cust::sys::cuLaunchCooperativeKernel as *const c_void;
        assert_eq!(call(function), NOT_FOUND);
        assert!(load().is_ok());
        assert_eq!(call(function), NOT_FOUND);
    });
}

#[test]
fn a_code_that_cust_does_not_know_is_unknown_to_it_and_kept_for_the_thread() {
    in_fake_driver(
        "a_code_that_cust_does_not_know_is_unknown_to_it_and_kept_for_the_thread",
        || {
            assert_eq!(last_error(), 0);
            let error = cust::init(CudaFlags::empty()).unwrap_err();
            assert_eq!(error, CudaError::UnknownError);
            assert_eq!(last_error(), code_of("cuInit"));
            thread::scope(|scope| {
                scope.spawn(|| assert_eq!(last_error(), 0));
            });
            // SAFETY: the stub passes on the arguments of any C function, and the fake driver reads none.
            let init: unsafe extern "C" fn(u32) -> u32 =
                unsafe { std::mem::transmute(cust::sys::cuInit as *const c_void) };
            // SAFETY: as above.
            assert_eq!(unsafe { init(0) }, UNKNOWN);
        },
    );
}

#[test]
fn first_calls_from_many_threads_all_reach_the_driver() {
    in_fake_driver("first_calls_from_many_threads_all_reach_the_driver", || {
        const THREADS: usize = 64;
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for i in 0..THREADS {
                let start = &start;
                scope.spawn(move || {
                    let (name, function) = match i % 3 {
                        0 => ("cuInit", cust::sys::cuInit as *const c_void),
                        1 => ("cuDeviceGet", cust::sys::cuDeviceGet as *const c_void),
                        _ => ("cuMemFree_v2", cust::sys::cuMemFree_v2 as *const c_void),
                    };
                    start.wait();
                    assert_eq!(call(function), code_of(name), "{name}");
                    assert!(load().is_ok());
                });
            }
        });
    });
}

#[test]
fn the_driver_tells_the_file_it_was_opened_from() {
    in_fake_driver("the_driver_tells_the_file_it_was_opened_from", || {
        let named = env::var_os(LIBRARY_VARIABLE).unwrap();
        assert_eq!(load().unwrap().path(), Some(Path::new(&named)));
    });
}

#[test]
fn the_driver_is_found_on_the_search_path_of_the_dynamic_linker() {
    let Some(file) = fake_driver_for_child() else {
        return;
    };
    let directory = file.parent().unwrap_or(file);
    in_own_process(
        "the_driver_is_found_on_the_search_path_of_the_dynamic_linker",
        // An empty value counts as not set.
        &[
            ("LD_LIBRARY_PATH", directory.as_os_str()),
            (LIBRARY_VARIABLE, OsStr::new("")),
        ],
        || {
            assert_eq!(call(cust::sys::cuInit as *const c_void), code_of("cuInit"));
            let directory = env::var_os("LD_LIBRARY_PATH").unwrap();
            let file = Path::new(&directory).join("libcuda.so.1");
            assert_eq!(load().unwrap().path(), Some(&*file));
        },
    );
}

#[test]
fn without_a_driver_every_directory_tried_is_in_the_error() {
    in_own_process(
        "without_a_driver_every_directory_tried_is_in_the_error",
        &[],
        || match load() {
            Ok(driver) => println!("skipped: this machine has a driver, {:?}", driver.path()),
            Err(LoadError::NotFound { tried }) => {
                let message = load().unwrap_err().to_string();
                assert_eq!(tried[0].library, Path::new("libcuda.so.1"));
                assert!(tried.len() > 1);
                for attempt in tried {
                    let directory = attempt.library.parent().unwrap();
                    assert!(message.contains(directory.to_str().unwrap()), "{message}");
                    assert!(!message.contains(&attempt.reason), "{message}");
                }
            }
            Err(other) => panic!("{other:?}"),
        },
    );
}

#[test]
fn a_driver_that_does_not_open_is_in_the_error_with_its_reason() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("text-{}", id()));
    if env::var_os(CHILD).is_none() {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("libcuda.so.1"), "a text\n".repeat(100)).unwrap();
    }
    in_own_process(
        "a_driver_that_does_not_open_is_in_the_error_with_its_reason",
        &[("LD_LIBRARY_PATH", directory.as_os_str())],
        || match load() {
            Ok(driver) => println!("skipped: this machine has a driver, {:?}", driver.path()),
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("invalid ELF header"), "{message}");
                assert!(!message.contains("No such file"), "{message}");
            }
        },
    );
}

#[test]
fn without_a_driver_every_function_gives_stub_library() {
    let nowhere = OsStr::new("/nowhere/libcuda.so.1");
    in_own_process(
        "without_a_driver_every_function_gives_stub_library",
        &[(LIBRARY_VARIABLE, nowhere)],
        || {
            for (name, function) in functions() {
                match name {
                    // These succeed without a driver; their only error is a null pointer.
                    "cuGetErrorName" | "cuGetErrorString" => {
                        assert_eq!(call(function), 1, "{name}")
                    }
                    _ => assert_eq!(call(function), STUB_LIBRARY, "{name}"),
                }
            }
        },
    );
}

#[test]
fn without_a_driver_cust_gives_errors_that_can_be_displayed() {
    let nowhere = OsStr::new("/nowhere/libcuda.so.1");
    in_own_process(
        "without_a_driver_cust_gives_errors_that_can_be_displayed",
        &[(LIBRARY_VARIABLE, nowhere)],
        || {
            let error = cust::init(CudaFlags::empty()).unwrap_err();
            assert_eq!(error, CudaError::UnknownError);
            assert_eq!(Device::num_devices(), Err(CudaError::UnknownError));
            for error in [error, CudaError::NoDevice, CudaError::InvalidPtx] {
                assert!(
                    error.to_string().contains("there is no CUDA driver"),
                    "{error}"
                );
            }
        },
    );
}

#[test]
fn a_library_named_in_the_environment_that_does_not_exist_is_an_error_that_names_it() {
    let nowhere = OsStr::new("/nowhere/libcuda.so.1");
    in_own_process(
        "a_library_named_in_the_environment_that_does_not_exist_is_an_error_that_names_it",
        &[(LIBRARY_VARIABLE, nowhere)],
        || {
            let error = load().unwrap_err();
            assert!(
                matches!(&error, LoadError::Override { attempt } if attempt.library == Path::new(nowhere))
            );
            let message = error.to_string();
            assert!(message.contains(LIBRARY_VARIABLE), "{message}");
            assert!(message.contains("/nowhere/libcuda.so.1: "), "{message}");
        },
    );
}

#[test]
fn a_file_that_is_no_library_is_an_error_that_names_it() {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    in_own_process(
        "a_file_that_is_no_library_is_an_error_that_names_it",
        &[(LIBRARY_VARIABLE, text.as_os_str())],
        || {
            let error = load().unwrap_err();
            assert!(matches!(error, LoadError::Override { .. }), "{error:?}");
            assert!(error.to_string().contains("Cargo.toml: "), "{error}");
            assert_eq!(call(cust::sys::cuInit as *const c_void), STUB_LIBRARY);
        },
    );
}

#[test]
fn a_library_that_is_no_driver_is_refused() {
    in_own_process(
        "a_library_that_is_no_driver_is_refused",
        &[(LIBRARY_VARIABLE, OsStr::new("libm.so.6"))],
        || {
            let error = load().unwrap_err();
            assert_eq!(
                error,
                LoadError::NotADriver {
                    library: PathBuf::from("libm.so.6"),
                    function: "cuInit"
                }
            );
            assert!(
                error
                    .to_string()
                    .contains("libm.so.6 is not a CUDA driver library"),
                "{error}"
            );
            assert_eq!(call(cust::sys::cuInit as *const c_void), STUB_LIBRARY);
        },
    );
}
