//! Planted bugs: the block that has one, and what its fault must report.

use simt::{AccessKind, Emulator, FaultKind, ThreadState};

use super::{block_number, run, shape, thread_number};

pub const FULL: u32 = u32::MAX;
/// Number of blocks of every launch with a planted bug, and the block that has it.
pub const GRID: u32 = 50;
pub const BUGGY: u32 = 43;

/// The source of a test program. A comment at the end of a line is the name of that line.
pub struct Source {
    pub file: &'static str,
    pub text: &'static str,
}

impl Source {
    /// The line that ends with the comment `mark`.
    #[track_caller]
    pub fn line(&self, mark: &str) -> u32 {
        let comment = format!("// {mark}");
        let mut lines = self.text.lines().zip(1..);
        let found = lines.find(|(line, _)| line.ends_with(&comment));
        found
            .unwrap_or_else(|| panic!("no line ends with {comment}"))
            .1
    }

    /// Runs a kernel with a bug and checks that the fault is in block `BUGGY`, in `thread`, at the line of `mark`.
    /// Returns the kind of the fault.
    #[track_caller]
    pub fn planted(
        &self,
        emulator: &Emulator,
        threads: u32,
        thread: u32,
        mark: &str,
        kernel: impl Fn() + Sync,
    ) -> FaultKind {
        let (file, line) = (self.file, self.line(mark));
        let fault = run(emulator, shape(GRID, threads), kernel).unwrap_err();
        assert_eq!(fault.kernel, "tested");
        assert_eq!(fault.block, [BUGGY, 0, 0], "{fault}");
        assert_eq!(fault.thread, [thread, 0, 0], "{fault}");
        assert_eq!(
            (&*fault.location.file, fault.location.line),
            (file, line),
            "{fault}"
        );
        let text = fault.to_string();
        let place = format!(
            "kernel `tested`, block (43, 0, 0), thread ({thread}, 0, 0), at {file}:{line}:"
        );
        assert!(text.starts_with(&place), "{text}");
        *fault.kind
    }
}

/// Whether the calling thread has the bug.
pub fn buggy(thread: u32) -> bool {
    block_number() == BUGGY && thread_number() == thread
}

/// The line where a thread waits.
#[track_caller]
pub fn line_of(state: &ThreadState) -> u32 {
    match state {
        ThreadState::AtBarrier(location) | ThreadState::AtWarpOperation { location, .. } => {
            location.line
        }
        other => panic!("no line in {other:?}"),
    }
}

/// The two accesses of a race, and block, thread and line of the earlier one.
#[track_caller]
pub fn race(kind: &FaultKind) -> ((AccessKind, AccessKind, [u32; 3], [u32; 3]), u32) {
    match kind {
        FaultKind::Race {
            access_kind,
            other_access_kind,
            other_block,
            other_thread,
            other_location: Some(location),
            ..
        } => (
            (
                *access_kind,
                *other_access_kind,
                *other_block,
                *other_thread,
            ),
            location.line,
        ),
        other => panic!("no race: {other}"),
    }
}
