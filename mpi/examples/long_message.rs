//! Rank 0 sends rank 1 more elements than MPI can count in one message: `mpirun -n 2 long_message`.
//!
//! The memory is not that long. One file is mapped again and again, and another one behind it, so that the last
//! elements have a place of their own. `scripts/check-mpi` runs this.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use warprow_mpi::World;

/// Elements of a byte, more than 2^31.
const ELEMENTS: usize = (1 << 31) + 5 * BLOCK;

/// Bytes of each file.
const BLOCK: usize = 16 << 20;

/// A list of [`ELEMENTS`] bytes in the memory of two blocks.
struct LongList {
    address: *mut libc::c_void,
    repeated: File,
    last: File,
}

impl LongList {
    fn new(name: &str) -> io::Result<Self> {
        // SAFETY: a new range of addresses, without memory.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                ELEMENTS,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let list = Self {
            address,
            repeated: nameless_file(name)?,
            last: nameless_file(name)?,
        };
        for start in (0..ELEMENTS).step_by(BLOCK) {
            let file = match start + BLOCK == ELEMENTS {
                true => &list.last,
                false => &list.repeated,
            };
            // SAFETY: it replaces a part of the range above, which nobody else uses; the file has so many bytes.
            let mapped = unsafe {
                libc::mmap(
                    address.byte_add(start),
                    BLOCK,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_FIXED,
                    file.as_raw_fd(),
                    0,
                )
            };
            if mapped == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(list)
    }
}

impl Drop for LongList {
    fn drop(&mut self) {
        // SAFETY: the range of `new`, which nobody uses any more.
        unsafe { libc::munmap(self.address, ELEMENTS) };
    }
}

/// A file of a block of zeros that is gone when it is closed.
fn nameless_file(name: &str) -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    file.set_len(BLOCK as u64)?;
    Ok(file)
}

/// The bytes of a block; no two blocks of different seeds are equal.
fn block(seed: usize) -> Vec<u8> {
    (0..BLOCK)
        .map(|byte| (byte * 31 + byte / 251 + seed) as u8)
        .collect()
}

/// Whether the message has arrived, as far as this rank knows.
fn send_and_receive(world: &World) -> io::Result<bool> {
    let mut list = LongList::new("warprow-long-message")?;
    let mut receives = [(0, 0); 2];
    let mut sends = receives;
    if world.is_root() {
        list.repeated.write_all(&block(0))?;
        list.last.write_all(&block(1))?;
        sends[1] = (list.address as u64, ELEMENTS);
    } else {
        receives[0] = (list.address as u64, ELEMENTS);
    }
    // SAFETY: each list has so many elements, and nobody else uses them. Pieces of the received one overlap: MPI writes
    // the same bytes to them.
    unsafe { world.exchange_addresses::<u8, ()>(&sends, &receives, || ()) };
    for (file, wanted) in [(&mut list.repeated, block(0)), (&mut list.last, block(1))] {
        let mut found = vec![0; BLOCK];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut found)?;
        if found != wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

fn main() -> ExitCode {
    let Some(world) = World::start() else {
        eprintln!("MPI runs already in this process");
        return ExitCode::FAILURE;
    };
    if world.size() != 2 {
        world.fail("wanted are 2 ranks");
    }
    match send_and_receive(&world) {
        Ok(true) if world.is_root() => ExitCode::SUCCESS,
        Ok(true) => {
            println!("{ELEMENTS} elements have arrived");
            ExitCode::SUCCESS
        }
        Ok(false) => world.fail("other elements have arrived"),
        Err(error) => world.fail(&error.to_string()),
    }
}
