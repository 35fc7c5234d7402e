//! Sites: the places in a kernel's code where lanes access memory or wait for each other.
//!
//! A site is a chain of return addresses, from the operation out to the kernel. So two calls of one function have
//! different sites, also where the compiler has inlined it. `Location::caller()` alone would give them one.
//!
//! Unwinding costs microseconds. The frames of a function have the same size whenever they are left at the same return
//! address, so the first unwinding of a chain teaches what the next walks along the stack need.

use std::panic::Location;

use super::links::Links;
use super::stack::{self, Frame};
use super::trace::RequestKind;

/// One place in a kernel's code.
#[derive(Debug)]
pub(crate) struct Site {
    /// The line of the kernel.
    pub location: &'static Location<'static>,
    pub kind: RequestKind,
    /// The bytes that a lane accesses; zero for a collective operation.
    pub bytes: u32,
    /// The return addresses, from the kernel to the operation. Where two sites differ first, both addresses lie in one
    /// function, and their order is mostly that of the source.
    pub chain: Box<[usize]>,
}

/// Roots of the chains: a kind of request, and a size of an access.
const ROOTS: u32 = RequestKind::COUNT * SIZES;
/// Sizes of an access: none, and the powers of two up to 32 bytes.
const SIZES: u32 = 7;

/// The sites that a worker has seen. The number of a site is that of the end of its chain in `links`.
pub(crate) struct Sites {
    links: Links,
    sites: Vec<Option<Site>>,
    /// Bytes from the variable whose address `find` gets to the first return address; `None`: not known yet.
    first: Option<usize>,
}

impl Sites {
    pub fn new() -> Self {
        Self {
            links: Links::new(ROOTS),
            sites: Vec::new(),
            first: None,
        }
    }

    /// The site with a number that [`find`](Self::find) has returned.
    #[inline]
    pub fn get(&self, number: u32) -> &Site {
        self.sites[number as usize]
            .as_ref()
            .expect("`find` returns the numbers of sites")
    }

    /// One more than the highest number of a site.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// The number of the site of an operation. `top` is the address of a variable of the caller, always the same
    /// variable; `base` is the address of a variable of the function that called the kernel.
    ///
    /// # Safety
    ///
    /// Both variables are on the running stack.
    #[inline(always)]
    pub unsafe fn find(
        &mut self,
        top: usize,
        base: usize,
        (kind, bytes): (RequestKind, u32),
        location: &'static Location<'static>,
    ) -> u32 {
        let root = kind as u32 * SIZES + (u32::BITS - bytes.leading_zeros());
        // SAFETY: by the contract of this function.
        if let Some(end) = unsafe { self.walk(top, base, root) }
            && let Some(Some(_)) = self.sites.get(end as usize)
        {
            return end;
        }
        self.learn(top, base, root, (kind, bytes), location)
    }

    /// Walks along the return addresses on the stack, as far as all of them are known.
    ///
    /// # Safety
    ///
    /// As for `find`.
    #[inline(always)]
    unsafe fn walk(&self, top: usize, base: usize, root: u32) -> Option<u32> {
        let (mut place, mut end) = (top + self.first?, root);
        while place < base {
            // SAFETY: the place lies between two variables of the running stack, and all places are aligned.
            let address = unsafe { stack::read(place) };
            let link = self.links.get(end, address)?;
            (place, end) = (place + link.frame as usize, link.next);
        }
        Some(end)
    }

    /// Finds the return addresses by unwinding.
    #[cold]
    #[inline(never)]
    fn learn(
        &mut self,
        top: usize,
        base: usize,
        root: u32,
        (kind, bytes): (RequestKind, u32),
        location: &'static Location<'static>,
    ) -> u32 {
        let frames = stack::unwind(top, base);
        let mut chain = Vec::new();
        let mut end = root;
        if let [first, ..] = *frames {
            self.first = Some(first.place - top);
            for (frame, outer) in frames.iter().zip(&frames[1..]) {
                let size = (outer.place - frame.place) as u32;
                end = self.links.insert(end, frame.address, size);
                chain.push(frame.address);
            }
        } else {
            // No unwinder: the line and the depth of the stack tell most sites apart.
            for address in [std::ptr::from_ref(location).addr(), base - top] {
                end = self.links.insert(end, address, 0);
            }
        }
        chain.reverse();
        self.sites.resize_with(self.links.ends() as usize, || None);
        self.sites[end as usize].get_or_insert(Site {
            location,
            kind,
            bytes,
            chain: chain.into(),
        });
        end
    }
}

const _: () = assert!(size_of::<Frame>() == 2 * size_of::<usize>());
