//! Starts the bench [`warprow_benches::first_use`].

fn main() -> std::process::ExitCode {
    warprow_benches::first_use::main()
}
