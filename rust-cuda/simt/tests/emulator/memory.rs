//! Device memory as the host sees it.

use crate::machine::{block_number, download, emulator, put, run, shape, strict, upload, zeros};
use simt::{Checks, Emulator, MemoryError, Options, Schedule, Space, lane};

#[test]
fn what_is_written_is_read_at_every_offset_and_length() {
    let emulator = strict();
    let data = emulator.allocate(100, 1).unwrap();
    for offset in 0..20 {
        for len in 0..40 {
            let written: Vec<u8> = (0..len).map(|byte| byte * 3 + offset).collect();
            let address = data + u64::from(offset);
            emulator.write(address, &written).unwrap();
            let mut read = vec![0; usize::from(len)];
            emulator.read(address, &mut read).unwrap();
            assert_eq!(read, written, "{len} bytes at {offset}");
        }
    }
}

#[test]
fn zeroing_and_copying_keep_to_their_ranges() {
    let emulator = strict();
    let words: Vec<u32> = (0..5000).collect();
    let (from, to) = (upload(&emulator, &words), upload(&emulator, &[9; 5000]));
    emulator.copy(to + 4, from + 8, 4 * 4990).unwrap();
    let copied = download(&emulator, to, 5000);
    assert_eq!(
        (copied[0], &copied[1..4991], &copied[4991..]),
        (9, &words[2..4992], &[9; 9][..])
    );
    emulator.zero(to + 4, 4 * 4998).unwrap();
    let zeroed = download(&emulator, to, 5000);
    assert_eq!((zeroed[0], zeroed[4999]), (9, 9));
    assert!(zeroed[1..4999].iter().all(|&word| word == 0));
}

#[test]
fn what_nobody_has_written_cannot_be_read() {
    let emulator = strict();
    let data = emulator.allocate(40, 4).unwrap();
    let unwritten = |offset| {
        Err(MemoryError::Uninitialised {
            address: data + offset,
            offset,
            size: 40,
        })
    };
    assert_eq!(emulator.read(data, &mut [0; 40]), unwritten(0));
    assert_eq!(emulator.read(data + 6, &mut [0; 2]), unwritten(6));
    assert_eq!(emulator.read(data + 40, &mut []), Ok(()));
    emulator.write(data, &[1; 8]).unwrap();
    run(&emulator, shape(7, 1), || {
        put(data, 3 + block_number(), block_number())
    })
    .unwrap();
    let mut bytes = [9; 40];
    assert_eq!(emulator.read(data, &mut bytes), unwritten(8));
    assert_eq!(bytes, [9; 40], "nothing is copied");
    let message = emulator.read(data, &mut bytes).unwrap_err().to_string();
    assert!(
        message.contains("offset 8 of an allocation of 40 bytes"),
        "{message}"
    );
    assert_eq!(download(&emulator, data, 2), [0x0101_0101; 2]);
    assert!(download(&emulator, data + 12, 7).into_iter().eq(0..7));
    emulator.zero(data + 8, 4).unwrap();
    assert_eq!(download(&emulator, data, 10)[2..4], [0, 0]);
}

#[test]
fn a_copy_of_what_nobody_has_written_is_not_written() {
    let emulator = strict();
    // The source has granules of one byte, so copies begin and end inside granules of the destination.
    let from = emulator.allocate(40, 1).unwrap();
    emulator.write(from, &[1; 9]).unwrap();
    emulator.write(from + 12, &[2; 28]).unwrap();
    let unwritten = |to: u64, offset| {
        Err(MemoryError::Uninitialised {
            address: to + offset,
            offset,
            size: 40,
        })
    };
    for granule in [1, 4, 16] {
        let to = emulator.allocate(40, granule).unwrap();
        emulator.zero(to, 40).unwrap();
        emulator.copy(to + 5, from, 35).unwrap();
        // Bytes 9 to 11 of the source were copied to 14 to 16.
        assert_eq!(emulator.read(to, &mut [0; 40]), unwritten(to, 14));
        assert_eq!(emulator.read(to + 17, &mut [0; 23]), Ok(()));
        assert_eq!(emulator.read(to + 16, &mut [0; 1]), unwritten(to, 16));
        emulator.copy(to + 8, from + 16, 24).unwrap();
        assert_eq!(emulator.read(to + 8, &mut [0; 24]), Ok(()));
        let mut bytes = [9; 40];
        emulator.read(to, &mut bytes).unwrap();
        assert_eq!((&bytes[..5], &bytes[8..32]), (&[0; 5][..], &[2; 24][..]));
    }
}

#[test]
fn with_bounds_only_what_nobody_has_written_reads_as_zeros() {
    let emulator = emulator(1, Checks::BoundsOnly, Schedule::InOrder);
    let data = emulator.allocate(40, 4).unwrap();
    assert_eq!(download(&emulator, data, 10), [0; 10]);
}

#[test]
fn ranges_outside_an_allocation_are_refused() {
    let emulator = strict();
    let data = zeros(&emulator, 10);
    let out = |bytes, offset| MemoryError::OutOfBounds {
        bytes,
        offset,
        size: 40,
    };
    assert_eq!(emulator.write(data + 36, &[0; 5]), Err(out(5, 36)));
    assert_eq!(emulator.read(data + 41, &mut []), Err(out(0, 41)));
    assert_eq!(emulator.zero(data, 41), Err(out(41, 0)));
    assert_eq!(emulator.zero(data, u64::MAX), Err(out(u64::MAX, 0)));
    assert_eq!(emulator.copy(data, data + 20, 21), Err(out(21, 20)));
    let overlap = MemoryError::Overlap {
        destination: data,
        source_address: data + 8,
        bytes: 9,
    };
    assert_eq!(emulator.copy(data, data + 8, 9), Err(overlap));
    assert_eq!(
        emulator.read(5, &mut [0]),
        Err(MemoryError::UnknownAddress { address: 5 })
    );
}

#[test]
fn freeing_wants_the_start_of_a_live_allocation() {
    let emulator = strict();
    let data = zeros(&emulator, 10);
    let inside = MemoryError::NotTheStart {
        address: data + 4,
        offset: 4,
    };
    assert_eq!(emulator.free(data + 4), Err(inside));
    assert_eq!(emulator.free(data), Ok(()));
    assert_eq!(
        emulator.free(data),
        Err(MemoryError::Freed { address: data })
    );
    assert_eq!(
        emulator.free(0),
        Err(MemoryError::UnknownAddress { address: 0 })
    );
    assert_ne!(
        zeros(&emulator, 10),
        data,
        "the address is not given out again at once"
    );
}

#[test]
fn an_allocation_that_the_host_cannot_hold_is_an_error() {
    for checks in [Checks::Full, Checks::BoundsOnly] {
        let emulator = emulator(1, checks, Schedule::InOrder);
        for bytes in [1 << 50, u64::MAX, (1 << 39) - 1] {
            // The last one may succeed if the host overcommits memory; it is never touched.
            match emulator.allocate(bytes, 1) {
                Err(error) => assert_eq!(error, MemoryError::OutOfMemory { bytes }),
                Ok(address) => assert!(bytes < 1 << 39 && emulator.free(address).is_ok()),
            }
        }
        assert_eq!(
            emulator.allocate(4, 3),
            Err(MemoryError::Granule { granule: 3 })
        );
    }
}

#[test]
fn live_allocations_take_no_more_than_the_emulator_has() {
    let emulator = Emulator::new(Options::new().memory(100));
    let large = emulator.allocate(90, 1).unwrap();
    let small = emulator.allocate(10, 2).unwrap();
    assert_eq!(emulator.allocated(), 100);
    let exceeded = |bytes, allocated| {
        Err(MemoryError::MemoryExceeded {
            bytes,
            allocated,
            memory: 100,
        })
    };
    assert_eq!(emulator.allocate(1, 1), exceeded(1, 100));
    assert!(emulator.allocate(0, 1).is_ok());
    emulator.free(large).unwrap();
    assert_eq!(emulator.allocated(), 10);
    for bytes in [91, u64::MAX] {
        assert_eq!(emulator.allocate(bytes, 1), exceeded(bytes, 10));
    }
    assert!(emulator.free(large).is_err());
    emulator.allocate(90, 1).unwrap();
    emulator.free(small).unwrap();
    assert_eq!(emulator.allocated(), 90);
}

#[test]
fn an_emulator_without_a_limit_counts_what_is_allocated() {
    let emulator = strict();
    assert_eq!(emulator.allocated(), 0);
    let words = zeros(&emulator, 10);
    assert!(emulator.allocate(u64::MAX, 1).is_err());
    assert_eq!(emulator.allocated(), 40);
    emulator.free(words).unwrap();
    assert_eq!(emulator.allocated(), 0);
}

#[test]
fn allocations_of_zero_bytes_have_addresses_of_their_own() {
    let emulator = strict();
    let [a, b] = [(); 2].map(|()| emulator.allocate(0, 4).unwrap());
    assert!(a != b && a != 0);
    emulator.zero(a, 0).unwrap();
    let fault = run(&emulator, shape(3, 1), || {
        lane::load::<u8, 1>(Space::Global, b);
    });
    assert!(
        fault
            .unwrap_err()
            .to_string()
            .contains("1 bytes at element 0 of 0, of 4 bytes each")
    );
    emulator.free(a).unwrap();
}

#[test]
fn addresses_of_freed_allocations_come_back_late_and_never_while_live() {
    let emulator = emulator(1, Checks::BoundsOnly, Schedule::InOrder);
    let kept = zeros(&emulator, 1);
    let first = emulator.allocate(1, 1).unwrap();
    emulator.free(first).unwrap();
    for count in 0.. {
        let address = emulator.allocate(1, 1).unwrap();
        assert_ne!(address, kept);
        if address == first {
            assert!(count >= 65535);
            break;
        }
        emulator.free(address).unwrap();
    }
}

#[test]
fn a_part_of_a_word_that_the_host_writes_leaves_the_others_unwritten() {
    let emulator = strict();
    for granule in [1, 2, 4, 8, 16] {
        let data = emulator.allocate(32, granule).unwrap();
        emulator.write(data + 5, &[1; 14]).unwrap();
        emulator.write(data + 3, &[2]).unwrap();
        for byte in 0..32 {
            let is_written = byte == 3 || (5..19).contains(&byte);
            let read = emulator.read(data + byte, &mut [0]);
            assert_eq!(read.is_ok(), is_written, "byte {byte}, granule {granule}");
        }
        emulator.zero(data + 4, 1).unwrap();
        assert_eq!(emulator.read(data + 3, &mut [0; 16]), Ok(()));
    }
}

#[test]
fn emulators_have_addresses_of_their_own() {
    let emulators = [(); 20].map(|()| strict());
    let data = emulators.each_ref().map(|emulator| zeros(emulator, 10));
    for (i, emulator) in emulators.iter().enumerate() {
        for (j, &address) in data.iter().enumerate() {
            let other = (i != j).then_some(MemoryError::OtherEmulator { address });
            assert_eq!(emulator.read(address, &mut [0; 40]).err(), other);
            assert_eq!(emulator.copy(address, data[i], 0).err(), other);
        }
    }
    let fresh = strict();
    assert_eq!(
        fresh.free(data[3]),
        Err(MemoryError::OtherEmulator { address: data[3] })
    );
}

#[test]
fn any_number_of_emulators_can_come_and_go() {
    let kept = strict();
    let address = zeros(&kept, 1);
    for _ in 0..3000 {
        let emulator = emulator(1, Checks::BoundsOnly, Schedule::InOrder);
        assert_ne!(emulator.allocate(4, 4).unwrap() >> 54, address >> 54);
    }
}
