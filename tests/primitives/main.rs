//! What the operations are made of, on every device: prefix sums, sorting, and conversions of matrices in CSR.

mod broken;
mod csr;
mod from_device;
mod scan_and_sort;
