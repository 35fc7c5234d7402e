//! Queues: what a device's own stream and the streams beside it are to buffers, on a GPU and on the emulator.

#[cfg(cuda)]
use crate::device::cuda::CudaQueue;
#[cfg(cuda)]
use crate::device::error::DriverError;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Work in order. On the emulator, which does everything at once, it is only a number.
#[derive(Debug)]
pub(in crate::device) struct Queue {
    /// Different from those of all other queues of the process.
    number: u64,
    /// The number of the own queue of the device that this queue belongs to.
    device: u64,
    #[cfg(cuda)]
    cuda: Option<CudaQueue>,
}

thread_local! {
    /// The queues that this thread has entered and not left, the last one last.
    static ENTERED: RefCell<Vec<Arc<Queue>>> = const { RefCell::new(Vec::new()) };
}

fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl Queue {
    /// The own queue of an emulator.
    pub fn of_emulator() -> Arc<Self> {
        let number = next_number();
        Arc::new(Self {
            number,
            device: number,
            #[cfg(cuda)]
            cuda: None,
        })
    }

    /// The own queue of a GPU.
    #[cfg(cuda)]
    pub fn of_cuda(queue: CudaQueue) -> Arc<Self> {
        let number = next_number();
        Arc::new(Self {
            number,
            device: number,
            cuda: Some(queue),
        })
    }

    /// Another queue of the same emulator.
    pub fn beside_of_emulator(&self) -> Arc<Self> {
        Arc::new(Self {
            number: next_number(),
            device: self.device,
            #[cfg(cuda)]
            cuda: None,
        })
    }

    /// Another queue of the same GPU.
    #[cfg(cuda)]
    pub fn beside_of_cuda(&self, queue: CudaQueue) -> Arc<Self> {
        Arc::new(Self {
            number: next_number(),
            device: self.device,
            cuda: Some(queue),
        })
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// The stream.
    ///
    /// # Panics
    ///
    /// On an emulator, which has none.
    #[cfg(cuda)]
    pub fn cuda(&self) -> &CudaQueue {
        self.cuda.as_ref().expect("a queue of a GPU has a stream")
    }

    /// Makes the later work of this queue wait for what `other`, of the same device, has so far.
    #[cfg(cuda)]
    pub fn wait_for(&self, other: &Self) {
        let (Some(this), Some(other)) = (&self.cuda, &other.cuda) else {
            return;
        };
        let waits: Result<(), DriverError> = this.wait_for(other);
        if waits.is_err() {
            // The host waits instead. If that fails too, the context is lost: nothing runs any more, and every later
            // call says so.
            let _ = other.synchronize();
        }
    }

    /// The emulator has done the work of all queues.
    #[cfg(not(cuda))]
    pub fn wait_for(&self, _other: &Self) {}

    /// Calls `work`; [`current`](Self::current) is this queue meanwhile, on this thread.
    pub fn enter<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        /// Leaves the queue, also if `work` panics.
        struct Left;

        impl Drop for Left {
            fn drop(&mut self) {
                ENTERED.with_borrow_mut(|entered| entered.pop());
            }
        }

        ENTERED.with_borrow_mut(|entered| entered.push(Arc::clone(self)));
        let _left = Left;
        work()
    }

    /// Of the queues of the device with this own queue, the one that this thread has entered last; else this one.
    pub fn current(self: &Arc<Self>) -> Arc<Self> {
        let entered = ENTERED.with_borrow(|entered| {
            let of_device = |queue: &&Arc<Self>| queue.device == self.number;
            entered.iter().rev().find(of_device).cloned()
        });
        entered.unwrap_or_else(|| Arc::clone(self))
    }
}
