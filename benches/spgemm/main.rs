//! Starts the bench [`warprow_benches::spgemm`].

fn main() -> std::process::ExitCode {
    warprow_benches::spgemm::main()
}
