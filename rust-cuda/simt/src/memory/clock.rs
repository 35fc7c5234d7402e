//! Clocks: sets of accesses that happened before some point, of any blocks of a launch.
//!
//! A clock is a persistent tree with a leaf for each block (Okasaki and Gill, "Fast Mergeable Integer Maps", 1998).
//! Clocks share the parts in which they agree. So a block that adds itself to the clock of many others copies only the
//! path to its own leaf.

use std::sync::Arc;

/// A set of accesses. The empty clock allocates nothing, and a clone shares the tree.
#[derive(Clone, Default)]
pub(crate) struct Clock(Option<Arc<Node>>);

struct Node {
    /// The bits that all blocks of the node have in common; the others are zero.
    prefix: u32,
    /// The bits in which its blocks may differ: the lowest ones, none in a leaf.
    differing: u32,
    content: Content,
}

enum Content {
    Leaf(BlockClock),
    /// The blocks in which the highest differing bit is 0, and those in which it is 1.
    Branch([Arc<Node>; 2]),
}

/// The accesses of one block that a clock contains.
pub(crate) struct BlockClock {
    /// All accesses of the block before this time.
    before: u32,
    /// Threads, in ascending order, and the last time of their accesses.
    threads: Box<[(u16, u32)]>,
}

impl Clock {
    /// The clock of accesses of one block.
    pub fn of_block(block: u32, accesses: BlockClock) -> Self {
        Self(Some(Arc::new(Node {
            prefix: block,
            differing: 0,
            content: Content::Leaf(accesses),
        })))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds the accesses of another clock.
    pub fn join(&mut self, other: &Self) {
        self.0 = match (&self.0, &other.0) {
            (Some(own), Some(other)) => Some(join(own, other)),
            (own, other) => own.as_ref().or(other.as_ref()).cloned(),
        };
    }

    /// Whether it contains the accesses of a thread at `time`.
    pub fn contains(&self, block: u32, thread: u32, time: u32) -> bool {
        let mut node = self.0.as_deref();
        while let Some(inner) = node
            && (inner.prefix ^ block) & !inner.differing == 0
        {
            match &inner.content {
                Content::Leaf(accesses) => return accesses.contains(thread as u16, time),
                Content::Branch(sides) => node = Some(&sides[inner.side(block)]),
            }
        }
        false
    }
}

impl Node {
    /// The side of a branch on which a block lies.
    fn side(&self, block: u32) -> usize {
        let highest = self.differing - (self.differing >> 1);
        usize::from(block & highest != 0)
    }
}

/// The union of two trees. It returns one of them if that contains the other.
fn join(a: &Arc<Node>, b: &Arc<Node>) -> Arc<Node> {
    if Arc::ptr_eq(a, b) {
        return Arc::clone(a);
    }
    if a.differing < b.differing {
        return join(b, a);
    }
    let apart = a.prefix ^ b.prefix;
    if apart & !a.differing != 0 {
        let differing = u32::MAX >> apart.leading_zeros();
        let parent = |sides| Node {
            prefix: a.prefix & !differing,
            differing,
            content: Content::Branch(sides),
        };
        let [first, second] = if a.prefix < b.prefix { [a, b] } else { [b, a] };
        return Arc::new(parent([Arc::clone(first), Arc::clone(second)]));
    }
    match (&a.content, &b.content) {
        (Content::Leaf(of_a), Content::Leaf(of_b)) => {
            if of_a.contains_all(of_b) {
                Arc::clone(a)
            } else if of_b.contains_all(of_a) {
                Arc::clone(b)
            } else {
                a.with(Content::Leaf(of_a.join(of_b)))
            }
        }
        (Content::Branch(of_a), Content::Branch(of_b)) if a.differing == b.differing => {
            let sides = [0, 1].map(|side| join(&of_a[side], &of_b[side]));
            let same =
                |of: &[Arc<Node>; 2]| (0..2).all(|side| Arc::ptr_eq(&sides[side], &of[side]));
            if same(of_a) {
                Arc::clone(a)
            } else if same(of_b) {
                Arc::clone(b)
            } else {
                a.with(Content::Branch(sides))
            }
        }
        (Content::Branch(of_a), _) => {
            let side = a.side(b.prefix);
            let joined = join(&of_a[side], b);
            if Arc::ptr_eq(&joined, &of_a[side]) {
                return Arc::clone(a);
            }
            let mut sides = of_a.clone();
            sides[side] = joined;
            a.with(Content::Branch(sides))
        }
        (Content::Leaf(_), Content::Branch(_)) => unreachable!("blocks of a leaf do not differ"),
    }
}

impl Node {
    /// A node of the same blocks.
    fn with(&self, content: Content) -> Arc<Self> {
        Arc::new(Self { content, ..*self })
    }
}

impl BlockClock {
    /// All accesses before a time, and those of some threads up to other times, which may be earlier ones.
    pub fn new(before: u32, mut threads: Vec<(u16, u32)>) -> Self {
        threads.retain(|&(_, until)| until >= before);
        threads.sort_unstable();
        // Of equal threads, the last one has the latest time.
        threads.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                *kept = *later;
            }
            same
        });
        Self {
            before,
            threads: threads.into(),
        }
    }

    fn contains(&self, thread: u16, time: u32) -> bool {
        time < self.before
            || (self
                .threads
                .binary_search_by_key(&thread, |&(thread, _)| thread))
            .is_ok_and(|found| time <= self.threads[found].1)
    }

    fn contains_all(&self, other: &Self) -> bool {
        let mut threads = other.threads.iter();
        self.before >= other.before && threads.all(|&(thread, until)| self.contains(thread, until))
    }

    fn join(&self, other: &Self) -> Self {
        let threads = [&*self.threads, &*other.threads].concat();
        Self::new(self.before.max(other.before), threads)
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockClock, Clock, Node};
    use std::sync::Arc;

    fn of(block: u32, before: u32, threads: &[(u16, u32)]) -> Clock {
        Clock::of_block(block, BlockClock::new(before, threads.to_vec()))
    }

    fn union<'a>(clocks: impl IntoIterator<Item = &'a Clock>) -> Clock {
        let mut joined = Clock::default();
        clocks.into_iter().for_each(|clock| joined.join(clock));
        joined
    }

    #[test]
    fn a_union_contains_what_its_parts_contain_and_nothing_else() {
        let blocks = [0, 1, 2, 3, 7, 8, 1 << 20, 1 << 31, u32::MAX, u32::MAX - 1];
        let parts = blocks.map(|block| of(block, 5, &[(3, 9), (1, 7), (2, 4)]));
        for joined in [union(&parts), union(parts.iter().rev())] {
            for block in blocks {
                assert!((0..32).all(|thread| joined.contains(block, thread, 4)));
                assert!(joined.contains(block, 3, 9) && joined.contains(block, 1, 7));
                assert!(!joined.contains(block, 3, 10) && !joined.contains(block, 2, 5));
            }
            assert!(
                [4, 9, 1 << 30, u32::MAX - 2]
                    .iter()
                    .all(|&block| !joined.contains(block, 0, 0))
            );
        }
    }

    #[test]
    fn clocks_of_one_block_join_thread_by_thread() {
        let joined = union(&[of(6, 2, &[(0, 8), (4, 3)]), of(6, 4, &[(0, 6), (9, 5)])]);
        for (thread, last) in [(0, 8), (4, 3), (9, 5), (5, 3)] {
            assert!(joined.contains(6, thread, last) && !joined.contains(6, thread, last + 1));
        }
    }

    #[test]
    fn a_union_that_adds_nothing_shares_the_tree() {
        let most = union(&[0, 1, 2, 3, 500].map(|block| of(block, 5, &[(1, 6)])));
        let mut again = most.clone();
        again.join(&of(2, 4, &[]));
        again.join(&union(&[of(500, 5, &[(1, 6)]), of(3, 1, &[])]));
        let root = |clock: &Clock| clock.0.as_ref().map(Arc::<Node>::as_ptr);
        assert_eq!(root(&again), root(&most));
    }
}
