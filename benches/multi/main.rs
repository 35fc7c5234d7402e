//! Starts the bench [`warprow_benches::multi`].

fn main() -> std::process::ExitCode {
    warprow_benches::multi::main()
}
