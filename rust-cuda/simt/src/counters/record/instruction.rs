//! What a lane executes at a site: a kind of request, and the size of an access.

use crate::counters::trace::RequestKind;

/// Sizes of an access: none, and the powers of two up to 32 bytes.
const SIZES: u32 = 7;

/// A kind of request and the bytes that a lane accesses, as a small number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction(u32);

impl Instruction {
    /// The number of instructions.
    pub const COUNT: u32 = RequestKind::COUNT * SIZES;

    /// An access of `bytes` bytes, a power of two up to 32.
    #[inline(always)]
    pub const fn access(kind: RequestKind, bytes: usize) -> Self {
        Self(kind as u32 * SIZES + usize::BITS - bytes.leading_zeros())
    }

    /// A collective operation.
    #[inline(always)]
    pub const fn collective(kind: RequestKind) -> Self {
        Self(kind as u32 * SIZES)
    }

    /// The number of the instruction.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Whether it is a collective operation.
    #[inline(always)]
    pub fn is_collective(self) -> bool {
        self.0 >= Self::collective(RequestKind::Shuffle).0
    }

    /// What it does.
    pub fn kind(self) -> RequestKind {
        RequestKind::ALL[(self.0 / SIZES) as usize]
    }

    /// The bytes that a lane accesses; zero for a collective operation.
    pub fn bytes(self) -> u32 {
        match self.0 % SIZES {
            0 => 0,
            size => 1 << (size - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_keeps_its_kind_and_size() {
        for kind in RequestKind::ALL {
            let collective = Instruction::collective(kind);
            assert_eq!((collective.kind(), collective.bytes()), (kind, 0));
            assert_eq!(collective.is_collective(), kind.is_collective());
            for bytes in [1, 2, 4, 8, 16, 32] {
                let access = Instruction::access(kind, bytes);
                assert_eq!((access.kind(), access.bytes()), (kind, bytes as u32));
                assert!(access.number() < Instruction::COUNT);
            }
        }
    }
}
