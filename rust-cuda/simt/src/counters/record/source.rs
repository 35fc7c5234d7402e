//! Where in the source the calls of a chain are, as the debug information says.
//!
//! Compilers copy code: they unroll loops, and continue a branch with a copy of what follows it. Copies have different
//! return addresses and the same place in the source. Compilers for GPUs copy nothing that lanes would then execute
//! one after the other.

use std::backtrace::Backtrace;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The places in the source of an operation and of all calls that lead to it, the kernel's first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    places: Vec<Place>,
    /// Whether the kernel's line is among them. It is not if the compiler has joined two calls, or has replaced the
    /// last call of a function by a jump.
    complete: bool,
}

/// A file, a line and a column.
type Place = (String, u32, u32);

/// Chains of return addresses and their sources; `None`: there is no debug information.
type Sources = HashMap<Box<[usize]>, Option<Arc<Source>>>;

/// The sources of all chains of the process for which one was asked.
static KNOWN: Mutex<Option<Sources>> = Mutex::new(None);

/// The source of a chain, if the program has the debug information. `backtrace` was captured in a function that the
/// last function of the chain had called, for an operation at `location`.
pub(crate) fn of(
    chain: &[usize],
    backtrace: &Backtrace,
    location: &Location<'_>,
) -> Option<Arc<Source>> {
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(source) = known().as_ref().and_then(|known| known.get(chain)) {
        return source.clone();
    }
    // Not on a fiber: reading the debug information needs more stack.
    let text = thread::scope(|scope| {
        let reader = thread::Builder::new().spawn_scoped(scope, || backtrace.to_string());
        reader.ok()?.join().ok()
    })?;
    let places = parse(&text);
    // Without debug information, the emulator's own functions have no places either.
    let source = (places.iter().any(|(file, ..)| file.ends_with("site.rs"))).then(|| {
        let at =
            |(_, line, column): &Place| (*line, *column) == (location.line(), location.column());
        let complete = places.iter().any(at);
        Arc::new(Source { places, complete })
    });
    let mut known = known();
    known
        .get_or_insert_default()
        .insert(chain.into(), source.clone());
    source
}

/// The places in the text of a backtrace, up to the function of the emulator that has called the kernel.
fn parse(text: &str) -> Vec<Place> {
    let inner = text
        .find("simt::launch::scheduler::")
        .map_or(text, |end| &text[..end]);
    let places = inner.lines().filter_map(|line| {
        let mut parts = line.trim_start().strip_prefix("at ")?.rsplitn(3, ':');
        let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((parts.next()?.to_owned(), line, column))
    });
    let mut places: Vec<_> = places.collect();
    places.reverse();
    places
}

impl Source {
    /// Whether both are the same place, as far as the compiler has kept it.
    pub fn agrees(&self, other: &Self) -> bool {
        match (self.complete, other.complete) {
            (true, true) => self == other,
            (true, false) => other.is_part_of(self),
            (false, true) => self.is_part_of(other),
            (false, false) => false,
        }
    }

    /// Whether the places are some of the other ones, in the same order.
    fn is_part_of(&self, whole: &Self) -> bool {
        let mut whole = whole.places.iter();
        self.places
            .iter()
            .all(|place| whole.any(|other| other == place))
    }

    /// Whether the kernel's line is known.
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, parse};

    fn source(lines: &[u32], complete: bool) -> Source {
        let place = |&line: &u32| ("kernel.rs".to_owned(), line, 1);
        Source {
            places: lines.iter().map(place).collect(),
            complete,
        }
    }

    #[test]
    fn sources_agree_if_only_places_are_missing_that_the_compiler_has_lost() {
        let whole = source(&[1, 2, 3], true);
        assert!(whole.agrees(&source(&[1, 2, 3], true)));
        assert!(!whole.agrees(&source(&[1, 4, 3], true)));
        assert!(!whole.agrees(&source(&[1, 3], true)));
        assert!(whole.agrees(&source(&[1, 3], false)));
        assert!(source(&[], false).agrees(&whole));
        assert!(!source(&[3, 1], false).agrees(&whole));
        assert!(!source(&[1], false).agrees(&source(&[1], false)));
    }

    #[test]
    fn the_places_of_a_backtrace_are_those_of_the_kernel_the_outermost_first() {
        let text = "   0: simt::lane::memory::load_at\n             at /simt/src/lane/memory.rs:40:10\n   \
                    1: kernel::row\n             at C:/kernel.rs:7:21\n   2: no::debug::information\n   \
                    3: kernel::matrix\n             at C:/kernel.rs:9:5\n   \
                    4: simt::launch::scheduler::Handoff::run_thread\n             at /simt/launch/scheduler.rs:3:1\n";
        let expected = [
            ("C:/kernel.rs", 9, 5),
            ("C:/kernel.rs", 7, 21),
            ("/simt/src/lane/memory.rs", 40, 10),
        ];
        let expected = expected.map(|(file, line, column)| (file.to_owned(), line, column));
        assert_eq!(parse(text), expected);
    }
}
