//! The division of rows among parts, for any matrix.

use proptest::prelude::*;
use std::num::NonZeroUsize;
use warprow::generate;
use warprow::multi::{Owners, Partition, RowCuts, Work};

fn parts(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn row_ptr(lengths: &[u32]) -> Vec<u32> {
    let mut end = 0;
    let ends = lengths.iter().map(|length| {
        end += length;
        end
    });
    [0].into_iter().chain(ends).collect()
}

/// Checks that the parts have every nonzero and every row once, in order.
fn assert_divides(partition: &Partition, row_ptr: &[u32]) {
    let (mut nonzero, mut owned) = (0, 0);
    for part in partition.parts() {
        assert_eq!(part.nonzeros.start, nonzero);
        assert_eq!(part.owned.start, owned);
        (nonzero, owned) = (part.nonzeros.end, part.owned.end);
        // The rows are those of the nonzeros, and the owned ones.
        let (first, end) = (part.rows.start, part.rows.end);
        assert!(first <= part.owned.start && part.owned.end == end);
        assert!(part.owned.start - first <= 1);
        assert!(row_ptr[first] as usize <= part.nonzeros.start || part.rows.is_empty());
        assert!(part.nonzeros.end <= row_ptr[end] as usize);
        if part.owned.start > first {
            assert!((row_ptr[first] as usize) < part.nonzeros.start);
        }
    }
    assert_eq!(nonzero, row_ptr[row_ptr.len() - 1] as usize);
    assert_eq!(owned + 1, row_ptr.len());
}

fn lengths() -> impl Strategy<Value = Vec<u32>> {
    let length = prop_oneof![6 => 0_u32..12, 1 => Just(0), 1 => 200_u32..2000];
    proptest::collection::vec(length, 0..60)
}

proptest! {
    #[test]
    fn every_nonzero_and_every_row_is_in_exactly_one_part(
        lengths in lengths(),
        count in 1_usize..20,
        whole in any::<bool>(),
    ) {
        let row_ptr = row_ptr(&lengths);
        let cuts = if whole { RowCuts::Never } else { RowCuts::Allowed };
        let partition = Partition::by_work(&row_ptr, Work::Nonzeros, parts(count), cuts);
        prop_assert_eq!(partition.parts().len(), count);
        assert_divides(&partition, &row_ptr);
        if whole {
            prop_assert!(partition.parts().iter().all(|part| part.rows == part.owned));
        }
        let owners = partition.owners();
        prop_assert_eq!((owners.parts(), owners.rows()), (count, lengths.len()));
        for row in 0..lengths.len() {
            prop_assert!(owners.rows_of(owners.owner(row)).contains(&row));
        }
    }

    #[test]
    fn the_largest_part_has_at_most_five_percent_more_than_the_mean_and_one_nonzero(
        lengths in lengths(),
        count in 1_usize..20,
    ) {
        let row_ptr = row_ptr(&lengths);
        let partition = Partition::by_work(&row_ptr, Work::Nonzeros, parts(count), RowCuts::Allowed);
        let total: u64 = partition.parts().iter().map(|part| part.work).sum();
        prop_assert_eq!(total, row_ptr[lengths.len()] as u64 + lengths.len() as u64);
        for part in partition.parts() {
            let bound = 1.05 * total as f64 / count as f64 + 2.0;
            prop_assert!(part.work as f64 <= bound, "{} of {}", part.work, total);
        }
    }

    #[test]
    fn parts_of_equal_products_differ_by_at_most_the_products_of_one_nonzero(
        lengths in lengths(),
        b_lengths in proptest::collection::vec(0_u32..50, 1..40),
        count in 1_usize..9,
    ) {
        let row_ptr = row_ptr(&lengths);
        let col_idx: Vec<u32> = (0..row_ptr[lengths.len()])
            .map(|nonzero| nonzero * 7919 % b_lengths.len() as u32)
            .collect();
        let work = Work::Products { col_idx: &col_idx, b_lengths: &b_lengths };
        let partition = Partition::by_work(&row_ptr, work, parts(count), RowCuts::Allowed);
        assert_divides(&partition, &row_ptr);
        let total: u64 = partition.parts().iter().map(|part| part.work).sum();
        let wanted: u64 = col_idx.iter().map(|&k| 1 + u64::from(b_lengths[k as usize])).sum();
        prop_assert_eq!(total, wanted + lengths.len() as u64);
        for part in partition.parts() {
            prop_assert!(part.work as f64 <= 1.05 * total as f64 / count as f64 + 2.0 * 51.0);
        }
    }

    #[test]
    fn equal_owners_have_all_rows_and_differ_by_one(rows in 0_usize..100, count in 1_usize..20) {
        let owners = Owners::equal(rows, parts(count));
        let sizes: Vec<usize> = (0..count).map(|part| owners.rows_of(part).len()).collect();
        prop_assert_eq!(sizes.iter().sum::<usize>(), rows);
        prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
    }
}

#[test]
fn one_enormous_row_is_cut_into_equal_pieces() {
    let row_ptr = row_ptr(&[3, 100_000, 2]);
    let partition = Partition::by_work(&row_ptr, Work::Nonzeros, parts(8), RowCuts::Allowed);
    assert_divides(&partition, &row_ptr);
    assert!(partition.imbalance() < 1.001, "{}", partition.imbalance());
    let owned: Vec<usize> = partition
        .parts()
        .iter()
        .map(|part| part.owned.len())
        .collect();
    assert_eq!(owned, [2, 0, 0, 0, 0, 0, 0, 1]);
    let whole = Partition::by_work(&row_ptr, Work::Nonzeros, parts(8), RowCuts::Never);
    assert!(whole.imbalance() > 7.9, "{}", whole.imbalance());
}

#[test]
fn graphs_with_hubs_are_balanced_for_any_number_of_parts() {
    let skewed = generate::rmat::<f32>(20_000, 200_000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let flat = generate::rmat::<f32>(20_000, 100_000, [0.35, 0.25, 0.25, 0.15], 1).unwrap();
    for a in [skewed, flat] {
        for count in [2, 3, 4, 7, 8, 64] {
            let row_ptr = a.indptr();
            let row_ptr = row_ptr.to_proper();
            let partition =
                Partition::by_work(&row_ptr, Work::Nonzeros, parts(count), RowCuts::Allowed);
            assert!(
                partition.imbalance() <= 1.05,
                "{count}: {}",
                partition.imbalance()
            );
        }
    }
}
