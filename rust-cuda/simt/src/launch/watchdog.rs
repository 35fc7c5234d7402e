//! The watchdog: it tells of kernels of which no block ends for a long time. A loop that neither accesses memory nor
//! waits takes no steps, so no budget stops it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A watchdog for all launches of the process.
pub(crate) static WATCHDOG: Watchdog =
    Watchdog::new(Duration::from_secs(60), |text| eprintln!("{text}"));

pub(crate) struct Watchdog {
    /// The time after which it tells of a kernel; twice as much before it does again.
    patience: Duration,
    tell: fn(String),
    running: Mutex<Vec<Running>>,
    started: Condvar,
    thread: Once,
}

/// A launch that runs.
struct Running {
    kernel: String,
    blocks: u64,
    /// The number of blocks that have ended.
    ended: Arc<AtomicU64>,
    /// That number when it was last seen to change, and the time of that.
    seen: (u64, Instant),
    patience: Duration,
}

/// A launch under watch, until it is dropped.
pub(crate) struct Watched {
    watchdog: &'static Watchdog,
    ended: Arc<AtomicU64>,
}

impl Watchdog {
    const fn new(patience: Duration, tell: fn(String)) -> Self {
        Self {
            patience,
            tell,
            running: Mutex::new(Vec::new()),
            started: Condvar::new(),
            thread: Once::new(),
        }
    }

    /// Watches a launch of `blocks` blocks, of which `ended` counts those that have ended.
    pub fn watch(&'static self, kernel: &str, blocks: u64, ended: &Arc<AtomicU64>) -> Watched {
        self.thread.call_once(|| {
            // Without the thread, nothing is told.
            let _ = thread::Builder::new()
                .name("simt watchdog".to_owned())
                .spawn(|| self.run());
        });
        self.running().push(Running {
            kernel: kernel.to_owned(),
            blocks,
            ended: Arc::clone(ended),
            seen: (0, Instant::now()),
            patience: self.patience,
        });
        self.started.notify_one();
        Watched {
            watchdog: self,
            ended: Arc::clone(ended),
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            let nothing_runs = |running: &mut Vec<Running>| running.is_empty();
            let running = self.started.wait_while(self.running(), nothing_runs);
            drop(running);
            thread::sleep(self.patience / 60);
            self.running()
                .iter_mut()
                .for_each(|launch| launch.check(self.tell));
        }
    }
}

impl Running {
    fn check(&mut self, tell: fn(String)) {
        let (ended, now) = (self.ended.load(Relaxed), Instant::now());
        let idle = now.duration_since(self.seen.1);
        if ended != self.seen.0 {
            self.seen = (ended, now);
        } else if idle >= self.patience {
            self.patience *= 2;
            tell(format!(
                "kernel `{}` on the emulator: no block has ended for {} s, {ended} of {} blocks have. A loop that \
                 neither accesses memory nor waits is not stopped.",
                self.kernel,
                idle.as_secs(),
                self.blocks
            ));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut running = self.watchdog.running();
        running.retain(|launch| !Arc::ptr_eq(&launch.ended, &self.ended));
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Relaxed, Watchdog};
    use std::sync::{Arc, Mutex};
    use std::thread::sleep;

    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    static EAGER: Watchdog = Watchdog::new(Duration::from_millis(120), |text| {
        TOLD.lock().unwrap().push(text);
    });

    #[test]
    fn the_watchdog_tells_of_a_kernel_of_which_no_block_ends() {
        let (busy, stuck) = (Arc::default(), Arc::default());
        let watched = [
            EAGER.watch("busy", 1000, &busy),
            EAGER.watch("stuck", 10, &stuck),
        ];
        stuck.store(3, Relaxed);
        for _ in 0..100 {
            busy.fetch_add(1, Relaxed);
            sleep(Duration::from_millis(5));
        }
        drop(watched);
        let told = TOLD.lock().unwrap().len();
        assert!(told > 0);
        sleep(Duration::from_millis(300));
        let texts = TOLD.lock().unwrap();
        assert_eq!(texts.len(), told, "the launches have ended");
        let of_stuck = |text: &String| text.contains("`stuck`") && text.contains("3 of 10 blocks");
        assert!(texts.iter().all(of_stuck), "{texts:?}");
    }
}
