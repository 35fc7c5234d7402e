//! Starts the bench [`warprow_benches::gcn`].

fn main() -> std::process::ExitCode {
    warprow_benches::gcn::main()
}
