//! Matrices that safe code has broken: an upload refuses them and names the first faulty row.

use sprs::{CsMatBase, CsMatI, CsMatViewI};
use std::cell::Cell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use support::devices;
use warprow::operand::OperandError;
use warprow::{
    CsrMatrix, Device, DeviceCsr, Error, Gcn, GcnLayer, GcnOptions, Spmm, SpmmOptions, generate,
    spgemm,
};

/// Changes the lists of a matrix. sprs checks them afterwards and panics, and the matrix remains as it is.
fn broken(a: &CsrMatrix<f32>, change: impl Fn(&mut [u32], &mut [u32])) -> CsrMatrix<f32> {
    let mut a = a.clone();
    let modify = AssertUnwindSafe(|| a.modify(|indptr, indices, _| change(indptr, indices)));
    assert!(catch_unwind(modify).is_err(), "it is not broken");
    a
}

/// 700 rows of at least two nonzeros, some more than a block has threads, and empty rows at both ends.
fn matrix() -> CsrMatrix<f32> {
    let row = |row: u32| match row {
        0 | 1 | 350 | 699 => 0,
        40 | 500 => 2500,
        _ => 2 + row % 5,
    };
    let mut indptr = vec![0];
    let mut indices = Vec::new();
    for line in 0..700 {
        indices.extend((0..row(line)).map(|k| k + line % 3));
        indptr.push(indices.len() as u32);
    }
    let values = vec![1.0; indices.len()];
    CsMatI::new((700, 3000), indptr, indices, values)
}

/// A change of the columns of all nonzeros.
type Change<'a> = &'a dyn Fn(&mut [u32]);

/// The line that an upload names, and all of its message.
fn refused(device: &Device, a: CsMatViewI<'_, f32, u32, u32>) -> (&'static str, usize, String) {
    let error = DeviceCsr::upload(device, a).unwrap_err();
    let message = error.to_string();
    match error {
        OperandError::Structure { line, number, .. } => (line, number, message),
        error => panic!("{error}"),
    }
}

#[test]
fn columns_out_of_order_or_out_of_the_matrix_are_refused_with_their_row() {
    let a = matrix();
    for device in devices() {
        for row in [2, 39, 40, 41, 351, 500, 698] {
            let (start, end) = (
                a.indptr().outer_inds_sz(row).start,
                a.indptr().outer_inds_sz(row).end,
            );
            let last = end - 1;
            let (first, before) = (a.indices()[start], a.indices()[last - 1]);
            let outside = |index: u32| format!("{index} of nonzero {last} is not below 3000");
            let after = |index: u32, nonzero: usize, before: u32| {
                format!("{index} of nonzero {nonzero} does not ascend: {before} comes before it")
            };
            let changes: [(Change<'_>, String); 5] = [
                (&|columns| columns[last] = 3000, outside(3000)),
                (&|columns| columns[last] = u32::MAX, outside(u32::MAX)),
                (
                    &|columns| columns.swap(start, start + 1),
                    after(first, start + 1, first + 1),
                ),
                (
                    &|columns| columns[last] = columns[last - 1],
                    after(before, last, before),
                ),
                // A later row is faulty too.
                (
                    &|columns| {
                        columns[last] = 3000;
                        *columns.last_mut().unwrap() = 3000;
                    },
                    outside(3000),
                ),
            ];
            for (number, (change, reason)) in changes.iter().enumerate() {
                let a = broken(&a, |_, columns| change(columns));
                let (line, found, message) = refused(&device, a.view());
                assert_eq!((line, found), ("row", row), "change {number}: {message}");
                let wanted = format!("no sparse matrix: row {row}: column {reason}");
                assert_eq!(message, wanted, "change {number}");
                let by_columns = a.transpose_view();
                let (line, found, message) = refused(&device, by_columns);
                assert_eq!((line, found), ("column", row), "change {number}: {message}");
                let wanted = format!("no sparse matrix: column {row}: row {reason}");
                assert_eq!(message, wanted, "change {number}");
            }
        }
    }
}

#[test]
fn a_fault_at_any_nonzero_is_found_whatever_their_number() {
    for device in devices() {
        for nonzeros in 1..=9 {
            // Row 0 is empty, the others have three nonzeros, or fewer in the last row.
            let pointers = [0]
                .into_iter()
                .chain((0..=nonzeros).step_by(3))
                .chain([nonzeros]);
            let indptr: Vec<u32> = pointers.collect();
            let columns: Vec<u32> = (0..nonzeros).map(|k| 2 * (k % 3)).collect();
            let rows = indptr.len() - 1;
            let values = vec![1.0; nonzeros as usize];
            let a: CsrMatrix<f32> = CsMatI::new((rows, 5), indptr, columns, values);
            assert!(DeviceCsr::upload(&device, a.view()).is_ok());
            for k in 0..nonzeros as usize {
                let row = 1 + k / 3;
                let outside = broken(&a, |_, columns| columns[k] = 5);
                assert_eq!(refused(&device, outside.view()).1, row);
                if k % 3 > 0 {
                    let equal = broken(&a, |_, columns| columns[k] = columns[k - 1]);
                    assert_eq!(refused(&device, equal.view()).1, row);
                }
            }
        }
    }
}

#[test]
fn rows_that_end_before_they_start_are_refused_with_their_row() {
    let a = matrix();
    for device in devices() {
        let a_late_start = broken(&a, |indptr, _| indptr[0] = u32::MAX);
        assert_eq!(refused(&device, a_late_start.view()).1, 0);
        for row in [1, 40, 698] {
            let a = broken(&a, |indptr, _| indptr[row] = indptr[row + 1] + 1);
            let (line, found, message) = refused(&device, a.view());
            assert_eq!((line, found), ("row", row), "{message}");
            let a = broken(&a, |indptr, _| indptr[row] = u32::MAX);
            assert_eq!(refused(&device, a.view()).1, row);
        }
    }
}

#[test]
fn row_pointers_that_do_not_span_all_nonzeros_are_refused() {
    let a = matrix();
    let nonzeros = a.nnz() as u32;
    for device in devices() {
        for (place, pointer) in [(0, 1), (700, nonzeros + 1), (700, u32::MAX)] {
            let a = broken(&a, |indptr, _| {
                // The first two rows are empty.
                let end = if place == 0 { 3 } else { 701 };
                indptr[place..end].fill(pointer);
            });
            let error = DeviceCsr::upload(&device, a.view()).unwrap_err();
            assert!(matches!(error, OperandError::Length { .. }), "{error}");
        }
    }
}

/// A list that gives another slice once it is told to.
struct Fickle {
    lists: [Vec<u32>; 2],
    is_other: Rc<Cell<bool>>,
}

impl Deref for Fickle {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.lists[usize::from(self.is_other.get())]
    }
}

#[test]
fn a_storage_that_gives_another_slice_later_is_refused() {
    let lists = [vec![0, 2, 3], vec![4, 7, 1]];
    let others: [[&[u32]; 2]; 6] = [
        [&[0, 2, 30], &lists[1]],
        [&[0, 3], &lists[1]],
        [&[0, 2, 3, 3], &lists[1]],
        [&[0, 2, 3], &[4, 7]],
        [&[0, 2, 3], &[4, 7, 1, 2]],
        [&[0, 2, 3], &[4, 8, 1]],
    ];
    for device in devices() {
        for [indptr, indices] in others {
            let is_other = Rc::new(Cell::new(false));
            let fickle = |first: &[u32], other: &[u32]| Fickle {
                lists: [first.to_vec(), other.to_vec()],
                is_other: Rc::clone(&is_other),
            };
            let a = CsMatBase::new(
                (2, 8),
                fickle(&lists[0], indptr),
                fickle(&lists[1], indices),
                vec![1.0_f32; 3],
            );
            assert!(DeviceCsr::upload(&device, a.view()).is_ok());
            is_other.set(true);
            let error = DeviceCsr::upload(&device, a.view()).unwrap_err();
            let is_refused = matches!(
                error,
                OperandError::Length { .. } | OperandError::Structure { .. }
            );
            assert!(is_refused, "{error}");
            let error = spgemm::spgemm(&device, a.view(), a.view(), Default::default());
            assert!(error.is_err());
        }
    }
}

#[test]
fn every_operation_refuses_a_broken_matrix_and_none_panics() {
    let square = generate::uniform::<f32>(60, 60, 500, 1).unwrap();
    let faulty = broken(&square, |_, columns| columns[499] = 60);
    let short = broken(&square, |indptr, _| indptr[60] = 499);
    for device in devices() {
        for faulty in [&faulty, &short] {
            for a in [faulty.view(), faulty.transpose_view()] {
                let plan = Spmm::<f32>::plan(&device, a, SpmmOptions::default());
                let layer = GcnLayer {
                    weights: ndarray::Array2::ones((4, 3)),
                    bias: None,
                };
                let gcn = Gcn::plan(&device, a, &[layer], GcnOptions::default());
                let product = |a, b| spgemm::spgemm(&device, a, b, Default::default());
                let errors: [Error; 4] = [
                    plan.unwrap_err().into(),
                    gcn.unwrap_err().into(),
                    product(a, square.view()).unwrap_err().into(),
                    product(square.view(), a).unwrap_err().into(),
                ];
                for error in errors {
                    let Error::Operand(error) = error else {
                        panic!("{error}");
                    };
                    assert!(
                        matches!(
                            error,
                            OperandError::Structure { .. } | OperandError::Length { .. }
                        ),
                        "{error}"
                    );
                }
            }
        }
    }
}
