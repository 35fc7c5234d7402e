//! Sites: the places in a kernel's code where lanes access memory or wait for each other.
//!
//! A site is a chain of return addresses, from the operation out to the kernel. So two calls of one function have
//! different sites, also where the compiler has inlined it. `Location::caller()` alone would give them one. Chains with
//! the same [`Source`] are one site.
//!
//! Unwinding costs microseconds. The frames of a function have the same size whenever they are left at the same return
//! address, so the first unwinding of a chain teaches what the next walks along the stack need.

use std::backtrace::Backtrace;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::panic::Location;
use std::sync::Arc;

use super::links::{Link, Links};
use super::source::{self, Source};
use super::stack;
use super::trace::RequestKind;

/// One place in a kernel's code.
pub(crate) struct Site {
    /// The line of the kernel.
    pub location: &'static Location<'static>,
    pub kind: RequestKind,
    /// The bytes that a lane accesses; zero for a collective operation.
    pub bytes: u32,
    /// One of its chains, from the kernel to the operation.
    chain: Box<[usize]>,
    backtrace: Backtrace,
    source: OnceCell<Option<Arc<Source>>>,
}

/// Flag in the number of a site: lanes execute it together.
pub(crate) const COLLECTIVE: u32 = 1 << 31;
/// Roots of the chains: a kind of request, and a size of an access.
const ROOTS: u32 = RequestKind::COUNT * SIZES;
/// Sizes of an access: none, and the powers of two up to 32 bytes.
const SIZES: u32 = 7;
/// The end of a chain that is not complete.
const NO_SITE: u32 = u32::MAX;

/// The sites that a worker has seen.
pub(crate) struct Sites {
    links: Links,
    /// The number of the site at each end of a chain.
    numbers: Vec<u32>,
    sites: Vec<Site>,
    /// Bytes from the variable whose address `find` gets to the first return address; `None`: not known.
    first: Option<usize>,
}

impl Sites {
    pub fn new() -> Self {
        Self {
            links: Links::new(ROOTS),
            numbers: Vec::new(),
            sites: Vec::new(),
            first: None,
        }
    }

    /// The site with a number that [`find`](Self::find) has returned.
    #[inline]
    pub fn get(&self, number: u32) -> &Site {
        &self.sites[(number & !COLLECTIVE) as usize]
    }

    /// The number of sites. They are counted from 0; the numbers of some have a flag.
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
            && let Some(Link { next: end, .. }) = self.links.get(end, address_of(location))
            && let Some(&number) = self.numbers.get(end as usize)
            && number != NO_SITE
        {
            return number;
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
        let Some(first) = self.first else {
            return Some(self.links.get(root, base - top)?.next);
        };
        let (mut place, mut end) = (top + first, root);
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
            self.first = None;
            end = self.links.insert(end, base - top, 0);
            chain.push(base - top);
        }
        chain.reverse();
        // Compilers join calls that differ only in their arguments, of which the location is one.
        end = self.links.insert(end, address_of(location), 0);
        self.numbers.resize(self.links.ends(), NO_SITE);
        if self.numbers[end as usize] == NO_SITE {
            self.numbers[end as usize] = self.number_of(Site {
                location,
                kind,
                bytes,
                chain: chain.into(),
                backtrace: Backtrace::force_capture(),
                source: OnceCell::new(),
            });
        }
        self.numbers[end as usize]
    }

    /// The number of the site with a new chain: that of a site with the same source, or a new one.
    fn number_of(&mut self, new: Site) -> u32 {
        let flag = if new.kind.is_collective() {
            COLLECTIVE
        } else {
            0
        };
        let same = |site: &Site| {
            (site.location, site.kind, site.bytes) == (new.location, new.kind, new.bytes)
                && (site.source().zip(new.source())).is_some_and(|(site, new)| site.agrees(new))
        };
        let number = self.sites.iter().position(same).unwrap_or(self.sites.len());
        match self.sites.get_mut(number) {
            None => self.sites.push(new),
            Some(site) if !site.source().is_some_and(Source::is_complete) => *site = new,
            Some(_) => {}
        }
        number as u32 | flag
    }

    /// Compares the places of two sites in the source.
    pub fn compare(&self, a: u32, b: u32) -> Ordering {
        let (a, b) = (self.get(a), self.get(b));
        match (a.source(), b.source()) {
            (Some(a), Some(b)) => a.cmp(b),
            _ => a.position().cmp(&b.position()).then(a.chain.cmp(&b.chain)),
        }
    }
}

#[inline(always)]
fn address_of(location: &'static Location<'static>) -> usize {
    std::ptr::from_ref(location).addr()
}

impl Site {
    /// The place of its line in the source.
    pub fn position(&self) -> (&'static str, u32, u32) {
        let location = self.location;
        (location.file(), location.line(), location.column())
    }

    fn source(&self) -> Option<&Source> {
        let source = || source::of(&self.chain, &self.backtrace, self.location);
        self.source.get_or_init(source).as_deref()
    }
}
