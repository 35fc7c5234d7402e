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
                    ..Buffer::default()
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
                access_kind: AccessKind::Store,
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
                access_kind: AccessKind::Load,
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

#[test]
fn a_word_of_which_a_thread_wrote_one_byte_is_not_written() {
    for space in [Space::Global, Space::GlobalReadOnly, Space::Shared] {
        let emulator = strict();
        let data = emulator.allocate(4, 4).unwrap();
        // The launch before writes the bytes that the read-only load needs.
        for bytes in [3, 4] {
            let write = |address, space| {
                for byte in 0..bytes {
                    lane::store(space, address + byte, [1_u8]);
                }
            };
            let whole = |address, space| {
                lane::load::<u32, 1>(space, address); // reads the whole word
            };
            if space == Space::GlobalReadOnly {
                run(&emulator, shape(1, 1), || write(data, Space::Global)).unwrap();
            }
            let kernel = || match space {
                Space::Global => {
                    write(data, space);
                    whole(data, space);
                }
                Space::GlobalReadOnly => whole(data, space),
                Space::Shared => {
                    let shared = lane::shared_static(1, 4, 4);
                    write(shared, space);
                    whole(shared, space);
                }
            };
            let found = run(&emulator, shape(1, 1), kernel);
            if bytes == 4 {
                found.unwrap();
                continue;
            }
            let fault = found.unwrap_err();
            assert_eq!(fault.location.line, HERE.line("reads the whole word"));
            assert!(
                matches!(
                    *fault.kind,
                    FaultKind::Uninitialised {
                        access: 4,
                        size: 4,
                        offset: 0,
                        ..
                    }
                ),
                "{fault}"
            );
        }
    }
}

#[test]
fn an_array_in_shared_memory_that_runs_into_another_is_out_of_bounds() {
    for checks in [Checks::Full, Checks::BoundsOnly] {
        let emulator = emulator(1, checks, Schedule::InOrder);
        let launch = Launch {
            shared_bytes: 160,
            ..shape(1, 40)
        };
        // The arrays lie next to each other: dynamic memory, then the static arrays of 160 and 64 bytes.
        for (array, offset) in [
            (0, 160),
            (0, 320),
            (0, -4),
            (1, -4),
            (1, -160),
            (1, 160),
            (2, -4),
            (2, 1 << 18),
        ] {
            let fault = run(&emulator, launch, || {
                let arrays = [
                    lane::shared_dynamic().0,
                    lane::shared_static(1, 160, 16),
                    lane::shared_static(2, 64, 16),
                ];
                for array in &arrays[..2] {
                    put_shared(*array, thread_number(), 1);
                }
                lane::sync_threads();
                if thread_number() == 17 {
                    let address = arrays[array].wrapping_add_signed(offset);
                    lane::store::<u32, 1>(Space::Shared, address, [1]); // leaves its array
                }
            });
            let (fault, of_array) = (fault.unwrap_err(), [160, 160, 64][array]);
            assert_eq!(fault.location.line, HERE.line("leaves its array"));
            assert!(
                matches!(
                    *fault.kind,
                    FaultKind::OutOfBounds { space: Space::Shared, size, offset: found, .. }
                        if found == offset && size == of_array
                ),
                "{fault}"
            );
        }
    }
}

#[test]
fn a_pointer_of_another_emulator_is_told_from_an_unknown_one() {
    for checks in [Checks::Full, Checks::BoundsOnly] {
        let (emulator, other) = (emulator(1, checks, Schedule::InOrder), strict());
        let (own, address) = (zeros(&emulator, 10), zeros(&other, 10));
        let kind = HERE.planted(&emulator, 40, 5, "uses another emulator's memory", || {
            get(own, 3);
            if buggy(5) {
                get(address, 3); // uses another emulator's memory
            }
        });
        let expected = FaultKind::OtherEmulator {
            buffer: Buffer::default(),
            space: Space::Global,
            address: address + 12,
            access: 4,
        };
        assert_eq!(kind, expected);
    }
}
