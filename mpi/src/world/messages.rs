//! Messages from one process to another: long ones in pieces, since MPI counts with 31 bits.

use super::{Word, World};
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::traits::{CommunicatorCollectives, Destination, Source};
use std::ffi::c_void;
use std::mem::MaybeUninit;

impl World {
    /// Sends a list for each rank, and returns what each rank has sent to this one.
    ///
    /// # Panics
    ///
    /// If there is not one list for each rank.
    pub fn exchange<W: Word>(&self, lists: &[Vec<W>]) -> Vec<Vec<W>> {
        assert_eq!(lists.len(), self.size());
        let lengths: Vec<u64> = lists.iter().map(|list| list.len() as u64).collect();
        let mut received = vec![0_u64; self.size()];
        self.communicator
            .all_to_all_into(&lengths[..], &mut received[..]);
        let mut results: Vec<Vec<W>> = (received.iter()).map(|&length| self.list(length)).collect();
        let sends = lists.iter().map(Vec::as_slice).collect();
        let receives = results.iter_mut().map(Vec::as_mut_slice).collect();
        self.exchange_known(sends, receives, || ());
        results
    }

    /// Sends a list to each rank and receives one from each, of lengths that both know, without blocking. Calls
    /// `meanwhile` while the messages travel. Empty lists are no messages; a list to itself is copied.
    ///
    /// # Panics
    ///
    /// If there is not one list of each kind for each rank, or those for this rank itself differ in length.
    pub fn exchange_known<W: Word, R>(
        &self,
        sends: Vec<&[W]>,
        mut receives: Vec<&mut [W]>,
        meanwhile: impl FnOnce() -> R,
    ) -> R {
        assert_eq!((sends.len(), receives.len()), (self.size(), self.size()));
        receives[self.rank()].copy_from_slice(sends[self.rank()]);
        let pieces = |length: usize| length.div_ceil(self.piece::<W>());
        let count: usize = (sends.iter().map(|list| pieces(list.len())))
            .chain(receives.iter().map(|list| pieces(list.len())))
            .sum();
        mpi::request::multiple_scope(count, |scope, requests| {
            for (rank, list) in receives.into_iter().enumerate() {
                if rank != self.rank() {
                    for piece in list.chunks_mut(self.piece::<W>()) {
                        requests.add(self.process(rank).immediate_receive_into(scope, piece));
                    }
                }
            }
            for (rank, list) in sends.into_iter().enumerate() {
                if rank != self.rank() {
                    for piece in list.chunks(self.piece::<W>()) {
                        requests.add(self.process(rank).immediate_send(scope, piece));
                    }
                }
            }
            let result = meanwhile();
            requests.wait_all(&mut Vec::with_capacity(count));
            result
        })
    }

    /// As [`exchange_known`](Self::exchange_known), with addresses and numbers of elements: of GPUs, say. Nothing
    /// is sent to this rank itself.
    ///
    /// # Safety
    ///
    /// MPI can read and write the memory, and nobody else writes it, or reads what is received, until the call returns.
    ///
    /// # Panics
    ///
    /// If there is not one address of each kind for each rank.
    pub unsafe fn exchange_addresses<W: Word, R>(
        &self,
        sends: &[(u64, usize)],
        receives: &[(u64, usize)],
        meanwhile: impl FnOnce() -> R,
    ) -> R {
        assert_eq!((sends.len(), receives.len()), (self.size(), self.size()));
        let (communicator, word) = (
            self.communicator.as_raw(),
            W::equivalent_datatype().as_raw(),
        );
        let tag = 0;
        let mut requests = Requests(Vec::new());
        let most = self.piece::<W>();
        let mut each_piece =
            |list: &[(u64, usize)], start: &dyn Fn(u64, i32, i32) -> ffi::MPI_Request| {
                for (rank, &(address, count)) in list.iter().enumerate() {
                    if rank == self.rank() {
                        continue;
                    }
                    for (first, piece) in pieces(count, most) {
                        let address = address + (first * size_of::<W>()) as u64;
                        // MPI has given the rank.
                        requests.0.push(start(address, piece, rank as i32));
                    }
                }
            };
        each_piece(receives, &|address, count, rank| {
            let (to, mut request) = (address as *mut c_void, MaybeUninit::uninit());
            // SAFETY: the caller's contract. MPI writes the request; an error ends the program.
            unsafe {
                ffi::MPI_Irecv(
                    to,
                    count,
                    word,
                    rank,
                    tag,
                    communicator,
                    request.as_mut_ptr(),
                );
                request.assume_init()
            }
        });
        each_piece(sends, &|address, count, rank| {
            let (from, mut request) = (address as *const c_void, MaybeUninit::uninit());
            // SAFETY: as above.
            unsafe {
                ffi::MPI_Isend(
                    from,
                    count,
                    word,
                    rank,
                    tag,
                    communicator,
                    request.as_mut_ptr(),
                );
                request.assume_init()
            }
        });
        let result = meanwhile();
        for mut request in requests.0.drain(..) {
            let mut status = MaybeUninit::uninit();
            // SAFETY: the request is one of the above; MPI writes the status.
            unsafe { ffi::MPI_Wait(&raw mut request, status.as_mut_ptr()) };
        }
        result
    }

    /// Sends a list to another rank, which calls [`receive`](Self::receive).
    pub fn send<W: Word>(&self, rank: usize, list: &[W]) {
        let process = self.process(rank);
        process.send(&(list.len() as u64));
        for piece in list.chunks(self.piece::<W>()) {
            process.send(piece);
        }
    }

    /// Receives a list from another rank, which calls [`send`](Self::send).
    pub fn receive<W: Word>(&self, rank: usize) -> Vec<W> {
        let process = self.process(rank);
        let (length, _) = process.receive::<u64>();
        let mut list = self.list::<W>(length);
        for piece in list.chunks_mut(self.piece::<W>()) {
            process.receive_into(piece);
        }
        list
    }
}

/// Where the pieces of a message begin, and how many elements each has. `most` is at most what `World::piece` says.
fn pieces(count: usize, most: usize) -> impl Iterator<Item = (usize, i32)> {
    let firsts = (0..count).step_by(most);
    firsts.map(move |first| (first, (count - first).min(most) as i32))
}

/// Messages that MPI may still read or write memory for. If nobody waits for them, after a panic, the process ends.
struct Requests(Vec<ffi::MPI_Request>);

impl Drop for Requests {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            eprintln!("warprow-mpi: a rank has panicked while messages were on their way");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::MOST_BYTES;
    use super::*;

    #[test]
    fn more_elements_than_mpi_can_count_go_in_pieces_that_it_can() {
        for element_bytes in [1, 4, 8] {
            let most = MOST_BYTES / element_bytes;
            for count in [0, 1, most, most + 1, (1 << 31) + 5, 5 << 32] {
                let mut end = 0;
                for (first, piece) in pieces(count, most) {
                    assert_eq!(first, end, "{count} elements of {element_bytes} bytes");
                    assert!(piece > 0 && piece as usize * element_bytes <= 1 << 30);
                    end += piece as usize;
                }
                assert_eq!(end, count, "elements of {element_bytes} bytes");
            }
        }
    }
}
