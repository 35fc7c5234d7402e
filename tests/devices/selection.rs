//! Selectors, `WARPROW_DEVICE`, and which device they open.

use std::env;
use std::process::Command;
use support::cuda;
use warprow::device::{CudaUnavailable, Device, DeviceError, Selector};

#[test]
fn a_selector_is_what_it_prints() {
    for (text, selector) in [
        ("auto", Selector::Auto),
        ("cuda", Selector::Cuda(None)),
        ("cuda:0", Selector::Cuda(Some(0))),
        ("cuda:17", Selector::Cuda(Some(17))),
        ("emulator", Selector::Emulator),
    ] {
        assert_eq!(text.parse(), Ok(selector));
        assert_eq!(selector.to_string(), text);
    }
}

#[test]
fn what_names_no_device_is_an_error_that_lists_what_does() {
    for text in [
        "",
        "gpu",
        "CUDA",
        " cuda",
        "cuda:",
        "cuda:x",
        "cuda:+1",
        "cuda:-1",
        "cuda:1:2",
        "cuda:4294967296",
    ] {
        let error = text.parse::<Selector>().unwrap_err().to_string();
        for part in [&format!("`{text}`"), "auto", "cuda", "cuda:1", "emulator"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn an_unset_or_empty_variable_is_auto() {
    assert_eq!(Selector::from_value(None), Ok(Selector::Auto));
    assert_eq!(Selector::from_value(Some("".as_ref())), Ok(Selector::Auto));
    let cuda = Selector::from_value(Some("cuda:1".as_ref()));
    assert_eq!(cuda, Ok(Selector::Cuda(Some(1))));
    assert!(Selector::from_value(Some("cpu".as_ref())).is_err());
}

/// Not a test of its own: what the tests below run in a process with another `WARPROW_DEVICE`.
#[test]
fn opens_the_device_of_the_environment() {
    match Device::open() {
        Ok(device) => println!("opened: {device}"),
        Err(error) => println!("refused: {error}"),
    }
}

/// What [`opens_the_device_of_the_environment`] prints with `WARPROW_DEVICE` set to `value`.
fn opened_with(value: &str) -> String {
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "selection::opens_the_device_of_the_environment",
            "--nocapture",
        ])
        .env("WARPROW_DEVICE", value)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text
        .lines()
        .find_map(|line| Some(&line[line.find("opened: ").or_else(|| line.find("refused: "))?..]));
    line.unwrap_or_else(|| panic!("no answer in {text}"))
        .to_owned()
}

#[test]
fn the_environment_chooses_the_device() {
    let emulator = opened_with("emulator");
    assert!(emulator.starts_with("opened: emulator ("), "{emulator}");
    let (auto, insisted) = (opened_with("auto"), opened_with("cuda"));
    match cuda() {
        Some(_) => assert_eq!(auto, insisted),
        None => assert_eq!(auto, emulator),
    }
    assert_eq!(opened_with(""), auto);
}

#[test]
fn a_variable_that_names_no_device_is_an_error() {
    let answer = opened_with("gpu");
    assert!(
        answer.starts_with("refused: unknown device `gpu`: wanted `auto`"),
        "{answer}"
    );
}

#[test]
fn a_cuda_device_that_is_not_there_is_an_error_that_says_why() {
    let answer = opened_with("cuda:99");
    assert!(
        answer.starts_with("refused: no device `cuda:99`: "),
        "{answer}"
    );
    let error = Device::select(Selector::Cuda(Some(99))).unwrap_err();
    assert_eq!(format!("refused: {error}"), answer);
    let DeviceError::NoCuda { selector, reason } = error else {
        panic!("{error}");
    };
    assert_eq!(selector, Selector::Cuda(Some(99)));
    match reason {
        CudaUnavailable::NoSuchOrdinal { ordinal, count, .. } => {
            assert_eq!(ordinal, 99);
            assert!(count < 99);
        }
        CudaUnavailable::NoDriver { reason } => assert!(reason.contains("libcuda"), "{reason}"),
        CudaUnavailable::NoDevice { .. } => {}
        CudaUnavailable::NotBuilt if cfg!(not(all(feature = "cuda", target_os = "linux"))) => {}
        other => panic!("{other}"),
    }
}

#[test]
fn auto_says_why_it_took_the_emulator() {
    let (device, reason) = Device::select_with_reason(Selector::Auto).unwrap();
    assert_eq!(device.is_emulator(), reason.is_some());
    assert!(reason.is_none_or(|reason| !reason.to_string().is_empty()));
    let (device, reason) = Device::select_with_reason(Selector::Emulator).unwrap();
    assert!(device.is_emulator() && reason.is_none());
}
