//! The last test program of `cargo test`, which runs packages and programs by name: it says on which devices the tests
//! ran, and why there is no GPU among them. It fails if `WARPROW_DEVICE` names a GPU that is not there.

fn main() {
    // A list of the tests, as `cargo test -- --list` wants it, has none of this program.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    println!("\n{}\n", support::tested_devices());
}
