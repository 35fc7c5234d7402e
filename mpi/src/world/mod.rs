//! The processes of a run: how many there are, how one ends all, and what all of them do together.

mod messages;
pub mod rank_device;
pub mod times;
pub mod unfinished_file;

use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::topology::{Process, SimpleCommunicator};
use mpi::traits::{Communicator, CommunicatorCollectives, Equivalence, Root};
use std::fmt::Debug;
use std::io::Write;
use unfinished_file::UnfinishedFile;

/// The largest piece of a message, in bytes: below 2^31 with room to spare.
const MOST_BYTES: usize = 1 << 30;

/// The exit code of a run that fails.
const FAILED: i32 = 2;

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
    most_elements: usize,
    unfinished_file: UnfinishedFile,
    // Dropped last: it ends MPI.
    _universe: Universe,
}

impl World {
    /// Starts MPI; `None` if it runs already.
    pub fn start() -> Option<Self> {
        let universe = mpi::initialize()?;
        Some(Self {
            communicator: universe.world(),
            most_elements: usize::MAX,
            unfinished_file: UnfinishedFile::default(),
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
        self.most_elements = elements;
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

    /// The incomplete output of this run. A program that handles signals removes it before it exits.
    pub fn unfinished_file(&self) -> &UnfinishedFile {
        &self.unfinished_file
    }

    /// Ends all processes, with this exit code. Removes an incomplete output.
    pub fn abort(&self, code: i32) -> ! {
        self.unfinished_file.remove();
        self.communicator.abort(code)
    }

    /// Ends all processes with this one's message, on the standard error stream, and the exit code 2.
    pub fn fail(&self, message: &str) -> ! {
        self.fail_with(FAILED, message)
    }

    /// As [`fail`](Self::fail), with another exit code.
    pub fn fail_with(&self, code: i32, message: &str) -> ! {
        let mut stderr = std::io::stderr().lock();
        let (rank, size) = (self.rank(), self.size());
        // The processes end, whether anybody reads the message or not.
        let _ = writeln!(stderr, "warprow-mpi: rank {rank} of {size}: {message}");
        let _ = stderr.flush();
        self.abort(code)
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
        for (list, sums) in list
            .chunks(self.piece::<u64>())
            .zip(sums.chunks_mut(self.piece::<u64>()))
        {
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
        let mut list = match self.is_root() {
            true => list,
            false => self.list(length),
        };
        for piece in list.chunks_mut(self.piece::<W>()) {
            root.broadcast_into(piece);
        }
        list
    }

    /// The largest piece of a message, in elements: layers below MPI may refuse 2^31 bytes.
    fn piece<W>(&self) -> usize {
        self.most_elements.min(MOST_BYTES / size_of::<W>())
    }

    /// A list for a message. Without memory the run ends, since the other ranks wait for this one.
    fn list<W: Word>(&self, length: u64) -> Vec<W> {
        match zeros(length) {
            Some(list) => list,
            None => self.fail(&format!(
                "out of memory: wanted are {length} elements of {} bytes",
                size_of::<W>()
            )),
        }
    }

    fn process(&self, rank: usize) -> Process<'_> {
        self.communicator.process_at_rank(rank as i32)
    }
}

/// A list of zeros; `None` without memory.
fn zeros<W: Word>(length: u64) -> Option<Vec<W>> {
    let length = usize::try_from(length).ok()?;
    Vec::<W>::new().try_reserve_exact(length).ok()?;
    // The system gives zeroed pages where they are first written; a list that grows would write all of them now.
    Some(vec![W::default(); length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_no_memory_can_have_is_none() {
        assert_eq!(zeros::<f64>(3), Some(vec![0.0; 3]));
        for length in [u64::MAX, u64::MAX / 8, 1 << 60] {
            assert_eq!(zeros::<f64>(length), None);
        }
    }
}
