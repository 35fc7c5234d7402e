//! The emulator names buffers after the parameters of the kernel.

use cuda_std::kernel::KernelArgs;
use cuda_std::prelude::*;
use simt::{Emulator, Launch, Options};

/// Numbers, and where each row of them starts.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
struct Rows<T> {
    count: u32,
    stride: u32,
    starts: Global<u32>,
    values: Global<T>,
}

/// Reads value `i` of the row that starts at `row`, and writes it.
///
/// # Safety
///
/// The row and the value exist, or an emulator runs it.
#[kernel(T = [f32, f64])]
unsafe fn read_value<T: Element>(row: u32, rows: Rows<T>, i: u32, out: GlobalMut<T>) {
    // SAFETY: the contract of the kernel.
    unsafe {
        let start = rows.starts.load(row as usize);
        out.store(i as usize, rows.values.load((start + i) as usize));
    }
}

#[test]
fn faults_name_parameters_and_fields_of_structs() {
    let emulator = Emulator::new(Options::default());
    let [starts, values, out] = [4, 100, 30].map(|count| {
        let address = emulator.allocate(8 * count, 8).unwrap();
        emulator.zero(address, 8 * count).unwrap();
        address
    });
    let message = |row, i| {
        let kernel = read_value::<f64>();
        assert_eq!(kernel.parameters(), ["row", "rows", "i", "out"]);
        let rows = Rows {
            count: 8,
            stride: 1,
            starts: Global::from_address(starts),
            values: Global::from_address(values),
        };
        let arguments = (row, rows, i, GlobalMut::from_address(out));
        let launch = Launch {
            kernel: kernel.name(),
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
        };
        let thread = kernel.thread();
        // SAFETY: the emulator checks each access of the kernel, also one that its contract forbids.
        let result = emulator.launch(launch, &|| unsafe { thread(arguments) });
        let mut fault = result.err()?;
        fault.name_parameters(&arguments.named_buffers(kernel.parameters()));
        Some(fault.to_string())
    };
    assert_eq!(message(7, 29), None);
    for (row, i, position) in [
        (8, 0, "4 bytes at rows.starts[8] of 8 u32 (parameter rows)"),
        (
            7,
            100,
            "8 bytes at rows.values[100] of 100 f64 (parameter rows)",
        ),
        (7, 30, "8 bytes at out[30] of 30 f64 (parameter out)"),
    ] {
        let text = message(row, i).unwrap();
        assert!(text.ends_with(position), "{text}");
    }
}
