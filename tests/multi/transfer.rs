//! Sets of devices, and copies from one device to another.

use crate::device_sets;
use warprow::device::DeviceError;
use warprow::multi::Devices;

#[test]
fn a_copy_between_any_two_devices_arrives_and_leaves_the_rest() {
    for devices in device_sets() {
        for from in devices.iter() {
            for to in devices.iter() {
                let source = from.upload(&[1_u32, 2, 3, 4, 5]).unwrap();
                let mut target = to.upload(&[9_u32; 6]).unwrap();
                let mut part = target.slice_mut(2..5).unwrap();
                part.copy_from(source.slice(1..4).unwrap()).unwrap();
                // The source may be overwritten at once: the copy comes first.
                let mut source = source;
                source.fill_zero().unwrap();
                assert_eq!(target.download().unwrap(), [9, 9, 2, 3, 4, 9]);
            }
        }
    }
}

#[test]
fn a_copy_of_another_length_is_refused_and_one_of_nothing_is_not() {
    for devices in device_sets() {
        let (from, to) = (devices.first(), devices.iter().last().unwrap());
        let source = from.upload(&[1.0_f32, 2.0]).unwrap();
        let mut target = to.upload(&[0.0_f32; 3]).unwrap();
        let error = target.as_mut_slice().copy_from(&source).unwrap_err();
        assert!(
            matches!(
                error,
                DeviceError::SliceLength {
                    wanted: 3,
                    found: 2,
                    ..
                }
            ),
            "{error}"
        );
        let mut nothing = target.slice_mut(3..3).unwrap();
        nothing.copy_from(source.slice(2..2).unwrap()).unwrap();
    }
}

#[test]
fn an_empty_list_of_devices_is_an_error() {
    let error = Devices::of(Vec::new()).unwrap_err();
    assert!(matches!(error, DeviceError::NoDevices), "{error}");
}

#[test]
fn all_devices_are_at_least_one() {
    assert!(Devices::all().unwrap().count().get() >= 1);
}
