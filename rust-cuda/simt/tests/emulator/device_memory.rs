//! Communication through device memory gives the same results on every schedule: wide accesses, atomics, fences.

use crate::machine::{
    block_number, download, get, get_shared, put, put_shared, run, shape, thread_number, upload,
    variety, words, zeros,
};
use simt::{Reduce, Scope, Space, lane};

const FULL: u32 = u32::MAX;

#[test]
fn wide_accesses_move_all_their_words() {
    for emulator in variety() {
        let from = upload(&emulator, &(0..4 * 64).collect::<Vec<_>>());
        let to = zeros(&emulator, 4 * 64);
        run(&emulator, shape(2, 32), || {
            let at = 16 * u64::from(block_number() * 32 + thread_number());
            let words = lane::load::<u32, 4>(Space::GlobalReadOnly, from + at);
            lane::store(Space::Global, to + at, words.map(|word| word * 3));
        })
        .unwrap();
        assert!(
            download(&emulator, to, 4 * 64)
                .into_iter()
                .eq((0..4 * 64).map(|word| word * 3))
        );
    }
}

#[test]
fn atomics_lose_nothing_under_contention_of_many_blocks() {
    for emulator in variety() {
        let counters = zeros(&emulator, 3);
        run(&emulator, shape(500, 37), || {
            let thread = u64::from(thread_number());
            let counter = counters + 4 * (thread % 3);
            lane::atomic::<u32>(Space::Global, Scope::Device, counter, |value| {
                Some(value + 1)
            });
        })
        .unwrap();
        assert_eq!(
            download(&emulator, counters, 3),
            [500 * 13, 500 * 12, 500 * 12]
        );
    }
}

#[test]
fn an_atomic_that_keeps_the_word_reports_it() {
    for emulator in variety() {
        let word = upload(&emulator, &[5]);
        let kept = words(&emulator, shape(9, 3), || {
            lane::atomic::<u32>(Space::Global, Scope::System, word, |value| {
                (value == 4).then_some(9)
            })
        });
        assert_eq!(kept, [5; 27]);
        assert_eq!(download(&emulator, word, 1), [5]);
    }
}

#[test]
fn a_spin_lock_between_lanes_and_blocks_ends() {
    for emulator in variety() {
        let (lock, guarded) = (zeros(&emulator, 1), zeros(&emulator, 1));
        run(&emulator, shape(6, 40), || {
            while lane::atomic::<u32>(Space::Global, Scope::Device, lock, |_| Some(1)) != 0 {}
            lane::fence(Scope::Device);
            put(guarded, 0, get(guarded, 0) + 1);
            lane::fence(Scope::Device);
            lane::atomic::<u32>(Space::Global, Scope::Device, lock, |_| Some(0));
        })
        .unwrap();
        assert_eq!(download(&emulator, guarded, 1), [240]);
    }
}

#[test]
fn a_block_can_wait_for_a_later_one() {
    for emulator in variety() {
        let flags = zeros(&emulator, 8);
        run(&emulator, shape(8, 33), || {
            let flag = |block: u32| flags + 4 * u64::from(block);
            let block = block_number();
            if thread_number() == 32 {
                if block < 7 {
                    let read = || {
                        lane::atomic::<u32>(Space::Global, Scope::Device, flag(block + 1), |_| None)
                    };
                    while read() == 0 {}
                }
                lane::atomic::<u32>(Space::Global, Scope::Device, flag(block), |_| Some(1));
            }
            lane::sync_threads();
        })
        .unwrap();
        assert_eq!(download(&emulator, flags, 8), [1; 8]);
    }
}

#[test]
fn the_last_block_sees_what_all_have_written() {
    for emulator in variety() {
        let (partial, ticket, total) = (
            zeros(&emulator, 50),
            zeros(&emulator, 1),
            zeros(&emulator, 1),
        );
        run(&emulator, shape(50, 64), || {
            let last = lane::shared_static(1, 4, 4);
            if thread_number() == 0 {
                put(partial, block_number(), block_number());
                lane::fence(Scope::Device);
                let count = lane::atomic::<u32>(Space::Global, Scope::Device, ticket, |count| {
                    Some(count + 1)
                });
                lane::fence(Scope::Device);
                put_shared(last, 0, u32::from(count == 49));
            }
            lane::sync_threads();
            if get_shared(last, 0) == 1 && lane::warp_id() == 0 {
                let lane = lane::lane_id();
                let mut sum = get(partial, lane);
                if lane < 18 {
                    sum += get(partial, lane + 32);
                }
                let sum = lane::reduce(FULL, sum, Reduce::Add);
                if lane == 0 {
                    put(total, 0, sum);
                }
            }
        })
        .unwrap();
        assert_eq!(download(&emulator, total, 1), [49 * 50 / 2]);
    }
}

#[test]
fn atomics_on_8_bytes_carry_from_the_lower_half_to_the_upper_one() {
    for emulator in variety() {
        let counter = zeros(&emulator, 2);
        let many = 0xffff_ffff_u64;
        run(&emulator, shape(100, 33), || {
            lane::atomic::<u64>(Space::Global, Scope::Device, counter, |sum| {
                Some(sum + many)
            });
        })
        .unwrap();
        let mut bytes = [0; 8];
        emulator.read(counter, &mut bytes).unwrap();
        assert_eq!(u64::from_ne_bytes(bytes), 3300 * many);
    }
}

#[test]
fn blocks_that_write_neighbouring_bytes_lose_none() {
    for emulator in variety() {
        let bytes = emulator.allocate(16 * 500, 1).unwrap();
        run(&emulator, shape(500, 2), || {
            // A block writes 3 bytes and 5 halves of words; its neighbours write the bytes around them.
            let (block, first) = (u64::from(block_number()), thread_number() == 0);
            let at = bytes + 16 * block + 13;
            if first {
                lane::store(Space::Global, bytes + 16 * block, [block as u8; 2]);
                lane::store(Space::Global, bytes + 16 * block + 2, [block as u8]);
            } else if block < 499 {
                lane::store(Space::Global, at, [block as u8]);
                lane::store(Space::Global, at + 1, [block as u16]);
            }
            let middle = bytes + 16 * block + 4;
            if first {
                lane::store(Space::Global, middle, [block as u16, 2]);
                lane::store(Space::Global, middle + 4, [block as u32]);
            }
        })
        .unwrap();
        let mut read = vec![0; 4];
        for block in 0..499_u64 {
            let [low, high] = (block as u16).to_ne_bytes();
            emulator.read(bytes + 16 * block, &mut read[..3]).unwrap();
            assert_eq!(read[..3], [low; 3]);
            emulator.read(bytes + 16 * block + 4, &mut read).unwrap();
            assert_eq!(read, [low, high, 2, 0]);
            emulator.read(bytes + 16 * block + 8, &mut read).unwrap();
            assert_eq!(read, (block as u32).to_ne_bytes());
            emulator
                .read(bytes + 16 * block + 13, &mut read[..3])
                .unwrap();
            assert_eq!(read[..3], [low, low, high]);
        }
    }
}

#[test]
fn an_atomic_store_needs_no_earlier_value() {
    for emulator in variety() {
        let data = emulator.allocate(8, 8).unwrap();
        run(&emulator, shape(3, 5), || {
            lane::atomic_store::<u64>(Space::Global, Scope::Device, data, 5 << 40);
        })
        .unwrap();
        assert_eq!(download(&emulator, data, 2), [0, 5 << 8]);
    }
}
