//! The cases: graphs of the sizes of well-known ones, and how their nonzeros are distributed.

use sprs::CsMatI;
use warprow::Scalar;
use warprow::generate::{self, Communities, GenerateError};

/// The size of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Its name.
    pub name: &'static str,
    /// Rows and columns.
    pub rows: u32,
    /// Nonzeros.
    pub nonzeros: u32,
}

const fn graph(name: &'static str, rows: u32, nonzeros: u32) -> Graph {
    Graph {
        name,
        rows,
        nonzeros,
    }
}

/// The graph for the emulator, which is no data set's.
pub const EMULATED_GRAPH: &str = "small";

/// The graphs, with the vertices and edges of the Open Graph Benchmark and of the usual data sets of graph networks.
pub const GRAPHS: &[Graph] = &[
    graph(EMULATED_GRAPH, 2_003, 20_011),
    graph("arxiv", 169_343, 1_166_243),
    graph("collab", 235_868, 2_358_104),
    graph("citation", 2_927_963, 30_387_995),
    graph("ddi", 4_267, 2_135_822),
    graph("protein", 132_534, 79_122_504),
    graph("ppa", 576_289, 42_463_862),
    graph("reddit", 232_965, 114_615_891),
    graph("products", 2_449_029, 123_718_280),
    graph("youtube", 1_138_499, 5_980_886),
    graph("amazon", 1_569_960, 264_339_468),
    graph("yelp", 716_847, 13_954_819),
    graph("wikikg2", 2_500_604, 16_109_182),
    graph("am", 881_680, 5_668_682),
    graph("cora", 2_708, 10_556),
    graph("pubmed", 19_717, 88_648),
    graph("photo", 7_650, 238_162),
    graph("computers", 13_752, 491_722),
    graph("physics", 34_493, 495_924),
    graph("flickr", 89_250, 899_756),
];

/// What runs on a GPU if nothing is asked for: short and long rows, a dense graph, and one far over the L2 cache.
pub const DEFAULT_GRAPHS: &[&str] = &["arxiv", "collab", "ddi", "ppa", "youtube"];

impl Graph {
    /// The graph of that name.
    pub fn named(name: &str) -> Option<Self> {
        GRAPHS.iter().copied().find(|graph| graph.name == name)
    }
}

/// How the nonzeros of a graph are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// R-MAT with the probabilities .57, .19, .19, .05: a few very long rows.
    Rmat57,
    /// R-MAT with .35, .22, .22, .21: a mild skew.
    Rmat35,
    /// Each entry as likely as the other.
    Uniform,
    /// Planted communities, in the order of which the nodes are numbered.
    Communities,
    /// The same, with nodes numbered at random.
    CommunitiesShuffled,
    /// Full rows around the diagonal, of the graph's mean length.
    Banded,
}

/// The fraction of the nonzeros inside a community.
const INSIDE: f64 = 0.8;

/// The least size of a community of a sparse graph.
const LEAST_COMMUNITY: u32 = 64;

/// A community has at least so many times the nodes that a row has nonzeros on average.
const LEAST_COMMUNITY_IN_ROWS: u32 = 2;

/// The largest community in smallest ones.
const LARGEST_COMMUNITY: u32 = 32;

/// Communities of a graph, at least: the nonzeros that go from one to another need room.
const LEAST_COMMUNITIES: u32 = 3;

/// The communities of a graph of that size.
fn communities(graph: Graph, shuffled: bool) -> Communities {
    let mean_row = graph.nonzeros.div_ceil(graph.rows.max(1));
    let least = LEAST_COMMUNITY.max(LEAST_COMMUNITY_IN_ROWS.saturating_mul(mean_row));
    let most = least
        .saturating_mul(LARGEST_COMMUNITY)
        .min(graph.rows / LEAST_COMMUNITIES);
    Communities {
        sizes: least..=most.max(least),
        inside: INSIDE,
        shuffled,
    }
}

/// The nonzeros of a row of a band below and above the diagonal.
fn band(graph: Graph) -> (u32, u32) {
    let beside = (graph.nonzeros / graph.rows.max(1)).saturating_sub(1);
    (beside / 2, beside - beside / 2)
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Rmat57,
        Self::Rmat35,
        Self::Uniform,
        Self::Communities,
        Self::CommunitiesShuffled,
        Self::Banded,
    ];

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rmat57 => "rmat57",
            Self::Rmat35 => "rmat35",
            Self::Uniform => "uniform",
            Self::Communities => "communities",
            Self::CommunitiesShuffled => "communities_shuffled",
            Self::Banded => "banded",
        }
    }

    /// The nonzeros of the graph of that size.
    pub fn nonzeros(self, graph: Graph) -> u32 {
        match self {
            Self::Banded => {
                let (below, above) = band(graph);
                // The first rows lack columns below the band's middle, the last ones above it.
                let missing = |width: u32| width * (width + 1) / 2;
                graph.rows * (below + 1 + above) - missing(below) - missing(above)
            }
            _ => graph.nonzeros,
        }
    }

    /// The graph; the same for the same seed.
    ///
    /// # Errors
    ///
    /// A graph too dense for its kind.
    pub fn generate<T: Scalar>(
        self,
        graph: Graph,
        seed: u64,
    ) -> Result<CsMatI<T, u32, u32>, GenerateError> {
        let Graph { rows, nonzeros, .. } = graph;
        match self {
            Self::Rmat57 => generate::rmat(rows, nonzeros, [0.57, 0.19, 0.19, 0.05], seed),
            Self::Rmat35 => generate::rmat(rows, nonzeros, [0.35, 0.22, 0.22, 0.21], seed),
            Self::Uniform => generate::uniform(rows, rows, nonzeros, seed),
            Self::Communities => {
                generate::communities(rows, nonzeros, &communities(graph, false), seed)
            }
            Self::CommunitiesShuffled => {
                generate::communities(rows, nonzeros, &communities(graph, true), seed)
            }
            Self::Banded => {
                let (below, above) = band(graph);
                generate::banded(rows, rows, below, above, seed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_unique_and_every_default_is_in_the_table() {
        for (index, graph) in GRAPHS.iter().enumerate() {
            assert_eq!(Graph::named(graph.name), Some(GRAPHS[index]));
        }
        assert!(
            DEFAULT_GRAPHS
                .iter()
                .all(|name| Graph::named(name).is_some())
        );
    }

    #[test]
    fn the_name_of_a_kind_selects_it() {
        assert!(
            Kind::ALL
                .iter()
                .all(|kind| Kind::named(kind.name()) == Some(*kind))
        );
        assert_eq!(Kind::named("all"), None);
    }

    #[test]
    fn communities_have_room_for_the_rows_of_every_graph() {
        for &graph in GRAPHS {
            let Communities { sizes, inside, .. } = communities(graph, false);
            let mean_row = f64::from(graph.nonzeros) / f64::from(graph.rows);
            assert!(
                inside * mean_row <= 0.5 * f64::from(*sizes.start()),
                "{}",
                graph.name
            );
            assert!(
                sizes.end().saturating_mul(LEAST_COMMUNITIES) <= graph.rows,
                "{}",
                graph.name
            );
        }
    }

    #[test]
    fn communities_of_the_densest_graph_are_generated() {
        let graph = Graph::named("ddi").unwrap();
        let a = Kind::CommunitiesShuffled.generate::<f32>(graph, 1).unwrap();
        assert_eq!(a.nnz(), 2_135_822);
    }

    #[test]
    fn every_kind_generates_the_size_in_the_table() {
        let graph = Graph::named("small").unwrap();
        for kind in Kind::ALL {
            let a = kind.generate::<f32>(graph, 1).unwrap();
            assert_eq!((a.rows(), a.cols()), (2_003, 2_003));
            assert_eq!(a.nnz(), kind.nonzeros(graph) as usize);
        }
    }
}
