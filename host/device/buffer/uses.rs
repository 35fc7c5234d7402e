//! Which queues use an allocation, so that one waits for the other.
//!
//! A queue that reads waits for the queue that has written. A queue that writes waits for all others. Whoever takes a
//! pointer is about to launch what uses it, so nothing is noted when the launch is done: the borrow of the buffer lasts
//! until then, and a later wait is for all that the other queue has by that time.

use crate::device::stream::queue::Queue;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::device) enum Access {
    Read,
    /// Of all of the memory: nobody else is about to launch anything with it.
    Write,
    /// Of a part: other threads may be about to launch something with other parts.
    WritePart,
}

/// The queues that have used an allocation.
#[derive(Debug)]
pub(in crate::device) struct Uses {
    /// The number of the queue that has written last, if no other has read since; else 0.
    only: AtomicU64,
    users: Mutex<Users>,
}

/// The queues whose work must be done before anyone may write.
#[derive(Clone, Debug)]
pub(in crate::device) struct Users {
    writer: Arc<Queue>,
    /// Have written parts since, and waited for the writer first.
    part_writers: Vec<Arc<Queue>>,
    /// Have read since, and waited for the writers first.
    readers: Vec<Arc<Queue>>,
}

impl Uses {
    /// Of an allocation by that queue.
    pub fn new(queue: Arc<Queue>) -> Self {
        Self {
            only: AtomicU64::new(queue.number()),
            users: Mutex::new(Users {
                writer: queue,
                part_writers: Vec::new(),
                readers: Vec::new(),
            }),
        }
    }

    /// Notes a use by `queue`, which waits for the others first.
    pub fn order(&self, queue: &Arc<Queue>, access: Access) {
        if self.only.load(Ordering::Relaxed) == queue.number() {
            return;
        }
        // A panic cannot leave it half changed.
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        match access {
            // With writers of parts a queue waits each time: they may have launched since.
            Access::Read if users.part_writers.is_empty() && users.has(queue) => {}
            Access::Read => {
                for writer in users.writers() {
                    if writer.number() != queue.number() {
                        queue.wait_for(writer);
                    }
                }
                if !users.has(queue) {
                    users.readers.push(Arc::clone(queue));
                }
                self.only.store(0, Ordering::Relaxed);
            }
            Access::WritePart => {
                users.make_wait(queue);
                let is_known = |writer: &Arc<Queue>| writer.number() == queue.number();
                if !users.part_writers.iter().any(is_known) {
                    users.part_writers.push(Arc::clone(queue));
                }
                self.only.store(0, Ordering::Relaxed);
            }
            Access::Write => {
                users.make_wait(queue);
                *users = Users {
                    writer: Arc::clone(queue),
                    part_writers: Vec::new(),
                    readers: Vec::new(),
                };
                self.only.store(queue.number(), Ordering::Relaxed);
            }
        }
    }

    /// The queues that have used it.
    pub fn into_users(self) -> Users {
        self.users
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Users {
    fn has(&self, queue: &Queue) -> bool {
        self.all().any(|user| user.number() == queue.number())
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Queue>> {
        self.writers().chain(&self.readers)
    }

    fn writers(&self) -> impl Iterator<Item = &Arc<Queue>> {
        std::iter::once(&self.writer).chain(&self.part_writers)
    }

    /// Makes `queue` wait for the others.
    pub fn make_wait(&self, queue: &Queue) {
        for user in self.all() {
            if user.number() != queue.number() {
                queue.wait_for(user);
            }
        }
    }
}
