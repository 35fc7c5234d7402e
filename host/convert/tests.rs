//! Matrices that are converted are the same, and those that cannot be are errors.

use super::*;
use crate::generate;

#[test]
fn indices_of_any_type_and_both_storages_become_u32() {
    let a = generate::uniform::<f32>(30, 20, 150, 1).unwrap();
    for a in [a.clone(), a.to_csc()] {
        let wide: sprs::CsMatI<f32, usize, u64> = a.to_other_types();
        assert_eq!(from_sprs(wide.view()).unwrap(), a);
        let part = wide.slice_outer(5..17);
        let converted = from_sprs(part.view()).unwrap();
        assert!(converted.indptr().is_proper());
        assert_eq!(converted.to_dense(), a.slice_outer(5..17).to_dense());
    }
    let empty = sprs::CsMat::<f64>::zero((0, 7));
    assert_eq!(from_sprs(empty.view()).unwrap().shape(), (0, 7));
}

#[test]
fn what_does_not_fit_32_bits_is_an_error() {
    let wide = sprs::CsMat::<f32>::zero((2, 1 << 32));
    let error = from_sprs(wide.view()).unwrap_err();
    assert!(
        matches!(
            error,
            ConvertError::TooLarge {
                found: 0x1_0000_0000,
                ..
            }
        ),
        "{error}"
    );
    let error = from_triplets((usize::MAX, 1), [(0, 0, 1.0_f32)], Duplicates::Sum).unwrap_err();
    assert!(matches!(error, ConvertError::TooLarge { .. }), "{error}");
}

#[test]
fn entries_outside_are_named_and_duplicates_are_what_the_caller_wants() {
    let error = from_triplets((2, 3), [(0, 0, 1.0_f32), (1, 3, 1.0)], Duplicates::Sum).unwrap_err();
    assert_eq!(
        error.to_string(),
        "entry 1 is at row 1, column 3, the matrix is 2 x 3"
    );
    let twice = [(1, 2, 1.0_f32), (0, 0, 5.0), (1, 2, 0.25)];
    let error = from_triplets((2, 3), twice, Duplicates::Refuse).unwrap_err();
    assert!(
        matches!(error, ConvertError::Duplicate { row: 1, col: 2 }),
        "{error}"
    );
    let sum = from_triplets((2, 3), twice, Duplicates::Sum).unwrap();
    assert_eq!(
        sum.to_dense(),
        ndarray::array![[5.0, 0.0, 0.0], [0.0, 0.0, 1.25]]
    );
}

#[test]
fn triplets_in_any_order_are_the_dense_sum() {
    let mut random = 1_u64;
    let mut below = |end: u64| {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((random >> 33) % end) as usize
    };
    for count in 0..80 {
        let entries: Vec<_> = (0..count)
            .map(|_| (below(7), below(9), below(16) as f64 - 8.0))
            .collect();
        let mut wanted = ndarray::Array2::<f64>::zeros((7, 9));
        for &(row, col, value) in &entries {
            wanted[[row, col]] += value;
        }
        let a = from_triplets((7, 9), entries.iter().copied(), Duplicates::Sum).unwrap();
        assert_eq!(a.to_dense(), wanted);
        let places: std::collections::BTreeSet<_> =
            entries.iter().map(|&(row, col, _)| (row, col)).collect();
        assert_eq!(a.nnz(), places.len());
    }
}

#[cfg(feature = "nalgebra-sparse")]
#[test]
fn matrices_of_nalgebra_go_there_and_back() {
    let a = generate::uniform::<f64>(30, 20, 150, 1).unwrap();
    let there = to_nalgebra(a.view()).unwrap();
    assert_eq!(
        there.get_entry(3, 4).map(|entry| entry.into_value()),
        a.get(3, 4).copied().or(Some(0.0))
    );
    assert_eq!(from_nalgebra(&there).unwrap(), a);
    assert_eq!(to_nalgebra(a.to_csc().view()).unwrap(), there);
}

#[cfg(feature = "faer")]
#[test]
fn matrices_of_faer_go_there_and_back_also_if_columns_are_in_no_order() {
    let a = generate::uniform::<f64>(30, 20, 150, 1).unwrap();
    let there = to_faer(a.view()).unwrap();
    assert_eq!(from_faer(there.as_ref()).unwrap(), a);
    assert_eq!(
        from_faer(to_faer(a.to_csc().view()).unwrap().as_ref()).unwrap(),
        a
    );
    let structure = ::faer::sparse::SymbolicSparseRowMat::<usize>::new_unsorted_checked(
        2,
        4,
        vec![0, 3, 6],
        Some(vec![2, 1]),
        vec![3, 1, 0, 2, 0, 0],
    );
    let unsorted = ::faer::sparse::SparseRowMat::new(structure, vec![1.0, 2.0, 9.0, 3.0, 9.0, 9.0]);
    let a = from_faer(unsorted.as_ref()).unwrap();
    assert_eq!(
        a.to_dense(),
        ndarray::array![[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 3.0, 0.0]]
    );
}
