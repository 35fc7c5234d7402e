//! Names the buffer of a fault after the kernel's parameter that points to it.

use super::{Buffer, Fault, FaultKind, Parameter};
use crate::regions::OFFSET_BITS;
use crate::types::Space::Shared;

impl Fault {
    /// Names the buffer that the fault is about after the kernel's parameter that points to it, if it is one of
    /// `parameters`.
    pub fn name_parameters(&mut self, parameters: &[Parameter]) {
        let Some((address, extent, buffer)) = self.kind.buffer() else {
            return;
        };
        // Within the allocation, if it is known; else at most as far from an allocation's start as its size may be.
        let start = address.wrapping_sub(extent.map_or(0, |(offset, _)| offset.cast_unsigned()));
        let inside: Vec<&Parameter> = parameters
            .iter()
            .filter(|parameter| parameter.address >> OFFSET_BITS == start >> OFFSET_BITS)
            .collect();
        let before = inside.iter().map(|parameter| parameter.address);
        let nearest = before.clone().filter(|&at| at <= address).max();
        let Some(nearest) = nearest.or_else(|| before.min()) else {
            return;
        };
        buffer.parameters = inside
            .into_iter()
            .filter(|parameter| parameter.address == nearest)
            .cloned()
            .collect();
    }
}

impl FaultKind {
    /// The address that the fault is about in global memory, its offset in an allocation and the allocation's size, and
    /// the buffer.
    pub(crate) fn buffer(&mut self) -> Option<(u64, Option<(i64, u64)>, &mut Buffer)> {
        match self {
            Self::OutOfBounds {
                space,
                address,
                offset,
                size,
                buffer,
                ..
            } if *space != Shared => Some((*address, Some((*offset, *size)), buffer)),
            Self::Uninitialised {
                space,
                address,
                offset,
                size,
                buffer,
                ..
            }
            | Self::Race {
                space,
                address,
                offset,
                size,
                buffer,
                ..
            } if *space != Shared => Some((*address, Some((offset.cast_signed(), *size)), buffer)),
            Self::ReadOnlyWritten {
                address,
                offset,
                size,
                buffer,
                ..
            } => Some((*address, Some((offset.cast_signed(), *size)), buffer)),
            Self::OtherEmulator {
                space,
                address,
                buffer,
                ..
            }
            | Self::UnknownAddress {
                space,
                address,
                buffer,
                ..
            }
            | Self::Freed {
                space,
                address,
                buffer,
                ..
            }
            | Self::Misaligned {
                space,
                address,
                buffer,
                ..
            }
            | Self::NothingChanges {
                space,
                address,
                buffer,
                ..
            } if *space != Shared => Some((*address, None, buffer)),
            _ => None,
        }
    }
}
