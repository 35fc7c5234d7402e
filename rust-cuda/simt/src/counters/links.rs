//! A tree of return addresses: each path from a root is a chain of calls.

/// What follows a return address after the end of a chain.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    address: usize,
    end: u32,
    /// The end of the chain with this address.
    pub next: u32,
    /// Bytes on the stack from this return address to the next one.
    pub frame: u32,
}

/// A hash table of all links. The free places have the address 0.
pub(crate) struct Links {
    table: Vec<Link>,
    used: usize,
    /// Ends of chains so far.
    ends: u32,
}

const FREE: Link = Link {
    address: 0,
    end: 0,
    next: 0,
    frame: 0,
};

impl Links {
    /// A tree of `roots` empty chains, whose ends are 0, 1, and so on.
    pub fn new(roots: u32) -> Self {
        Self {
            table: vec![FREE; 1024],
            used: 0,
            ends: roots,
        }
    }

    /// The number of ends of chains.
    pub fn ends(&self) -> u32 {
        self.ends
    }

    /// The place of a link, or a free place for it.
    #[inline(always)]
    fn place(&self, end: u32, address: usize) -> usize {
        let key = address as u64 ^ u64::from(end) << 40;
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let link = &self.table[place];
            if link.address == address && link.end == end || link.address == 0 {
                return place;
            }
            place = (place + 1) & mask;
        }
    }

    /// The link from the end of a chain by a return address.
    #[inline(always)]
    pub fn get(&self, end: u32, address: usize) -> Option<Link> {
        let link = self.table[self.place(end, address)];
        (link.address != 0).then_some(link)
    }

    /// Adds a link, or changes its frame. Returns the new end of the chain.
    pub fn insert(&mut self, end: u32, address: usize, frame: u32) -> u32 {
        let place = self.place(end, address);
        if self.table[place].address != 0 {
            self.table[place].frame = frame;
            return self.table[place].next;
        }
        let next = self.ends;
        self.table[place] = Link {
            address,
            end,
            next,
            frame,
        };
        self.ends += 1;
        self.used += 1;
        if 2 * self.used > self.table.len() {
            self.grow();
        }
        next
    }

    fn grow(&mut self) {
        let double = vec![FREE; 2 * self.table.len()];
        for link in std::mem::replace(&mut self.table, double) {
            if link.address != 0 {
                let place = self.place(link.end, link.address);
                self.table[place] = link;
            }
        }
    }
}
