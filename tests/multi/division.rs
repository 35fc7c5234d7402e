//! Halos, and the matrices of parts, for any matrix.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use support::matrix_of_rows;
use warprow::CsrMatrix;
use warprow::multi::{Division, DivisionOptions, Halo, OperandRows, Order, Owners, RowCuts};

fn any_matrix() -> impl Strategy<Value = CsrMatrix<f32>> {
    let rectangular = (0_usize..30, 1_u32..40);
    let square = (1_u32..30).prop_map(|size| (size as usize, size));
    prop_oneof![rectangular, square].prop_flat_map(|(rows, cols)| {
        let row = proptest::collection::btree_set(0..cols, 0..=cols as usize);
        proptest::collection::vec(row, rows).prop_map(move |rows| matrix_of_rows(&rows, cols))
    })
}

fn divide(
    a: &CsrMatrix<f32>,
    order: Order,
    parts: usize,
    options: DivisionOptions,
) -> Division<f32> {
    Division::in_order(
        order,
        a.view(),
        NonZeroUsize::new(parts).unwrap(),
        options,
        None,
    )
}

/// Checks that the parts together are the matrix, and that each halo has exactly the rows that are used.
fn assert_is_divided(a: &CsrMatrix<f32>, division: &Division<f32>, operand: OperandRows) {
    let mut found = Vec::new();
    let layout = division.layout();
    for (number, (part, halo)) in
        (layout.partition().parts().iter().zip(layout.halos())).enumerate()
    {
        let local = division.matrix_of(number);
        assert_eq!(
            (local.rows(), local.cols()),
            (part.rows.len(), halo.local_len())
        );
        let global: Vec<u32> = halo.global().collect();
        assert!(
            global.windows(2).all(|pair| pair[0] < pair[1]),
            "the order stays"
        );
        for (place, &row) in global.iter().enumerate() {
            assert_eq!(halo.local(row), Some(place));
        }
        let own = layout.owners().rows_of(number);
        assert!(
            global[halo.local_own()]
                .iter()
                .map(|&row| row as usize)
                .eq(own.clone())
        );
        let mut used = BTreeSet::new();
        for (&value, (row, column)) in local.iter() {
            let (row, column) = (part.rows.start + row as usize, global[column as usize]);
            used.insert(column);
            let row = layout.order().original_row(row);
            found.push((row, layout.original_x_row(column as usize), value));
        }
        used.retain(|&row| !own.contains(&(row as usize)));
        if operand == OperandRows::Needed {
            assert!(halo.rows().iter().eq(&used), "not one row more or less");
        }
        let mut received = Vec::new();
        for sender in 0..layout.owners().parts() {
            let rows = halo.rows_from(sender);
            assert!(
                rows.iter()
                    .all(|&row| layout.owners().owner(row as usize) == sender)
            );
            assert_eq!(&global[halo.local_rows_from(sender)], rows);
            received.extend_from_slice(rows);
        }
        assert_eq!(received, halo.rows());
    }
    found.sort_by_key(|&(row, column, _)| (row, column));
    let wanted: Vec<(usize, usize, f32)> = a
        .iter()
        .map(|(&value, (row, column))| (row as usize, column as usize, value))
        .collect();
    assert_eq!(found, wanted);
}

proptest! {
    #[test]
    fn any_matrix_is_divided_without_loss_and_halos_are_exact(
        a in any_matrix(),
        parts in 1_usize..12,
        whole in any::<bool>(),
        replicated in any::<bool>(),
        shift in 0_usize..30,
    ) {
        let operand = if replicated { OperandRows::Replicated } else { OperandRows::Needed };
        let cuts = if whole { RowCuts::Never } else { RowCuts::Allowed };
        let options = DivisionOptions::new().operand(operand).cuts(cuts);
        assert_is_divided(&a, &divide(&a, Order::given(), parts, options), operand);
        let mut rows: Vec<u32> = (0..a.rows() as u32).rev().collect();
        let shift = shift % rows.len().max(1);
        rows.rotate_left(shift);
        let order = Order::of_rows(rows).unwrap();
        assert_is_divided(&a, &divide(&a, order, parts, options), operand);
    }
}

#[test]
fn a_block_diagonal_matrix_has_no_halo_and_its_shift_has_nothing_else() {
    let size = 64;
    let at = |column: fn(u32) -> u32| {
        let rows: Vec<BTreeSet<u32>> = (0..size).map(|row| [column(row)].into()).collect();
        let division = divide(
            &matrix_of_rows(&rows, size),
            Order::given(),
            4,
            DivisionOptions::default(),
        );
        (
            division.layout().volume(),
            division.layout().halos().to_vec(),
        )
    };
    let (volume, halos) = at(|row| row);
    assert_eq!((volume.received, volume.replicated), (0, 3 * 64));
    assert!(halos.iter().all(|halo| halo.rows().is_empty()));
    let (volume, halos) = at(|row| (row + 16) % 64);
    assert_eq!(volume.received, 64);
    for (number, halo) in halos.iter().enumerate() {
        assert_eq!(
            halo.rows_from((number + 1) % 4).len(),
            16,
            "all rows of the next part"
        );
    }
}

#[test]
fn matrices_without_rows_columns_or_nonzeros_are_divided() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (7, 7), (3, 9)] {
        let a = CsrMatrix::<f32>::zero((rows, cols));
        for parts in [1, 2, 5, 11] {
            let division = divide(&a, Order::given(), parts, DivisionOptions::default());
            assert_is_divided(&a, &division, OperandRows::Needed);
            assert_eq!(division.layout().volume().received, 0);
        }
    }
}

#[test]
fn an_order_that_is_no_permutation_is_refused() {
    for rows in [vec![0, 0], vec![1, 2], vec![3]] {
        let error = Order::of_rows(rows).unwrap_err().to_string();
        assert!(error.contains("twice or never"), "{error}");
    }
}

#[test]
fn a_cyclic_order_gives_each_part_the_rows_of_its_number() {
    let (order, counts) = Order::cyclic(10, 4);
    assert_eq!(counts, [3, 3, 2, 2]);
    assert_eq!(order.original().unwrap(), [0, 4, 8, 1, 5, 9, 2, 6, 3, 7]);
    let (_, counts) = Order::cyclic(2, 3);
    assert_eq!(counts, [1, 1, 0]);
}

#[test]
fn a_halo_of_all_rows_is_that_of_a_broadcast() {
    let owners = Owners::equal(10, NonZeroUsize::new(3).unwrap());
    let halo = Halo::replicated(1, &owners);
    assert_eq!(halo.rows(), [0, 1, 2, 3, 7, 8, 9]);
    assert_eq!((halo.local_own(), halo.local_len()), (4..7, 10));
}
