//! The memory of a device: what is free, a limit, and the failure of an allocation that a test asks for.

use support::devices;
use warprow::device::{Device, DeviceError, EmulatorOptions, MemoryInfo};

#[test]
fn an_emulator_with_a_limit_has_that_much_memory_and_no_more() {
    let device = Device::emulator(EmulatorOptions::new().memory(1000));
    let free = || match device.memory().unwrap() {
        Some(MemoryInfo { free, total: 1000, .. }) => free,
        other => panic!("{other:?}"),
    };
    assert_eq!(device.properties().memory_bytes, Some(1000));
    assert_eq!(free(), 1000);
    let buffer = device.zeros::<u64>(100).unwrap();
    assert_eq!((free(), device.allocated_bytes()), (200, 800));
    let error = device.zeros::<u8>(201).unwrap_err();
    assert!(
        matches!(
            error,
            DeviceError::OutOfMemory {
                wanted: 201,
                free: Some(200),
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(device.zeros::<u8>(200).unwrap().len(), 200);
    assert_eq!(free(), 200);
    drop(buffer);
    assert_eq!(free(), 1000);
    assert!(device.zeros::<u8>(1000).is_ok());
}

#[test]
fn the_allocation_that_is_to_fail_fails_and_no_other() {
    // On an emulator, as other tests use the GPU at the same time.
    for device in devices().into_iter().filter(Device::is_emulator) {
        assert_eq!(device.fail_allocation(3), 0);
        let clone = device.clone();
        let first = device.upload(&[1_u32, 2]).unwrap();
        // Nothing is allocated for no elements.
        assert!(device.zeros::<u32>(0).is_ok());
        assert_eq!(clone.fail_allocation(2), 2);
        let second = clone.upload(&[3_u32]).unwrap();
        let error = device.zeros::<u32>(5).unwrap_err();
        assert!(
            matches!(error, DeviceError::OutOfMemory { wanted: 20, .. }),
            "{error}"
        );
        assert_eq!(device.allocated_bytes(), 12);
        let third = device.zeros::<u32>(5).unwrap();
        assert_eq!(device.fail_allocation(0), 0);
        assert_eq!(device.allocated_bytes(), 32);
        drop((first, second, third));
        assert_eq!(device.allocated_bytes(), 0);
    }
}
