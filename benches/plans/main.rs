//! Starts the bench [`warprow_benches::plans`].

fn main() -> std::process::ExitCode {
    warprow_benches::plans::main()
}
