//! Names the buffer of a fault after the kernel's parameter that points to it.

use super::{Buffer, Fault, FaultKind, Parameter};
use crate::memory::regions::OFFSET_BITS;
use crate::types::Space;

impl Fault {
    /// Names the buffer that the fault is about after the kernel's parameter that points to it, if it is one of
    /// `parameters`.
    pub fn name_parameters(&mut self, parameters: &[Parameter]) {
        let Some(InBuffer {
            space,
            address,
            extent,
            buffer,
        }) = self.kind.buffer()
        else {
            return;
        };
        if space == Space::Shared {
            return;
        }
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

/// What a fault knows of the buffer that it is about.
pub(crate) struct InBuffer<'a> {
    pub space: Space,
    pub address: u64,
    /// The offset of the address in the allocation, and the allocation's size in bytes, if they are known.
    pub extent: Option<(i64, u64)>,
    pub buffer: &'a mut Buffer,
}

impl FaultKind {
    /// The buffer that the fault is about, if it is about one.
    pub(crate) fn buffer(&mut self) -> Option<InBuffer<'_>> {
        let (space, address, extent, buffer) = match self {
            Self::OutOfBounds {
                space,
                address,
                offset,
                size,
                buffer,
                ..
            } => (*space, address, Some((*offset, *size)), buffer),
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
            } => (*space, address, Some((offset.cast_signed(), *size)), buffer),
            Self::ReadOnlyWritten {
                address,
                offset,
                size,
                buffer,
                ..
            } => (
                Space::Global,
                address,
                Some((offset.cast_signed(), *size)),
                buffer,
            ),
            Self::Unpublished {
                address,
                offset,
                size,
                buffer,
                ..
            } => (
                Space::Shared,
                address,
                Some((offset.cast_signed(), *size)),
                buffer,
            ),
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
            } => (*space, address, None, buffer),
            _ => return None,
        };
        Some(InBuffer {
            space,
            address: *address,
            extent,
            buffer,
        })
    }
}
