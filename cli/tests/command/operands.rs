//! Operands and options that do not fit each other or the machine.

use super::Folder;
use warprow::device::available_host_memory;

#[test]
fn info_refuses_more_columns_than_the_memory_holds() {
    // 12 bytes for each of 2^32 - 1 columns.
    if available_host_memory().is_none_or(|bytes| bytes > 51_000_000_000) {
        println!("skipped: this machine may have the memory");
        return;
    }
    let folder = Folder::new();
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    folder.write("wide.mtx", format!("{banner}1 4294967295 1\n1 1 1\n"));
    let found = folder.refused(&["info", "wide.mtx"], 2);
    let wanted = "wide.mtx: statistics of 1 x 4 294 967 295: wanted 51.5 GB of memory, found";
    assert!(found.contains(wanted), "{found}");
}
