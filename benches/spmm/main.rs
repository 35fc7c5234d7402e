//! Starts the bench [`warprow_benches::spmm`].

fn main() -> std::process::ExitCode {
    warprow_benches::spmm::main()
}
