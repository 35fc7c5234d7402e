//! Starts the bench [`warprow_benches::book`].

fn main() -> std::process::ExitCode {
    warprow_benches::book::main()
}
