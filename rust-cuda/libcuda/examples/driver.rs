//! Prints whether this machine has a CUDA driver and devices: `cargo run -p warprow-libcuda --example driver`.
//!
//! It builds and starts on every machine, with or without CUDA.

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("driver: warprow uses CUDA on Linux only");
}

#[cfg(target_os = "linux")]
fn main() {
    use cust::CudaFlags;
    use cust::device::Device;

    match libcuda::load() {
        Ok(driver) => match driver.path() {
            Some(path) => println!("driver: {}", path.display()),
            None => println!("driver: found"),
        },
        Err(error) => return println!("driver: {error}"),
    }
    if let Err(error) = cust::init(CudaFlags::empty()) {
        return println!("driver does not start: {error}");
    }
    let names: Result<Vec<String>, _> =
        Device::devices().and_then(|devices| devices.map(|device| device?.name()).collect());
    match names {
        Ok(names) => println!("devices: {names:?}"),
        Err(error) => println!("devices cannot be listed: {error}"),
    }
}
