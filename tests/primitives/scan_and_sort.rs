//! Prefix sums and sorting, on every device, against the host's.

use proptest::prelude::*;
use support::devices;
use warprow::device::Device;
use warprow::operand::OperandError;
use warprow::{scan::exclusive_scan, sort::sort_pairs};
use warprow_kernels::matrix::primitives::scan;

/// Numbers without a pattern, by a linear congruence.
fn scattered(len: usize) -> Vec<u32> {
    let mut state = 12_345_u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 32) as u32
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn scanned(counts: &[u32]) -> (Vec<u32>, u64) {
    let mut sum = 0_u64;
    let starts = counts.iter().map(|&count| {
        let start = sum as u32;
        sum += u64::from(count);
        start
    });
    (starts.collect(), sum)
}

fn assert_scans(device: &Device, counts: &[u32]) {
    let mut buffer = device.upload(counts).unwrap();
    let total = exclusive_scan(device, &mut buffer).unwrap();
    let (wanted, sum) = scanned(counts);
    assert_eq!(total, sum, "{} elements on {device}", counts.len());
    let found = buffer.download().unwrap();
    let differs = (0..counts.len()).find(|&i| found[i] != wanted[i]);
    assert_eq!(differs, None, "{} elements on {device}", counts.len());
}

#[test]
fn every_length_around_a_tile_is_scanned() {
    let numbers: Vec<u32> = scattered(6 * 4096 + 5).iter().map(|n| n % 1000).collect();
    let most_of_one_block = scan::MAX_OF_ONE_BLOCK as usize;
    let of_one_block = [
        0, 1, 2, 3, 4, 5, 31, 127, 128, 129, 511, 513, 4095, 4096, 4097, 8192, 12_293,
    ];
    let of_several_blocks = [0, 1, 2, 3, 4, 129, 513, 4095, 4096, 4097, 8197];
    let several = of_several_blocks.map(|more| most_of_one_block + more);
    for device in devices() {
        for len in of_one_block.into_iter().chain(several) {
            assert_scans(&device, &numbers[..len]);
        }
    }
}

#[test]
fn more_sums_than_a_block_takes_at_once_are_scanned() {
    for device in devices() {
        for len in [4095_usize, 4096, 4097, 8195] {
            // Sums of which two pass 32 bits.
            let sums: Vec<u64> = scattered(len).iter().map(|&n| u64::from(n)).collect();
            let mut buffer = device.upload(&sums).unwrap();
            let mut total = device.zeros::<u64>(1).unwrap();
            let arguments = (len as u32, buffer.mutable(), total.mutable());
            // SAFETY: `len` sums, and one total.
            unsafe {
                device
                    .launch(&scan::scan_sums(), scan::launch_sums(), arguments)
                    .unwrap();
            }
            let mut before = 0;
            let starts = sums.iter().map(|sum| {
                before += sum;
                before - sum
            });
            assert!(starts.eq(buffer.download().unwrap()), "{len} on {device}");
            assert_eq!(total.download().unwrap(), [sums.iter().sum::<u64>()]);
        }
    }
}

#[test]
fn more_tiles_than_the_scan_of_their_sums_takes_at_once_are_scanned() {
    // On a GPU alone: the emulator would take minutes for 17 million elements.
    if let Some(device) = support::cuda() {
        let numbers: Vec<u32> = scattered(4096 * 4099 + 3).iter().map(|n| n % 250).collect();
        assert_scans(&device, &numbers);
    }
}

#[test]
fn sums_up_to_the_greatest_u32_are_scanned_and_greater_ones_are_an_error_that_says_how_great() {
    for device in devices() {
        assert_scans(&device, &[u32::MAX, 0, 0]);
        for len in [5000, 20_000] {
            let mut most = vec![0; len];
            (most[1], most[len - 1]) = (u32::MAX - 7, 7);
            assert_scans(&device, &most);
        }
        for len in [2, 5000, 20_000] {
            let mut counts = device.upload(&vec![u32::MAX; len]).unwrap();
            let error = exclusive_scan(&device, &mut counts).unwrap_err();
            let sum = len as u128 * u128::from(u32::MAX);
            assert!(
                matches!(error, OperandError::TooLarge { found, .. } if found == sum),
                "{error}"
            );
        }
    }
}

fn assert_sorts(device: &Device, keys: &[u32], bits: u32) {
    let positions: Vec<u32> = (0..keys.len() as u32).collect();
    let mut sorted_keys = device.upload(keys).unwrap();
    let mut values = device.upload(&positions).unwrap();
    sort_pairs(device, &mut sorted_keys, &mut values, bits).unwrap();
    let mask = u32::MAX.checked_shr(32 - bits).unwrap_or(0);
    let mut wanted = positions;
    // Stable, as the device's has to be.
    wanted.sort_by_key(|&position| keys[position as usize] & mask);
    let what = || format!("{} pairs by {bits} bits on {device}", keys.len());
    assert!(values.download().unwrap() == wanted, "{}", what());
    let wanted: Vec<u32> = wanted.iter().map(|&at| keys[at as usize]).collect();
    assert!(sorted_keys.download().unwrap() == wanted, "{}", what());
}

#[test]
fn every_length_around_a_tile_is_sorted() {
    let keys = scattered(2 * 4096 + 33);
    for device in devices() {
        for len in [0, 1, 2, 31, 32, 33, 511, 513, 4095, 4096, 4097, 8225] {
            assert_sorts(&device, &keys[..len], 8);
        }
    }
}

#[test]
fn any_number_of_bits_is_sorted_by_and_the_others_are_not() {
    let keys = scattered(5001);
    for device in devices() {
        for bits in [0, 1, 7, 8, 9, 17, 24, 31, 32] {
            assert_sorts(&device, &keys, bits);
        }
    }
}

#[test]
fn equal_sorted_and_reversed_keys_are_sorted_and_stay_stable() {
    let len = 9001_u32;
    for device in devices() {
        assert_sorts(&device, &vec![77; len as usize], 16);
        assert_sorts(&device, &(0..len).collect::<Vec<_>>(), 14);
        assert_sorts(&device, &(0..len).rev().collect::<Vec<_>>(), 14);
        // Two keys, one of them rare.
        let two: Vec<u32> = (0..len).map(|i| u32::from(i % 1000 == 0)).collect();
        assert_sorts(&device, &two, 1);
    }
}

#[test]
fn millions_of_pairs_are_sorted() {
    // On a GPU alone: the emulator would take minutes.
    if let Some(device) = support::cuda() {
        assert_sorts(&device, &scattered(20_000_003), 32);
    }
}

#[test]
fn keys_without_as_many_values_are_an_error_with_both_lengths() {
    for device in devices() {
        let mut keys = device.zeros::<u32>(5).unwrap();
        let mut values = device.zeros::<u32>(4).unwrap();
        let error = sort_pairs(&device, &mut keys, &mut values, 3).unwrap_err();
        assert!(
            matches!(
                error,
                OperandError::Length {
                    wanted: 5,
                    found: 4,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn a_buffer_of_another_device_is_an_error() {
    let [here, elsewhere] = [(), ()].map(|()| Device::emulator(Default::default()));
    let mut counts = elsewhere.zeros::<u32>(3).unwrap();
    let error = exclusive_scan(&here, &mut counts).unwrap_err();
    assert!(matches!(error, OperandError::OtherDevice { .. }), "{error}");
    let mut values = here.zeros::<u32>(3).unwrap();
    let error = sort_pairs(&here, &mut counts, &mut values, 3).unwrap_err();
    assert!(matches!(error, OperandError::OtherDevice { .. }), "{error}");
}

#[test]
fn memory_that_is_not_aligned_as_kernels_want_it_is_an_error() {
    for device in devices() {
        let aligned = || device.upload(&[1_u32; 9]).unwrap();
        let shifted = || {
            let theirs = aligned();
            let address = theirs.as_slice().address() + 4;
            // SAFETY: eight of nine elements; the buffer keeps them, and nobody else uses them.
            unsafe { device.buffer_from_raw::<u32>(address, 8, theirs).unwrap() }
        };
        let (mut keys, mut values) = (aligned(), aligned());
        let (mut wrong_keys, mut wrong_values) = (shifted(), shifted());
        let mut of_eight = device.upload(&[1_u32; 8]).unwrap();
        let errors = [
            exclusive_scan(&device, &mut shifted()).unwrap_err(),
            sort_pairs(&device, &mut wrong_keys, &mut of_eight, 3).unwrap_err(),
            sort_pairs(&device, &mut of_eight, &mut wrong_values, 3).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, OperandError::Alignment { .. }), "{error}");
        }
        sort_pairs(&device, &mut keys, &mut values, 3).unwrap();
        assert_eq!(exclusive_scan(&device, &mut keys).unwrap(), 9);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn any_counts_are_scanned(counts in proptest::collection::vec(0_u32..100_000, 0..30_000)) {
        for device in devices() {
            assert_scans(&device, &counts);
        }
    }

    #[test]
    fn any_pairs_are_sorted(
        keys in proptest::collection::vec(any::<u32>(), 0..5000), mask in any::<u32>(), bits in 0_u32..=32,
    ) {
        // Few distinct keys or many, as the mask has it.
        let keys: Vec<u32> = keys.iter().map(|key| key & mask).collect();
        for device in devices() {
            assert_sorts(&device, &keys, bits);
        }
    }
}

#[test]
fn scans_and_sorts_have_no_fault_under_100_random_schedules() {
    let numbers = scattered(17_001);
    let mut sorted: Vec<u32> = numbers[..3000].to_vec();
    sorted.sort_unstable();
    for device in support::schedules() {
        let counts: Vec<u32> = numbers.iter().map(|n| n % 1000).collect();
        // By one block and by several.
        assert_scans(&device, &counts[..9000]);
        assert_scans(&device, &counts);
        let mut keys = device.upload(&numbers[..3000]).unwrap();
        let mut values = device.upload(&numbers[..3000]).unwrap();
        sort_pairs(&device, &mut keys, &mut values, 32).unwrap();
        assert!(
            keys.download().unwrap() == sorted && values.download().unwrap() == sorted,
            "{device}"
        );
    }
}
