//! `warprow tune`, and `WARPROW_PROFILE`, which names what it writes.

use super::{Folder, texts, warprow};
use warprow::device::{Device, DeviceProfile};

/// What `info` prints or reports with the variable set to a file.
fn info_with_profile(folder: &Folder, file: &str) -> (Option<i32>, String, String) {
    let mut command = warprow(&["info", "a.mtx", "--features", "16"]);
    command
        .current_dir(folder.0.path())
        .env("WARPROW_PROFILE", file);
    let output = command.output().unwrap();
    let (stdout, stderr) = texts(&output);
    (output.status.code(), stdout, stderr)
}

#[test]
fn tune_wants_a_gpu_to_measure() {
    let folder = Folder::new();
    let mut command = warprow(&["tune", "--output", "gpu.json"]);
    let output = command.current_dir(folder.0.path()).output().unwrap();
    let (_, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("wanted a GPU to measure"), "{stderr}");
    assert!(!folder.path("gpu.json").exists());
}

#[test]
fn tune_writes_a_profile_of_the_gpu_by_which_plans_are_made() {
    if Device::open().unwrap().is_emulator() {
        println!("skipped: there is no GPU");
        return;
    }
    let folder = Folder::new();
    let mut command = warprow(&["tune", "--output", "gpu.json"]);
    command
        .current_dir(folder.0.path())
        .env("WARPROW_DEVICE", "cuda");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", texts(&output).1);
    let profile = DeviceProfile::read(folder.path("gpu.json")).unwrap();
    let rates = profile.rates;
    let plausible = 100_000_000_000..50_000_000_000_000;
    let l2 = rates.l2_bytes_per_second.unwrap();
    for rate in [rates.memory_bytes_per_second, l2] {
        assert!(plausible.contains(&rate), "{rates:?}");
    }
    let launch = rates.launch_nanoseconds.unwrap();
    assert!((500..1_000_000).contains(&launch), "{rates:?}");
    let (code, stdout, stderr) = info_with_profile(&folder, "gpu.json");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("predicted"), "{stdout}");
}

#[test]
fn a_profile_with_an_error_is_refused_with_file_line_and_field() {
    let folder = Folder::new();
    let mut profile = DeviceProfile::a100();
    profile.name = "A100 with less memory bandwidth".to_owned();
    let text = profile.to_json();
    folder.write("good.json", &text);
    let (code, stdout, _) = info_with_profile(&folder, "good.json");
    assert_eq!(code, Some(0));
    assert!(stdout.contains("emulator of A100 with less"), "{stdout}");
    folder.write("bad.json", text.replace("2039", "0"));
    for (file, wanted) in [
        (
            "bad.json",
            "bad.json, line 7, field `memory_gb_per_second`: wanted a number",
        ),
        ("absent.json", "WARPROW_PROFILE: absent.json: "),
    ] {
        let (code, _, stderr) = info_with_profile(&folder, file);
        let words = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code, Some(2), "{stderr}");
        assert!(words.contains(wanted), "{stderr}");
    }
}

#[test]
fn the_doctor_reads_the_profile() {
    let folder = Folder::new();
    folder.write("good.json", DeviceProfile::a100().to_json());
    folder.write("bad.json", "{}");
    for (file, code, wanted) in [
        ("good.json", 0, "ok WARPROW_PROFILE NVIDIA A100"),
        ("bad.json", 1, "FAILS WARPROW_PROFILE bad.json"),
        ("absent.json", 1, "FAILS WARPROW_PROFILE absent.json"),
    ] {
        let mut command = warprow(&["doctor"]);
        command
            .current_dir(folder.0.path())
            .env("WARPROW_PROFILE", file);
        let output = command.output().unwrap();
        let (stdout, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
        let words = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(wanted), "{stdout}");
    }
}
