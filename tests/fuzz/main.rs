//! Fuzzing: mutated inputs for every reader, and every operation with random operands and options on an emulator that
//! schedules at random, against a naive product. `scripts/fuzz --seconds 60` runs it.
//!
//! A case is made from the seed and its number alone, so `--seed S --reader N` or `--seed S --product N` repeats it. A
//! panic, a wrong result, a large allocation or a case that does not end is a failure: it is printed, and the exit
//! status is 1.

mod allocations;
mod mutation;
mod products;
mod random;
mod readers;

use random::Random;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A case that takes longer than this does not end.
const DEADLINE: Duration = Duration::from_secs(30);

/// Cases with the same schedule, which share a device: a new one has to map its stacks.
const CASES_OF_A_DEVICE: u64 = 64;

/// A case that fails: what was tried, and what is wrong.
type Failure = String;

/// What is fuzzed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Reader,
    Product,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Product => "product",
        }
    }

    /// Runs case `number`; `describe` takes what it tries before it does. How many inputs or products it tried.
    fn run(self, seed: u64, number: u64, describe: &dyn Fn(String)) -> Result<u64, Failure> {
        let random = &mut Random::of(seed, self as u64, number);
        match self {
            Self::Reader => readers::run(random, describe).map(|()| 1),
            Self::Product => {
                let schedule = Random::of(seed, 2, number / CASES_OF_A_DEVICE).bits();
                products::run(random, schedule, describe)
            }
        }
    }
}

/// What the command line says.
struct Options {
    time: Duration,
    seed: u64,
    threads: usize,
    /// The only target, and its only case.
    only: Option<(Target, Option<u64>)>,
}

const USAGE: &str = "\
usage: scripts/fuzz [--seconds N] [--seed N] [--threads N] [--readers | --products] [--reader N | --product N]
  --seconds N             how long, 60 by default
  --seed N                of all cases; by default the time
  --threads N             by default as many as cores
  --readers, --products   these alone
  --reader N, --product N   case N alone, to repeat a failure";

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut options = Self {
            time: Duration::from_secs(60),
            seed: since_1970.map_or(0, |time| time.as_nanos() as u64),
            threads: thread::available_parallelism().map_or(1, usize::from),
            only: None,
        };
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let text = arguments.next().unwrap_or_default();
                let number = text.parse::<u64>();
                number.map_err(|_| format!("{argument} wants a number, found `{text}`"))
            };
            match argument.as_str() {
                "--seconds" => options.time = Duration::from_secs(number()?),
                "--seed" => options.seed = number()?,
                "--threads" => options.threads = number()?.clamp(1, 1024) as usize,
                "--readers" => options.only = Some((Target::Reader, None)),
                "--products" => options.only = Some((Target::Product, None)),
                "--reader" => options.only = Some((Target::Reader, Some(number()?))),
                "--product" => options.only = Some((Target::Product, Some(number()?))),
                "--help" => {
                    println!("{USAGE}");
                    std::process::exit(0);
                }
                _ => return Err(format!("`{argument}` is no option")),
            }
        }
        Ok(options)
    }
}

thread_local! {
    /// What the last panic of this thread said.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    readers::check_seeds();
    // A panic is part of a failure, whose report says what was tried too.
    std::panic::set_hook(Box::new(|panic| PANIC.set(panic.to_string())));
    let fuzz = Fuzz {
        seed: options.seed,
        ends: Instant::now() + options.time,
        started: Instant::now(),
        cases: [const { AtomicU64::new(0) }; 2],
        counts: [const { AtomicU64::new(0) }; 2],
        failed: AtomicBool::new(false),
    };
    println!("fuzz: seed {}, {} threads", options.seed, options.threads);
    if let Some((target, Some(number))) = options.only {
        fuzz.case(target, number, &Worker::new(target));
    } else {
        let workers: Vec<Worker> = (0..options.threads)
            .map(|i| {
                let only = options.only.map(|(target, _)| target);
                // One thread alone takes turns.
                Worker::new(only.unwrap_or([Target::Product, Target::Reader][i % 2]))
            })
            .collect();
        let takes_turns = options.only.is_none() && options.threads == 1;
        thread::scope(|scope| {
            for worker in &workers {
                scope.spawn(|| fuzz.work(worker, takes_turns));
            }
            fuzz.watch(&workers);
        });
    }
    let [inputs, products] = fuzz.counts.map(AtomicU64::into_inner);
    let seconds = fuzz.started.elapsed().as_secs_f64();
    let failed = fuzz.failed.into_inner();
    let verdict = if failed { "FAILED" } else { "ok" };
    println!(
        "fuzz: {verdict}, {inputs} inputs of readers and {products} products in {seconds:.0} s"
    );
    ExitCode::from(u8::from(failed))
}

/// A run of the fuzzer.
struct Fuzz {
    seed: u64,
    started: Instant,
    ends: Instant,
    /// The cases of each target so far.
    cases: [AtomicU64; 2],
    /// The inputs of readers and the products in them.
    counts: [AtomicU64; 2],
    failed: AtomicBool,
}

/// What a thread does at the moment.
struct Worker {
    target: Target,
    now: Mutex<Option<Case>>,
}

/// A case that runs.
struct Case {
    target: Target,
    number: u64,
    started: Instant,
    tried: String,
}

impl Worker {
    fn new(target: Target) -> Self {
        Self {
            target,
            now: Mutex::new(None),
        }
    }
}

impl Fuzz {
    fn has_ended(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || Instant::now() >= self.ends
    }

    /// One case after the other until the time is over or one fails.
    fn work(&self, worker: &Worker, takes_turns: bool) {
        let mut target = worker.target;
        let mut turn_ends = Instant::now() + Duration::from_secs(1);
        while !self.has_ended() {
            if takes_turns && Instant::now() >= turn_ends {
                target = [Target::Product, Target::Reader][target as usize];
                turn_ends = Instant::now() + Duration::from_secs(1);
            }
            let number = self.cases[target as usize].fetch_add(1, Ordering::Relaxed);
            self.case(target, number, worker);
        }
        *worker.now.lock().expect("no case panics with the lock") = None;
    }

    /// One case, and the report if it fails.
    fn case(&self, target: Target, number: u64, worker: &Worker) {
        let case = |tried| Case {
            target,
            number,
            started: Instant::now(),
            tried,
        };
        let describe = |tried| {
            *worker.now.lock().expect("no case panics with the lock") = Some(case(tried));
        };
        describe(String::new());
        let run = AssertUnwindSafe(|| target.run(self.seed, number, &describe));
        let outcome = catch_unwind(run).unwrap_or_else(|panic| Err(panic_text(&*panic)));
        match outcome {
            Ok(count) => drop(self.counts[target as usize].fetch_add(count, Ordering::Relaxed)),
            Err(failure) => {
                let now = worker.now.lock().expect("no case panics with the lock");
                let tried = now.as_ref().map_or("", |case| &case.tried);
                self.report(target, number, tried, &failure);
            }
        }
    }

    /// Looks for cases that do not end, until the time is over.
    fn watch(&self, workers: &[Worker]) {
        loop {
            thread::sleep(Duration::from_millis(100));
            let mut busy = false;
            for worker in workers {
                let now = worker.now.lock().expect("no case panics with the lock");
                let Some(case) = &*now else { continue };
                busy = true;
                if case.started.elapsed() > DEADLINE {
                    let failure = format!("it takes longer than {} s", DEADLINE.as_secs());
                    self.report(case.target, case.number, &case.tried, &failure);
                    // Its thread cannot be stopped.
                    std::process::exit(1);
                }
            }
            if self.has_ended() && !busy {
                return;
            }
        }
    }

    fn report(&self, target: Target, number: u64, tried: &str, failure: &str) {
        self.failed.store(true, Ordering::Relaxed);
        let (name, seed) = (target.name(), self.seed);
        println!("fuzz: {name} case {number} failed: {failure}");
        println!("  tried: {tried}");
        println!("  again: scripts/fuzz --seed {seed} --{name} {number}");
    }
}

/// What a panic said, and where.
fn panic_text(_: &(dyn Any + Send)) -> Failure {
    PANIC.take()
}
