//! A tree of return addresses: each path from a root is a chain of calls.

/// What follows the end of a chain.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    address: usize,
    /// The end of the longer chain.
    pub next: u32,
    /// Bytes on the stack from this return address to the next one.
    pub frame: u32,
}

/// A link, and the end of the chain that it follows.
#[derive(Clone, Copy)]
struct Entry {
    end: u32,
    link: Link,
}

/// The links of the tree. No return address is 0.
pub(crate) struct Links {
    /// The first link after the end of each chain; most have no other.
    first: Vec<Link>,
    /// A hash table of the other links.
    others: Vec<Entry>,
    used: usize,
}

const NO_LINK: Link = Link {
    address: 0,
    next: 0,
    frame: 0,
};
const FREE: Entry = Entry {
    end: 0,
    link: NO_LINK,
};

impl Links {
    /// A tree of `roots` empty chains, whose ends are 0, 1, and so on.
    pub fn new(roots: u32) -> Self {
        Self {
            first: vec![NO_LINK; roots as usize],
            others: vec![FREE; 256],
            used: 0,
        }
    }

    /// The number of ends of chains.
    pub fn ends(&self) -> usize {
        self.first.len()
    }

    /// The place in the hash table of a link, or a free one for it.
    #[inline(always)]
    fn place(&self, end: u32, address: usize) -> usize {
        let key = address as u64 ^ u64::from(end) << 40;
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mask = self.others.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let Entry { end: its, link } = self.others[place];
            if link.address == address && its == end || link.address == 0 {
                return place;
            }
            place = (place + 1) & mask;
        }
    }

    /// The link from the end of a chain by a return address.
    #[inline(always)]
    pub fn get(&self, end: u32, address: usize) -> Option<Link> {
        let first = self.first[end as usize];
        if first.address == address {
            return Some(first);
        }
        let link = self.others[self.place(end, address)].link;
        (link.address != 0).then_some(link)
    }

    /// Adds a link, or changes its frame. Returns the end of the longer chain.
    pub fn insert(&mut self, end: u32, address: usize, frame: u32) -> u32 {
        let next = self.first.len() as u32;
        let new = Link {
            address,
            next,
            frame,
        };
        let link = match self.first[end as usize].address {
            0 => &mut self.first[end as usize],
            first if first == address => &mut self.first[end as usize],
            _ => {
                let place = self.place(end, address);
                let entry = &mut self.others[place];
                self.used += usize::from(entry.link.address == 0);
                entry.end = end;
                &mut entry.link
            }
        };
        if link.address == address {
            link.frame = frame;
            return link.next;
        }
        *link = new;
        self.first.push(NO_LINK);
        if 2 * self.used > self.others.len() {
            self.grow();
        }
        next
    }

    fn grow(&mut self) {
        let double = vec![FREE; 2 * self.others.len()];
        for entry in std::mem::replace(&mut self.others, double) {
            if entry.link.address != 0 {
                let place = self.place(entry.end, entry.link.address);
                self.others[place] = entry;
            }
        }
    }
}
