//! The processes of a run, and the messages between them: long ones in pieces, since MPI counts with 31 bits.

use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::topology::{Process, SimpleCommunicator};
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Root, Source};
use std::ffi::c_void;
use std::fmt::Debug;
use std::mem::MaybeUninit;

/// The largest piece of a message, in elements: below 2^31 with room to spare.
const PIECE: usize = 1 << 28;

/// What messages consist of.
pub trait Word: Equivalence + Copy + Debug + Default + Send + Sync + 'static {}

impl Word for u8 {}
impl Word for u32 {}
impl Word for u64 {}
impl Word for f32 {}
impl Word for f64 {}

/// All processes of a run.
pub struct World {
    communicator: SimpleCommunicator,
    piece: usize,
    // Dropped last: it ends MPI.
    _universe: Universe,
}

impl World {
    /// Starts MPI; `None` if it runs already.
    pub fn start() -> Option<Self> {
        let universe = mpi::initialize()?;
        Some(Self {
            communicator: universe.world(),
            piece: PIECE,
            _universe: universe,
        })
    }

    /// Sends messages in pieces of at most so many elements, for tests.
    ///
    /// # Panics
    ///
    /// If it is 0.
    pub fn with_pieces(mut self, elements: usize) -> Self {
        assert!(elements > 0);
        self.piece = elements.min(PIECE);
        self
    }

    /// This process's number.
    pub fn rank(&self) -> usize {
        self.communicator.rank() as usize
    }

    /// The number of processes.
    pub fn size(&self) -> usize {
        self.communicator.size() as usize
    }

    /// Whether this is rank 0.
    pub fn is_root(&self) -> bool {
        self.rank() == 0
    }

    /// Ends all processes, with this exit code.
    pub fn abort(&self, code: i32) -> ! {
        self.communicator.abort(code)
    }

    /// Waits for all processes.
    pub fn barrier(&self) {
        self.communicator.barrier();
    }

    /// The greatest of the ranks' numbers.
    pub fn max(&self, number: f64) -> f64 {
        let mut greatest = number;
        self.communicator
            .all_reduce_into(&number, &mut greatest, SystemOperation::max());
        greatest
    }

    /// The numbers of all ranks, in their order.
    pub fn all(&self, number: u64) -> Vec<u64> {
        let mut numbers = vec![0; self.size()];
        self.communicator.all_gather_into(&number, &mut numbers[..]);
        numbers
    }

    /// The sums of the ranks' lists, which have the same length.
    pub fn sum(&self, list: Vec<u64>) -> Vec<u64> {
        let mut sums = vec![0; list.len()];
        for (list, sums) in list.chunks(self.piece).zip(sums.chunks_mut(self.piece)) {
            self.communicator
                .all_reduce_into(list, sums, SystemOperation::sum());
        }
        sums
    }

    /// Rank 0's list, on all ranks; the others' own list is ignored.
    pub fn broadcast<W: Word>(&self, list: Vec<W>) -> Vec<W> {
        let root = self.process(0);
        let mut length = list.len() as u64;
        root.broadcast_into(&mut length);
        let mut list = list;
        list.resize(length as usize, W::default());
        for piece in list.chunks_mut(self.piece) {
            root.broadcast_into(piece);
        }
        list
    }

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
        let mut results: Vec<Vec<W>> = (received.iter())
            .map(|&length| vec![W::default(); length as usize])
            .collect();
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
        let pieces = |length: usize| length.div_ceil(self.piece);
        let count: usize = (sends.iter().map(|list| pieces(list.len())))
            .chain(receives.iter().map(|list| pieces(list.len())))
            .sum();
        mpi::request::multiple_scope(count, |scope, requests| {
            for (rank, list) in receives.into_iter().enumerate() {
                if rank != self.rank() {
                    for piece in list.chunks_mut(self.piece) {
                        requests.add(self.process(rank).immediate_receive_into(scope, piece));
                    }
                }
            }
            for (rank, list) in sends.into_iter().enumerate() {
                if rank != self.rank() {
                    for piece in list.chunks(self.piece) {
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
        // A tag that no other message has: MPI matches by rank and tag.
        let tag = 1;
        let mut requests = Vec::new();
        let mut each_piece =
            |list: &[(u64, usize)], start: &dyn Fn(u64, i32, i32) -> ffi::MPI_Request| {
                for (rank, &(address, count)) in list.iter().enumerate() {
                    for first in (0..count).step_by(self.piece) {
                        if rank != self.rank() {
                            // At most `PIECE` elements; MPI has given the rank.
                            let piece = (count - first).min(self.piece) as i32;
                            requests.push(start(
                                address + (first * size_of::<W>()) as u64,
                                piece,
                                rank as i32,
                            ));
                        }
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
        for mut request in requests {
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
        for piece in list.chunks(self.piece) {
            process.send(piece);
        }
    }

    /// Receives a list from another rank, which calls [`send`](Self::send).
    pub fn receive<W: Word>(&self, rank: usize) -> Vec<W> {
        let process = self.process(rank);
        let (length, _) = process.receive::<u64>();
        let mut list = vec![W::default(); length as usize];
        for piece in list.chunks_mut(self.piece) {
            process.receive_into(piece);
        }
        list
    }

    fn process(&self, rank: usize) -> Process<'_> {
        self.communicator.process_at_rank(rank as i32)
    }
}
