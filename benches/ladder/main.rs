//! Starts the bench [`warprow_benches::ladder`].

fn main() -> std::process::ExitCode {
    warprow_benches::ladder::main()
}
