//! The bench on the emulator, from its options to its file.

use crate::gemm::bench;
use crate::gemm::options::Options;
use clap::Parser;
use serde_json::Value;
use std::path::Path;
use warprow::GemmKernel;

fn run(arguments: &[&str], output: &Path) -> anyhow::Result<bool> {
    let output = output.to_str().expect("a temporary path is text");
    let fixed = ["gemm", "--device", "emulator", "--output", output];
    bench::run(&Options::try_parse_from([&fixed, arguments].concat())?)
}

fn objects(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_case_and_kernel_has_a_line_that_is_right_and_not_timed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gemm.jsonl");
    let shapes = ["--rows", "203", "--shape", "5x7,16x16", "--classes", "6"];
    let others = ["--type", "f32,f16", "--kernel", "all", "--no-cublas"];
    assert!(run(&[&shapes[..], &others].concat(), &path).unwrap());
    let objects = objects(&path);
    for object in &objects {
        assert_eq!(object["rows"], 203);
        assert!(object["ms"].is_null() && object["of_floor"].is_null());
        assert_eq!(
            (&object["ok"], &object["rows_verified"]),
            (&true.into(), &203.into())
        );
    }
    let of = |bench: &str, k: u64, features: u64, element: &str| -> Vec<&Value> {
        let case = |object: &&Value| {
            (object["bench"] == bench && object["type"] == element)
                && (object["k"] == k && object["features"] == features)
        };
        objects.iter().filter(case).collect()
    };
    let mut lines = 0;
    for (k, features) in [(5, 7), (16, 16)] {
        for element in ["f32", "f16"] {
            let found = of("gemm", k, features, element);
            let supported = GemmKernel::ALL.iter().filter(|kernel| {
                let refusal = match element {
                    "f32" => kernel.refusal::<f32>(k as u32),
                    _ => kernel.refusal::<warprow::f16>(k as u32),
                };
                refusal.is_none()
            });
            let kernels = supported.map(|kernel| kernel.name());
            let wanted: Vec<_> = ["warprow"].into_iter().chain(kernels).collect();
            let implementations = found.iter().map(|object| object["impl"].as_str().unwrap());
            assert_eq!(implementations.collect::<Vec<_>>(), wanted);
            assert!(found[0]["kernel"].is_string());
            let variant = found[0]["variant"].as_str().unwrap();
            assert!(variant.starts_with("gemm_"), "{variant}");
            lines += found.len();
        }
    }
    for element in ["f32", "f16"] {
        let found = of("log_softmax", 6, 6, element);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["impl"], "warprow");
        let variant = format!("log_softmax_staged_{element}_1");
        assert_eq!(found[0]["variant"], variant);
        lines += 1;
    }
    assert_eq!(lines, objects.len());
}

#[test]
fn a_sweep_runs_each_instance_that_can_compute_the_product() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gemm.jsonl");
    let shape = ["--rows", "67", "--shape", "24x17", "--classes", "8"];
    let others = ["--type", "f64,bf16", "--sweep", "--no-cublas"];
    assert!(run(&[&shape[..], &others].concat(), &path).unwrap());
    let mut swept: Vec<(String, String)> = Vec::new();
    for object in objects(&path) {
        assert_eq!(object["ok"], true, "{object}");
        let text = |key: &str| object[key].as_str().unwrap().to_owned();
        if text("impl") != "warprow" {
            assert_eq!(text("impl"), text("variant"));
            swept.push((text("bench"), text("impl")));
        }
    }
    let names = |bench: &str, prefix: &str| -> Vec<&str> {
        let of_bench = swept.iter().filter(|(of, _)| of == bench);
        let names = of_bench.filter_map(|(_, name)| name.strip_prefix(prefix));
        names.collect()
    };
    assert_eq!(
        names("gemm", "gemm_warp_fragments_f64_"),
        ["Columns16", "Columns48Streamed"]
    );
    // `Columns48Compact` takes no W of 17 columns.
    assert_eq!(names("gemm", "gemm_sm90_fragments_").len(), 7);
    assert_eq!(names("gemm", "gemm_fragments_"), ["bf16"]);
    assert_eq!(names("gemm", "gemm_shallow_"), ["f64", "bf16"]);
    assert_eq!(names("gemm", "gemm_flat_fragments_"), ["bf16_2"]);
    // With more than one column of W, only one of the two instances.
    assert_eq!(names("gemm", "gemm_inner_products_"), ["f64_2", "bf16_2"]);
    assert_eq!(names("gemm", "").len(), 2 + 7 + 1 + 1 + 6 + 4 + 2 + 2);
    assert_eq!(
        names("log_softmax", "log_softmax_"),
        [
            "sub_warp_f64",
            "staged_f64_8",
            "streamed_f64",
            "sub_warp_bf16",
            "staged_bf16_1",
            "streamed_bf16"
        ]
    );
}

#[test]
fn random_products_have_one_type_each_and_their_ends_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gemm.jsonl");
    let random = ["--random", "4", "--type", "f16,f64", "--no-cublas"];
    assert!(run(&random, &path).unwrap());
    let objects = objects(&path);
    let types = objects
        .iter()
        .map(|object| object["type"].as_str().unwrap());
    assert_eq!(types.collect::<Vec<_>>(), ["f16", "f64", "f16", "f64"]);
    for object in &objects {
        assert_eq!(
            (&object["bench"], &object["impl"]),
            (&"gemm".into(), &"warprow".into())
        );
        assert_eq!(object["rows_verified"], object["rows"]);
    }
}

#[test]
fn a_cublas_that_is_insisted_on_and_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().to_str().unwrap().to_owned();
    let output = folder.path().join("gemm.jsonl");
    run(&["--cublas", &library], &output).unwrap_err();
}
