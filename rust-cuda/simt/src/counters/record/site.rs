//! Sites: the places in a kernel's code where lanes access memory or wait for each other.
//!
//! A site is a chain of return addresses, from the operation out to the kernel. So two calls of one function have
//! different sites, also where the compiler has inlined it. `Location::caller()` alone would give them one. Chains with
//! the same [`Source`] are one site.
//!
//! Unwinding costs microseconds. The frames of a function have the same size whenever they are left at the same return
//! address, so the first unwinding of a chain teaches what the next walks along the stack need. Nearly always the next
//! chain of a lane is the one that followed the last time; to see that, the stack is only compared with it.

use std::backtrace::Backtrace;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::panic::Location;
use std::sync::Arc;

use crate::counters::record::instruction::Instruction;
use crate::counters::record::links::Links;
use crate::counters::record::source::{self, Source};
use crate::counters::record::stack::{Frame, Stack};
use crate::counters::trace::RequestKind;

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
/// The number of no chain: its end in the tree is not that of a complete one.
const NO_CHAIN: u32 = u32::MAX;
/// The number of the empty chain, with which each lane starts.
pub(crate) const START: u32 = 0;

/// The sites that a worker has seen.
pub(crate) struct Sites {
    links: Links,
    /// The number of the complete chain at each end of a chain.
    numbers: Vec<u32>,
    chains: Vec<Chain>,
    sites: Vec<Site>,
    /// Bytes from the variable whose address `find` gets to the first return address; `None`: not known.
    first: Option<usize>,
}

/// A complete chain, as it is on the stack.
struct Chain {
    /// The address of the `Location` of the operation.
    location: usize,
    /// The bytes on the stack.
    depth: usize,
    instruction: Instruction,
    /// The number of its site.
    site: u32,
    /// The chain that followed it the last time.
    next: u32,
    /// Its return addresses. Their places count from the top of the stack.
    frames: Box<[Frame]>,
}

impl Sites {
    pub fn new() -> Self {
        let start = Chain {
            location: 0,
            depth: 0,
            instruction: Instruction::collective(RequestKind::BlockBarrier),
            site: 0,
            next: START,
            frames: Box::default(),
        };
        Self {
            links: Links::new(Instruction::COUNT),
            numbers: Vec::new(),
            chains: vec![start],
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

    /// The numbers of the chain and of the site of an operation, if it is the chain that has followed the chain `last`
    /// before. The top of the stack is always the same variable of the same function.
    ///
    /// # Safety
    ///
    /// It is the running stack.
    #[inline(always)]
    pub unsafe fn find(
        &self,
        stack: Stack,
        last: u32,
        instruction: Instruction,
        location: &'static Location<'static>,
    ) -> Option<(u32, u32)> {
        let likely = self.chains[last as usize].next;
        let chain = &self.chains[likely as usize];
        let is_same = chain.location == address_of(location)
            && chain.instruction == instruction
            && chain.depth == stack.bytes()
            // SAFETY: a stack with as many bytes has the places of the chain.
            && (chain.frames.iter()).all(|frame| unsafe { stack.read(frame.place) } == frame.address);
        is_same.then_some((likely, chain.site))
    }

    /// Does [`find`](Self::find) for any chain, which is the one to follow from now on.
    ///
    /// # Safety
    ///
    /// As for `find`.
    #[cold]
    #[inline(never)]
    pub unsafe fn find_any(
        &mut self,
        stack: Stack,
        last: u32,
        instruction: Instruction,
        location: &'static Location<'static>,
    ) -> (u32, u32) {
        // SAFETY: by the contract of this function.
        let known = unsafe { self.walk(stack, instruction) };
        let known = known
            .and_then(|end| self.links.get(end, address_of(location)))
            .and_then(|link| self.numbers.get(link.next as usize).copied())
            .filter(|&number| number != NO_CHAIN);
        let number = known.unwrap_or_else(|| self.learn(stack, instruction, location));
        self.chains[last as usize].next = number;
        (number, self.chains[number as usize].site)
    }

    /// Walks along the return addresses on the stack, as far as all of them are known.
    ///
    /// # Safety
    ///
    /// As for `find`.
    unsafe fn walk(&self, stack: Stack, instruction: Instruction) -> Option<u32> {
        let root = instruction.number();
        let Some(first) = self.first else {
            return Some(self.links.get(root, stack.bytes())?.next);
        };
        let (mut place, mut end) = (first, root);
        while place < stack.bytes() {
            // SAFETY: the place lies on the running stack, and all places are aligned.
            let address = unsafe { stack.read(place) };
            let link = self.links.get(end, address)?;
            (place, end) = (place + link.frame as usize, link.next);
        }
        Some(end)
    }

    /// Finds the return addresses by unwinding. Returns the number of the chain.
    #[cold]
    #[inline(never)]
    fn learn(
        &mut self,
        stack: Stack,
        instruction: Instruction,
        location: &'static Location<'static>,
    ) -> u32 {
        let mut frames = stack.unwind();
        let mut end = instruction.number();
        if let Some(outermost) = frames.pop() {
            self.first = frames.first().map(|frame| frame.place);
            let outer = frames.iter().skip(1).chain([&outermost]);
            for (frame, outer) in frames.iter().zip(outer) {
                let size = (outer.place - frame.place) as u32;
                end = self.links.insert(end, frame.address, size);
            }
        } else {
            // No unwinder: the line and the depth of the stack tell most sites apart.
            self.first = None;
            end = self.links.insert(end, stack.bytes(), 0);
        }
        // Compilers join calls that differ only in their arguments, of which the location is one.
        end = self.links.insert(end, address_of(location), 0);
        self.numbers.resize(self.links.ends(), NO_CHAIN);
        if self.numbers[end as usize] == NO_CHAIN {
            self.numbers[end as usize] = self.chains.len() as u32;
            let addresses = frames.iter().rev().map(|frame| frame.address);
            let site = self.number_of(Site {
                location,
                kind: instruction.kind(),
                bytes: instruction.bytes(),
                chain: addresses.collect(),
                backtrace: Backtrace::force_capture(),
                source: OnceCell::new(),
            });
            self.chains.push(Chain {
                location: address_of(location),
                depth: stack.bytes(),
                instruction,
                site,
                next: START,
                frames: frames.into(),
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
