//! Starts the bench [`warprow_benches::counters`].

fn main() -> std::process::ExitCode {
    warprow_benches::counters::main()
}
