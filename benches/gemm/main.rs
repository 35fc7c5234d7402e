//! Starts the bench [`warprow_benches::gemm`].

fn main() -> std::process::ExitCode {
    warprow_benches::gemm::main()
}
