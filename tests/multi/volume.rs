//! How much travels between parts: the order of the rows decides.

use std::num::NonZeroUsize;
use warprow::device::EmulatorOptions;
use warprow::generate::{self, Communities};
use warprow::multi::{Distribution, Division, DivisionOptions, Layout, OperandRows};
use warprow::{CsrMatrix, Device};

const PARTS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

fn shuffled_communities() -> CsrMatrix<f32> {
    let communities = Communities {
        sizes: 40..=160,
        inside: 0.85,
        shuffled: true,
    };
    generate::communities(6000, 60_000, &communities, 1).unwrap()
}

fn plan(a: &CsrMatrix<f32>, options: DivisionOptions) -> Layout {
    let device = Device::emulator(EmulatorOptions::default());
    let division = Division::plan(&device, a.view(), PARTS, options, None);
    division.unwrap().into_layout()
}

#[test]
fn on_communities_in_the_planned_order_parts_receive_a_fifth_of_what_replication_sends() {
    let division = plan(&shuffled_communities(), DivisionOptions::default());
    assert!(division.order().original().is_some(), "clusters pay");
    let volume = division.volume();
    println!(
        "received {} rows, replication sends {}",
        volume.received, volume.replicated
    );
    assert!(volume.fraction() <= 0.2, "{volume:?}");
    assert!(division.partition().imbalance() <= 1.05);
}

#[test]
fn rows_dealt_out_in_turn_receive_far_more() {
    let options = DivisionOptions::new().distribution(Distribution::Cyclic);
    let a = shuffled_communities();
    let cyclic = plan(&a, options).volume();
    assert!(cyclic.fraction() > 0.5, "{cyclic:?}");
    let replicated = options.operand(OperandRows::Replicated);
    assert_eq!(plan(&a, replicated).volume().fraction(), 1.0);
}

#[test]
fn a_graph_without_communities_keeps_its_order() {
    let a = generate::uniform::<f32>(1500, 1500, 9000, 1).unwrap();
    let division = plan(&a, DivisionOptions::default());
    assert_eq!(division.order().original(), None);
}
