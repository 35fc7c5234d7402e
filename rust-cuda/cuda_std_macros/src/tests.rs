//! The entry points that `#[kernel]` makes, and the errors for what it refuses.

use crate::expand;
use crate::instances::Instances;
use crate::parameter;
use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::{ItemFn, Result, parse_str};

fn expanded(attribute: &str, function: &str) -> Result<TokenStream> {
    let instances: Instances = parse_str(attribute)?;
    expand::kernel(instances, parse_str::<ItemFn>(function).unwrap())
}

/// The error of the macro for `function`.
#[track_caller]
fn refusal(attribute: &str, function: &str) -> String {
    match expanded(attribute, function) {
        Ok(tokens) => panic!("#[kernel({attribute})] takes {function}: {tokens}"),
        Err(error) => error.to_string(),
    }
}

/// The names of the entry points, in the order of the instances.
fn entry_points(attribute: &str, function: &str) -> Vec<String> {
    let text = expanded(attribute, function).unwrap().to_string();
    let exports = text.split("export_name = \"").skip(1);
    exports
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .filter(|name| !name.contains('$'))
        .collect()
}

#[test]
fn a_kernel_without_parameters_is_one_entry_point_of_its_name() {
    assert_eq!(entry_points("", "unsafe fn fill(n: u32) {}"), ["fill"]);
    let named = entry_points("name = \"other\"", "unsafe fn fill(n: u32) {}");
    assert_eq!(named, ["other"]);
}

#[test]
fn each_combination_of_instances_is_an_entry_point() {
    let names = entry_points(
        "name = \"spmm\", T = [f32, half::f16], LANES = [8, 16]",
        "unsafe fn vector<T: Real, const LANES: u32>(x: Global<T>) {}",
    );
    assert_eq!(
        names,
        ["spmm_f32_8", "spmm_f32_16", "spmm_f16_8", "spmm_f16_16"]
    );
}

#[test]
fn groups_of_lists_are_combined_each_by_itself() {
    let names = entry_points(
        "name = \"spmm\", T = [f32, f64], WIDTH = [4]; WIDTH = [4, 8], T = [f16]",
        "unsafe fn vector<T: Real, const WIDTH: usize>(x: Global<T>) {}",
    );
    assert_eq!(
        names,
        ["spmm_f32_4", "spmm_f64_4", "spmm_f16_4", "spmm_f16_8"]
    );
}

/// The name and the marks of each entry point that has marks.
fn marks(attribute: &str, function: &str) -> Vec<String> {
    let text = expanded(attribute, function).unwrap().to_string();
    let exports = text.split("export_name = \"kernel_marks$").skip(1);
    let marks = exports.map(|export| {
        let (name, rest) = export.split_once('"').unwrap();
        let text = rest.split("b\"").nth(1).unwrap().split('"').next().unwrap();
        format!("{name}: {text}")
    });
    marks.collect()
}

#[test]
fn a_limit_of_registers_is_a_mark_of_the_instances_of_its_group() {
    assert_eq!(
        marks(
            "T = [f32, f64], registers = 96; T = [f16]; T = [bf16], registers_sm90 = 64",
            "unsafe fn scale<T: Real>(x: Global<T>) {}",
        ),
        [
            "scale_f32: registers 96",
            "scale_f64: registers 96",
            "scale_bf16: registers 64 sm_90"
        ]
    );
    let message = refusal(
        "T = [f32], registers_smaller = 64",
        "unsafe fn f<T: Real>(x: T) {}",
    );
    assert!(message.contains("registers_sm90 = 64"), "{message}");
}

#[test]
fn target_and_module_are_marks_of_every_entry_point() {
    let function = "unsafe fn scale<T: Real>(x: Global<T>) {}";
    assert_eq!(
        marks("T = [f32], target = sm_90; T = [f64]", function),
        ["scale_f32: target sm_90", "scale_f64: target sm_90"]
    );
    assert_eq!(
        marks(
            "module = \"small\", target = sm_90a, T = [f32], registers = 8",
            function
        ),
        ["scale_f32: target sm_90a; module small; registers 8"]
    );
    assert_eq!(marks("T = [f32]", function), [""; 0]);
}

#[test]
fn a_module_whose_name_is_no_file_s_is_refused() {
    for name in ["", "a/b", "a b"] {
        let attribute = format!("module = \"{name}\"");
        let error = Parser::parse_str(<Instances as syn::parse::Parse>::parse, &attribute);
        let message = error.err().expect(name).to_string();
        assert!(
            message.starts_with("a module's name has letters"),
            "{message}"
        );
    }
}

#[test]
fn what_is_no_target_is_refused() {
    for attribute in ["target = 90", "target = sm_", "target = sm_90b"] {
        let error = Parser::parse_str(<Instances as syn::parse::Parse>::parse, attribute);
        let message = error.err().expect(attribute).to_string();
        let wanted = ["a target is an architecture", "expected identifier"];
        assert!(
            wanted.iter().any(|wanted| message.contains(wanted)),
            "{message}"
        );
    }
    let message = refusal(
        "target = sm_90a, registers_sm100 = 64",
        "unsafe fn fill(n: u32) {}",
    );
    assert_eq!(
        message,
        "the kernel runs on sm_90 alone, its limit of registers holds from sm_100 on"
    );
}

#[test]
fn a_group_without_the_list_of_a_parameter_is_refused() {
    let function = "unsafe fn fill<T: Real, const LANES: u32>(x: T) {}";
    for attribute in [
        "T = [f32], LANES = [8]; T = [f64]",
        "T = [f32], LANES = [8];",
    ] {
        let message = refusal(attribute, function);
        assert!(
            message.starts_with("#[kernel] needs the instances of"),
            "{message}"
        );
    }
}

#[test]
fn a_safe_function_is_refused() {
    let message = refusal("", "fn fill(n: u32) {}");
    assert_eq!(
        message,
        "a kernel is an `unsafe fn`: its pointers and its launch are the caller's promise"
    );
}

#[test]
fn a_function_that_returns_something_is_refused() {
    let message = refusal("", "unsafe fn fill(n: u32) -> u64 { 0 }");
    assert_eq!(
        message,
        "a kernel returns nothing: it writes through its pointers"
    );
}

#[test]
fn a_parameter_that_is_no_name_is_refused() {
    for function in [
        "unsafe fn fill(n: u32, (a, b): (u32, u32)) {}",
        "unsafe fn fill(&self) {}",
        "unsafe fn fill(_: u32) {}",
    ] {
        let message = refusal("", function);
        assert_eq!(
            message, "a kernel's parameter is a name and a type",
            "{function}"
        );
    }
}

#[test]
fn a_lifetime_parameter_is_refused() {
    let message = refusal("", "unsafe fn fill<'a>(n: u32) {}");
    assert_eq!(message, "a kernel has no lifetime parameters");
}

#[test]
fn a_generic_parameter_without_instances_is_refused_with_what_to_write() {
    let function = "unsafe fn fill<T: Real, const LANES: u32>(x: T) {}";
    for attribute in ["", "LANES = [8]", "T = [], LANES = [8]"] {
        let message = refusal(attribute, function);
        assert_eq!(
            message, "#[kernel] needs the instances of `T`: `T = [..]`",
            "{attribute}"
        );
    }
    let message = refusal("T = [f32]", function);
    assert_eq!(
        message,
        "#[kernel] needs the instances of `LANES`: `LANES = [..]`"
    );
}

#[test]
fn instances_of_no_parameter_are_refused_by_name() {
    let message = refusal("T = [f32], U = [f64]", "unsafe fn fill<T>(x: T) {}");
    assert_eq!(message, "the kernel has no generic parameter `U`");
}

#[test]
fn an_attribute_of_another_form_is_refused_with_what_was_expected() {
    for (attribute, wanted) in [
        ("T [f32]", "expected `=`"),
        ("T = f32", "expected square brackets"),
        ("name = fill", "expected string literal"),
        ("T = [f32] U = [f64]", "expected `,`"),
        ("[f32]", "expected identifier"),
    ] {
        let error = Parser::parse_str(<Instances as syn::parse::Parse>::parse, attribute);
        let message = error.err().expect(attribute).to_string();
        assert!(message.starts_with(wanted), "{attribute}: {message}");
    }
}

#[test]
fn an_instance_has_the_names_of_the_parameters() {
    let tokens = expanded("", "unsafe fn fill(n: u32, mut y: GlobalMut<f32>) {}").unwrap();
    let text = tokens.to_string();
    assert!(text.contains("& [\"n\" , \"y\"]"), "{text}");
}

/// The error of `#[derive(KernelParam)]` for `item`; `None` if it accepts it.
fn derive_refusal(item: &str) -> Option<String> {
    let refused = parameter::kernel_param(&parse_str(item).unwrap());
    refused.err().map(|error| error.to_string())
}

#[test]
fn an_argument_is_derived_for_structs_in_c_layout_only() {
    assert_eq!(
        derive_refusal("#[repr(C)] struct A<T> { n: u32, x: Global<T> }"),
        None
    );
    assert_eq!(
        derive_refusal("#[repr(C, align(8))] struct A { n: u32 }"),
        None
    );
    for item in [
        "struct A { n: u32 }",
        "#[repr(u8)] enum A { B }",
        "#[repr(C)] struct A(u32);",
    ] {
        assert!(
            derive_refusal(item)
                .unwrap()
                .starts_with("an argument of a kernel is")
        );
    }
}
