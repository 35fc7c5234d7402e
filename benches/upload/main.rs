//! Starts the bench [`warprow_benches::upload`].

fn main() -> std::process::ExitCode {
    warprow_benches::upload::main()
}
