//! Threads that wait for a thread which never arrives.

use crate::machine::planted::*;
use crate::machine::*;
use simt::*;

const HERE: Source = Source {
    file: file!(),
    text: include_str!("waiting.rs"),
};

#[test]
fn a_barrier_that_a_thread_has_returned_from_names_both() {
    for late in [0, 39] {
        let waiting = if late == 0 { 1 } else { 0 };
        let kind = HERE.planted(
            &strict(),
            40,
            waiting,
            "waits for one that returned",
            || {
                if !buggy(late) {
                    lane::sync_threads(); // waits for one that returned
                }
            },
        );
        let expected = FaultKind::Barrier {
            other: [late, 0, 0],
            other_state: ThreadState::Returned,
        };
        assert_eq!(kind, expected);
    }
}

#[test]
fn barriers_of_different_lines_do_not_meet() {
    let kind = HERE.planted(&strict(), 40, 20, "the other barrier", || {
        if buggy(20) {
            lane::sync_threads(); // the other barrier
        } else {
            lane::sync_threads(); // the usual barrier
        }
    });
    let FaultKind::Barrier { other, other_state } = kind else {
        panic!("{kind}")
    };
    assert_eq!(
        (other, line_of(&other_state)),
        ([0, 0, 0], HERE.line("the usual barrier"))
    );
}

#[test]
fn a_barrier_and_a_warp_operation_that_wait_for_each_other_are_found() {
    let kind = HERE.planted(&strict(), 40, 0, "waits for a voter", || {
        if buggy(7) {
            lane::ballot(FULL, true); // votes alone
        }
        lane::sync_threads(); // waits for a voter
    });
    let FaultKind::Barrier { other, other_state } = kind else {
        panic!("{kind}")
    };
    assert_eq!(
        (other, line_of(&other_state)),
        ([7, 0, 0], HERE.line("votes alone"))
    );
}

#[test]
fn masks_that_do_not_fit_are_found() {
    let emulator = strict();
    let kind = HERE.planted(&emulator, 40, 6, "leaves out the caller", || {
        if buggy(6) {
            lane::shuffle_up(0b1_0011_1111, 0, 1, 32); // leaves out the caller
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::MaskWithoutCaller {
                mask: 0b1_0011_1111,
                lane: 6,
                ..
            }
        ),
        "{kind}"
    );

    let kind = HERE.planted(&emulator, 40, 33, "names lanes beyond the block", || {
        if buggy(33) {
            lane::sync_warp(FULL); // names lanes beyond the block
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::MaskBeyondWarp {
                lane: 8,
                lanes: 8,
                ..
            }
        ),
        "{kind}"
    );

    // The lane returns before the others reach the operation, or while they wait.
    for absent in [3, 31] {
        let waiting = if absent == 3 { 4 } else { 0 };
        let first = if absent == 3 { 0 } else { waiting };
        let kind = HERE.planted(&emulator, 64, first, "misses one", || {
            if !buggy(absent) {
                lane::reduce(FULL, 1, Reduce::Add); // misses one
            }
        });
        assert!(
            matches!(kind, FaultKind::LaneAbsent { lane, other_state: ThreadState::Returned, .. } if lane == absent),
            "{kind}"
        );
    }
}

#[test]
fn lanes_that_wait_at_different_operations_are_found() {
    let kind = HERE.planted(&strict(), 32, 0, "shuffles without one", || {
        if buggy(30) {
            lane::match_any(FULL, 1); // matches alone
        } else {
            lane::shuffle_idx(FULL, 1, 0, 32); // shuffles without one
        }
    });
    let FaultKind::LaneAbsent {
        lane, other_state, ..
    } = kind
    else {
        panic!("{kind}")
    };
    assert_eq!(
        (lane, line_of(&other_state)),
        (30, HERE.line("matches alone"))
    );
}

#[test]
fn a_shuffle_that_reads_a_lane_outside_its_mask_is_found() {
    // The lane that arrives last, and one that waits.
    for reader in [6, 7] {
        let kind = HERE.planted(&strict(), 40, reader, "reads a lane outside", || {
            if thread_number() < 8 {
                let lane = if buggy(reader) { 9 } else { 0 };
                lane::shuffle_idx(0xff, 1, lane, 32); // reads a lane outside
            }
        });
        let FaultKind::ShuffleSource {
            mask: 0xff,
            read: 9,
            ..
        } = kind
        else {
            panic!("{kind}")
        };
    }
}

#[test]
fn votes_of_different_kinds_do_not_meet() {
    let kind = HERE.planted(&strict(), 32, 0, "asks for all", || {
        if buggy(4) {
            lane::any(FULL, true); // asks for any
        } else {
            lane::all(FULL, true); // asks for all
        }
    });
    let FaultKind::LaneAbsent {
        lane: 4,
        other_state,
        ..
    } = kind
    else {
        panic!("{kind}")
    };
    assert_eq!(line_of(&other_state), HERE.line("asks for any"));
}

#[test]
fn the_same_operation_with_different_masks_does_not_meet() {
    let kind = HERE.planted(&strict(), 3, 0, "votes with two masks", || {
        let mask = if buggy(1) { 0b011 } else { 0b111 };
        lane::ballot(mask, true); // votes with two masks
    });
    assert!(
        matches!(
            kind,
            FaultKind::LaneAbsent {
                lane: 1,
                mask: 0b111,
                ..
            }
        ),
        "{kind}"
    );
}
