//! Positions in memory, as faults name them: elements of buffers, and the parameters of the kernel.

use crate::machine::*;
use simt::*;

/// A parameter `name` of type f32 that points to `address`.
fn parameter(name: &str, address: u64) -> Parameter {
    Parameter {
        name: name.to_owned(),
        address,
        element: "f32",
        bytes: 4,
    }
}

/// The message of a launch of `kernel`, with the names of `parameters`.
fn message(emulator: &Emulator, parameters: &[Parameter], kernel: impl Fn() + Sync) -> String {
    let mut fault = run(emulator, shape(1, 1), kernel).unwrap_err();
    fault.name_parameters(parameters);
    fault.to_string()
}

#[track_caller]
fn check(text: String, wanted: &str) {
    assert!(text.contains(wanted), "wanted {wanted}, found {text}");
}

#[test]
fn a_position_is_an_element_of_a_parameter() {
    let emulator = strict();
    let (x, y) = (zeros(&emulator, 100), zeros(&emulator, 10));
    let parameters = [parameter("x", x), parameter("a.values", y)];
    for (address, position) in [
        (x + 400, "4 bytes at x[100] of 100 f32 (parameter x)"),
        (x - 8, "4 bytes at x[-2] of 100 f32 (parameter x)"),
        (y + 40, "4 bytes at a.values[10] of 10 f32 (parameter a)"),
        (
            y + 41,
            "4 bytes at byte 1 of a.values[10] of 10 f32 (parameter a)",
        ),
    ] {
        check(
            message(&emulator, &parameters, || {
                get(address, 0);
            }),
            position,
        );
    }
    let misaligned = message(&emulator, &parameters, || {
        get(x + 6, 0);
    });
    check(
        misaligned,
        "4 bytes at byte 2 of x[1] (parameter x), whose address is not",
    );
}

#[test]
fn a_position_counts_from_the_parameter_that_points_before_it() {
    let emulator = strict();
    let x = zeros(&emulator, 100);
    let parameters = [parameter("x", x), parameter("half", x + 200)];
    let past = message(&emulator, &parameters, || {
        get(x, 100);
    });
    check(past, "at half[50] of 50 f32 (parameter half)");
    let first = message(&emulator, &parameters, || {
        lane::load::<u32, 1>(Space::GlobalReadOnly, x + 12);
        put(x, 3, 1);
    });
    check(
        first,
        "a store of x[3] of 100 f32 (parameter x), which the same launch reads",
    );
}

#[test]
fn parameters_with_the_same_address_are_all_named() {
    let emulator = strict();
    let x = zeros(&emulator, 100);
    let parameters = [parameter("x", x), parameter("y", x)];
    let text = message(&emulator, &parameters, || {
        lane::load::<u32, 1>(Space::GlobalReadOnly, x + 12);
        put(x, 3, 1);
    });
    check(text, "x[3] of 100 f32 (parameters x, y)");
}

#[test]
fn null_and_freed_pointers_are_named() {
    let emulator = strict();
    let freed = zeros(&emulator, 10);
    emulator.free(freed).unwrap();
    let parameters = [parameter("bias", 0), parameter("x", freed)];
    let null = message(&emulator, &parameters, || {
        get(0, 5);
    });
    check(
        null,
        "at bias[5] (parameter bias), which belongs to no allocation",
    );
    let text = message(&emulator, &parameters, || {
        get(freed, 2);
    });
    check(
        text,
        "at x[2] (parameter x), offset 8 of an allocation that was freed",
    );
}

#[test]
fn without_a_parameter_a_position_is_an_element_of_its_allocation() {
    let emulator = strict();
    let x = zeros(&emulator, 100);
    let text = message(&emulator, &[parameter("y", x + (1 << 50))], || {
        get(x, 100);
    });
    check(
        text,
        &format!(
            "4 bytes at element 100 of 100, of 4 bytes each (address {:#x})",
            x + 400
        ),
    );
    let polled = message(&emulator, &[parameter("flag", x)], || {
        while lane::atomic::<u32>(Space::Global, Scope::Device, x + 8, |_| None) == 0 {}
    });
    check(
        polled,
        "waits for a change of flag[2] (parameter flag) in global memory",
    );
}

#[test]
fn positions_in_shared_memory_count_the_elements_of_an_array() {
    let emulator = strict();
    let text = message(&emulator, &[parameter("x", 0)], || {
        lane::shared_static(1, 64, 8);
        let doubles = lane::shared_array(2, 80, 16, ("f64", 8));
        lane::store::<u64, 1>(Space::Shared, doubles, [1]);
        lane::load::<u64, 1>(Space::Shared, doubles + 24);
    });
    check(
        text,
        "never written: 8 bytes at element 3 of 10 f64 (address",
    );
    let text = message(&emulator, &[], || {
        let doubles = lane::shared_array(2, 80, 16, ("f64", 8));
        lane::load::<u64, 1>(Space::Shared, doubles - 8);
    });
    check(
        text,
        "out of bounds: 8 bytes at element -1 of 10 f64 (address",
    );
    let text = message(&emulator, &[], || {
        put_shared(lane::shared_static(1, 64, 8), 16, 1);
    });
    check(text, "out of bounds: 4 bytes at byte 64 of 64 (address");
}
