//! Shuffles, votes, matches and reductions give the right results on every schedule.

use crate::machine::{run, shape, variety, words};
use simt::{Reduce, lane};

const FULL: u32 = u32::MAX;

/// The definition of `shfl.sync` in the PTX manual.
fn ptx_shuffle(mode: &str, lane: u32, operand: u32, width: u32) -> (u32, bool) {
    let segment = !(width - 1) & 31;
    let clamp = if mode == "up" { 0 } else { 31 };
    let most = lane & segment | clamp & !segment;
    let (source, inside) = match mode {
        "up" => (
            lane.wrapping_sub(operand),
            lane as i32 - operand as i32 >= most as i32,
        ),
        "down" => (lane + operand, lane + operand <= most),
        "xor" => (lane ^ operand, lane ^ operand <= most),
        _ => {
            let source = lane & segment | operand & !segment;
            (source, source <= most)
        }
    };
    (if inside { source } else { lane }, inside)
}

#[test]
fn every_shuffle_of_every_width_reads_the_lane_that_ptx_defines() {
    type Shuffle = fn(u32, u64, u32, u32) -> (u64, bool);
    let modes: [(&str, Shuffle); 4] = [
        ("idx", lane::shuffle_idx),
        ("up", lane::shuffle_up),
        ("down", lane::shuffle_down),
        ("xor", lane::shuffle_xor),
    ];
    for emulator in variety() {
        run(&emulator, shape(3, 64), || {
            for (mode, shuffle) in modes {
                for width in [1, 2, 4, 8, 16, 32] {
                    for operand in 0..32 {
                        let lane = lane::lane_id();
                        let value = u64::from(lane) << 40 | 7;
                        let (source, inside) = ptx_shuffle(mode, lane, operand, width);
                        assert_eq!(
                            shuffle(FULL, value, operand, width),
                            (u64::from(source) << 40 | 7, inside),
                            "{mode} of width {width}, lane {lane}, operand {operand}"
                        );
                    }
                }
            }
        })
        .unwrap();
    }
}

#[test]
fn a_shuffle_with_an_operand_of_its_own_in_each_lane_permutes() {
    for emulator in variety() {
        let found = words(&emulator, shape(2, 32), || {
            let lane = lane::lane_id();
            lane::shuffle_idx(FULL, u64::from(lane * 3), lane * 7 + 1, 32).0 as u32
        });
        let expected = (0..64).map(|thread| (thread * 7 + 1) % 32 * 3);
        assert!(found.into_iter().eq(expected));
    }
}

#[test]
fn a_shuffle_within_a_segment_may_have_a_mask_of_the_segment() {
    for emulator in variety() {
        run(&emulator, shape(2, 32), || {
            if lane::lane_id() < 8 {
                // Past the end of the segment, a lane gets its own value.
                let (value, inside) = lane::shuffle_down(0xff, u64::from(lane::lane_id()), 4, 8);
                assert_eq!(inside, lane::lane_id() < 4);
                assert_eq!(
                    value,
                    u64::from(lane::lane_id()) + if inside { 4 } else { 0 }
                );
            }
        })
        .unwrap();
    }
}

#[test]
fn divergent_parts_of_a_warp_meet_separately_and_in_any_order() {
    for emulator in variety() {
        let found = words(&emulator, shape(5, 32), || {
            let lane = lane::lane_id();
            // Lane 0 is in both pairs: lane 2 waits for it while it completes its operation with lane 1.
            let mut sum = 0;
            if lane < 2 {
                sum += lane::reduce(0b011, lane + 1, Reduce::Add);
            }
            if lane == 0 || lane == 2 {
                sum += lane::reduce(0b101, lane + 10, Reduce::Add);
            }
            if lane >= 16 {
                sum += lane::ballot(0xffff_0000, lane % 2 == 1).count_ones();
            }
            sum
        });
        for warp in found.chunks(32) {
            assert_eq!(warp[..4], [25, 3, 22, 0]);
            assert!(warp[16..].iter().all(|&votes| votes == 8));
        }
    }
}

#[test]
fn votes_matches_and_reductions_work_in_a_partial_warp() {
    let mask = 0b1_1111_1111;
    for emulator in variety() {
        run(&emulator, shape(4, 41), || {
            if lane::warp_id() == 0 {
                return;
            }
            let lane = lane::lane_id();
            assert_eq!(lane::ballot(mask, lane.is_multiple_of(3)), 0b0_0100_1001);
            assert!(lane::all(mask, lane < 9) && !lane::all(mask, lane < 8));
            assert!(lane::any(mask, lane == 8) && !lane::any(mask, lane == 9));
            assert_eq!(
                lane::match_any(mask, u64::from(lane % 3) << 33),
                0b0_0100_1001 << (lane % 3)
            );
            assert_eq!(lane::match_all(mask, u64::MAX), (mask, true));
            assert_eq!(lane::match_all(mask, u64::from(lane / 8)), (0, false));
            let value = (lane as i32 - 4).cast_unsigned();
            let reductions = [
                (Reduce::Add, 0),
                (Reduce::MinUnsigned, 0),
                (Reduce::MaxUnsigned, u32::MAX),
                (Reduce::MinSigned, (-4_i32).cast_unsigned()),
                (Reduce::MaxSigned, 4),
                (Reduce::And, 0),
                (Reduce::Or, u32::MAX),
                (
                    Reduce::Xor,
                    (-4_i32..=4)
                        .fold(0, |all, value| all ^ value)
                        .cast_unsigned(),
                ),
            ];
            for (operation, expected) in reductions {
                assert_eq!(
                    lane::reduce(mask, value, operation),
                    expected,
                    "{operation:?}"
                );
            }
        })
        .unwrap();
    }
}
