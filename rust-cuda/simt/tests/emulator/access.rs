//! Wrong accesses to memory that must be reported.

use crate::machine::planted::*;
use crate::machine::*;
use simt::*;

const HERE: Source = Source {
    file: file!(),
    text: include_str!("access.rs"),
};

#[test]
fn an_access_past_the_end_names_allocation_offset_and_size() {
    for checks in [Checks::Full, Checks::BoundsOnly] {
        let emulator = emulator(1, checks, Schedule::InOrder);
        let data = zeros(&emulator, 100);
        for index in [100, 1 << 20] {
            let kind = HERE.planted(&emulator, 40, 17, "reads past the end", || {
                if buggy(17) {
                    get(data, index); // reads past the end
                }
            });
            let expected = FaultKind::OutOfBounds {
                space: Space::Global,
                address: data + 4 * u64::from(index),
                access: 4,
                offset: 4 * i64::from(index),
                size: 400,
                buffer: Buffer {
                    element_bytes: if checks == Checks::Full { 4 } else { 0 },
                    parameters: Vec::new(),
                },
            };
            assert_eq!(kind, expected);
        }
    }
}

#[test]
fn an_access_in_front_of_an_allocation_is_told_from_its_start() {
    let emulator = strict();
    let before = zeros(&emulator, 1);
    let data = zeros(&emulator, 100);
    let kind = HERE.planted(&emulator, 40, 3, "stores in front", || {
        if buggy(3) {
            lane::store::<u64, 1>(Space::Global, data - 8, [1]); // stores in front
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::OutOfBounds {
                offset: -8,
                size: 400,
                access: 8,
                ..
            }
        ),
        "{kind}"
    );
    assert_eq!(download(&emulator, before, 1), [0]);
}

#[test]
fn a_vector_access_that_sticks_out_is_out_of_bounds() {
    let emulator = strict();
    let data = zeros(&emulator, 6);
    let kind = HERE.planted(&emulator, 40, 39, "sticks out", || {
        if buggy(39) {
            lane::load::<u32, 4>(Space::GlobalReadOnly, data + 16); // sticks out
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::OutOfBounds {
                offset: 16,
                size: 24,
                access: 16,
                ..
            }
        ),
        "{kind}"
    );
}

#[test]
fn unknown_and_freed_addresses_are_told_apart() {
    let emulator = strict();
    let freed = zeros(&emulator, 10);
    emulator.free(freed).unwrap();
    zeros(&emulator, 10);
    let kind = HERE.planted(&emulator, 40, 0, "reads what was freed", || {
        if buggy(0) {
            get(freed, 2); // reads what was freed
        }
    });
    assert!(matches!(kind, FaultKind::Freed { offset: 8, .. }), "{kind}");
    for address in [0, 64, u64::MAX - 3] {
        let kind = HERE.planted(&emulator, 40, 0, "follows no pointer", || {
            if buggy(0) {
                lane::atomic::<u32>(Space::Global, Scope::Device, address, |_| None); // follows no pointer
            }
        });
        assert!(
            matches!(kind, FaultKind::UnknownAddress { access: 4, .. }),
            "{kind}"
        );
    }
}

#[test]
fn misaligned_accesses_are_found_in_both_memories() {
    let emulator = strict();
    let data = zeros(&emulator, 100);
    let kind = HERE.planted(&emulator, 40, 5, "loads across", || {
        if buggy(5) {
            lane::load::<u32, 2>(Space::Global, data + 4); // loads across
        }
    });
    assert!(
        matches!(kind, FaultKind::Misaligned { access: 8, .. }),
        "{kind}"
    );
    let kind = HERE.planted(&emulator, 40, 5, "stores across", || {
        let shared = lane::shared_static(1, 8, 8);
        if buggy(5) {
            lane::store::<u16, 1>(Space::Shared, shared + 1, [1]); // stores across
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::Misaligned {
                access: 2,
                space: Space::Shared,
                ..
            }
        ),
        "{kind}"
    );
}

#[test]
fn shared_accesses_outside_the_window_are_out_of_bounds() {
    for checks in [Checks::Full, Checks::BoundsOnly] {
        let emulator = emulator(1, checks, Schedule::InOrder);
        for (distance, offset) in [(64, 64), (-4, -4), (-1024, -1024)] {
            let kind = HERE.planted(&emulator, 40, 5, "leaves the window", || {
                let shared = lane::shared_static(1, 64, 4);
                if buggy(5) {
                    let address = shared.wrapping_add_signed(distance);
                    lane::store::<u32, 1>(Space::Shared, address, [1]); // leaves the window
                }
            });
            assert!(
                matches!(
                    kind,
                    FaultKind::OutOfBounds { space: Space::Shared, size: 64, offset: found, .. } if found == offset
                ),
                "{kind}"
            );
        }
    }
}

#[test]
fn a_word_read_as_read_only_and_written_is_reported_in_either_order() {
    let emulator = strict();
    let data = zeros(&emulator, GRID * 40);
    let own = || block_number() * 40 + thread_number();
    let kind = HERE.planted(&emulator, 40, 31, "writes read-only memory", || {
        lane::load::<u32, 1>(Space::GlobalReadOnly, data + 4 * u64::from(own()));
        if buggy(31) {
            put(data, own(), 1); // writes read-only memory
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::ReadOnlyWritten {
                touch: Touch::Store,
                size: 8000,
                ..
            }
        ),
        "{kind}"
    );
    let kind = HERE.planted(&emulator, 40, 31, "reads as read-only", || {
        put(data, own(), 1);
        if buggy(31) {
            lane::load::<u32, 1>(Space::GlobalReadOnly, data + 4 * u64::from(own())); // reads as read-only
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::ReadOnlyWritten {
                touch: Touch::Load,
                ..
            }
        ),
        "{kind}"
    );
}

#[test]
fn what_one_launch_wrote_the_next_may_read_as_read_only() {
    let emulator = strict();
    let data = zeros(&emulator, GRID * 40);
    let own = || block_number() * 40 + thread_number();
    for _ in 0..3 {
        run(&emulator, shape(GRID, 40), || put(data, own(), own())).unwrap();
        let read = words(&emulator, shape(GRID, 40), || {
            lane::load::<u32, 1>(Space::GlobalReadOnly, data + 4 * u64::from(own() ^ 1))[0]
        });
        assert!(read.into_iter().eq((0..GRID * 40).map(|own| own ^ 1)));
    }
}

#[test]
fn reads_of_memory_never_written_are_found() {
    let emulator = strict();
    let data = emulator.allocate(400, 4).unwrap();
    emulator.zero(data, 396).unwrap();
    for space in [Space::Global, Space::GlobalReadOnly] {
        let kind = HERE.planted(&emulator, 40, 9, "reads too much", || {
            lane::load::<u32, 2>(space, data + 8);
            if buggy(9) {
                lane::load::<u32, 4>(space, data + 384); // reads too much
            }
        });
        assert!(
            matches!(
                kind,
                FaultKind::Uninitialised {
                    offset: 384,
                    access: 16,
                    size: 400,
                    ..
                }
            ),
            "{kind}"
        );
    }
    // Every earlier block has written all of its shared memory; this one must not see that.
    let kind = HERE.planted(&emulator, 40, 9, "reads what one left out", || {
        let shared = lane::shared_static(1, 160, 4);
        if !buggy(38) {
            put_shared(shared, thread_number(), 1);
        }
        lane::sync_threads();
        if thread_number() == 9 {
            get_shared(shared, 38); // reads what one left out
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::Uninitialised {
                space: Space::Shared,
                offset: 152,
                ..
            }
        ),
        "{kind}"
    );
}
