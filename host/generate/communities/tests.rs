//! Sizes, counts and numbers of planted communities.

use super::*;

fn planted(shuffled: bool) -> Communities {
    Communities {
        sizes: 10..=90,
        inside: 0.75,
        shuffled,
    }
}

fn inside(a: &CsMatI<f32, u32, u32>, community: &[Range<u32>]) -> usize {
    a.iter()
        .filter(|(_, (row, column))| community[*row as usize].contains(column))
        .count()
}

#[test]
fn nonzeros_are_as_many_as_asked_for_inside_and_outside() {
    for (rows, nonzeros) in [
        (1000, 0),
        (1000, 1),
        (1000, 7777),
        (1001, 20_000),
        (3000, 70_000),
    ] {
        let a = communities::<f32>(rows, nonzeros, &planted(false), 3).unwrap();
        assert_eq!((a.rows(), a.cols()), (rows as usize, rows as usize));
        assert_eq!(a.nnz(), nonzeros as usize);
        let of_each = community_of_each(rows, &(10..=90), 3);
        let wanted = (f64::from(nonzeros) * 0.75).round() as usize;
        assert_eq!(inside(&a, &of_each), wanted);
    }
}

#[test]
fn the_extremes_are_one_full_community_and_none() {
    let all = Communities {
        sizes: 40..=40,
        inside: 1.0,
        shuffled: false,
    };
    let blocks = communities::<f32>(120, 3 * 40 * 40, &all, 1).unwrap();
    assert!(
        blocks
            .iter()
            .all(|(_, (row, column))| row / 40 == column / 40)
    );
    let none = Communities {
        inside: 0.0,
        ..all.clone()
    };
    let rest = communities::<f32>(120, 120 * 80, &none, 1).unwrap();
    assert!(
        rest.iter()
            .all(|(_, (row, column))| row / 40 != column / 40)
    );
    let one = Communities {
        sizes: 500..=500,
        ..all
    };
    assert_eq!(communities::<f32>(50, 2500, &one, 1).unwrap().nnz(), 2500);
    assert_eq!(communities::<f32>(0, 0, &one, 1).unwrap().rows(), 0);
}

#[test]
fn the_shuffled_graph_is_the_other_one_renumbered() {
    let ordered = communities::<f32>(500, 6000, &planted(false), 9).unwrap();
    let shuffled = communities::<f32>(500, 6000, &planted(true), 9).unwrap();
    let mut vertices: Vec<u32> = (0..500).collect();
    vertices.shuffle(&mut stream(9, LABEL_STREAM));
    for row in 0..500 {
        let mut columns: Vec<u32> = shuffled
            .outer_view(row)
            .unwrap()
            .indices()
            .iter()
            .map(|&column| vertices[column as usize])
            .collect();
        columns.sort_unstable();
        let original = ordered.outer_view(vertices[row] as usize).unwrap();
        assert_eq!(columns, original.indices());
    }
    assert_ne!(ordered.indices(), shuffled.indices());
}

#[test]
fn sizes_lie_in_their_range_and_small_ones_are_more_frequent() {
    let of_each = community_of_each(200_000, &(16..=1024), 5);
    let mut sizes: Vec<usize> = of_each
        .chunk_by(|one, other| one == other)
        .map(<[_]>::len)
        .collect();
    sizes.pop();
    assert!(sizes.iter().all(|size| (16..=1024).contains(size)));
    // As many vertices from s to 2 s for each s: twice as many communities in one octave as in the next.
    let octave = |s: usize| {
        sizes
            .iter()
            .filter(|&&size| size >= s && size < 2 * s)
            .count()
    };
    for s in [32, 64, 128] {
        let ratio = octave(s) as f64 / octave(2 * s) as f64;
        assert!((1.5..2.7).contains(&ratio), "{s}: {ratio}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let graph = || communities::<f32>(5000, 200_000, &planted(true), 42).unwrap();
    let on_threads = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(graph)
    };
    assert!(on_threads(1) == on_threads(5));
    let other = communities::<f32>(5000, 200_000, &planted(true), 43).unwrap();
    assert_ne!(graph().indices(), other.indices());
}

#[test]
fn every_number_of_a_set_is_equally_likely() {
    let mut random = stream(1, 0);
    for count in [0, 1, 3, 5, 6, 7] {
        let mut drawn = Vec::new();
        let mut times = [0; 7];
        for _ in 0..7000 {
            draw_set(count, 7, &mut random, &mut drawn);
            assert!(drawn.len() == count && drawn.is_sorted_by(|a, b| a < b));
            drawn.iter().for_each(|&number| times[number as usize] += 1);
        }
        // With a standard deviation of at most 42.
        let wanted = 1000 * count;
        assert!(
            times
                .iter()
                .all(|times: &usize| times.abs_diff(wanted) < 210)
        );
    }
}

#[test]
fn what_cannot_be_generated_is_an_error() {
    let wrong = |change: fn(&mut Communities)| {
        let mut found = planted(false);
        change(&mut found);
        let error = communities::<f32>(100, 10, &found, 1).unwrap_err();
        assert!(
            matches!(error, GenerateError::Communities { .. }),
            "{error}"
        );
    };
    wrong(|communities| communities.inside = 1.5);
    wrong(|communities| communities.inside = f64::NAN);
    wrong(|communities| communities.sizes = 0..=5);
    wrong(|communities| communities.sizes = RangeInclusive::new(6, 5));
    // Communities of 10 have 1000 entries in 100 rows.
    let full = Communities {
        sizes: 10..=10,
        inside: 1.0,
        shuffled: false,
    };
    let no_room = |place, wanted, room| GenerateError::Room {
        wanted,
        place,
        room,
    };
    assert_eq!(
        communities::<f32>(100, 1001, &full, 1),
        Err(no_room("inside", 1001, 1000))
    );
    let one = Communities {
        sizes: 100..=100,
        inside: 0.0,
        shuffled: false,
    };
    assert_eq!(
        communities::<f32>(100, 1, &one, 1),
        Err(no_room("between", 1, 0))
    );
    // Each row but one has one entry outside, that one half of all: too few draws meet it.
    let nearly_one = Communities {
        sizes: 999..=999,
        inside: 0.0,
        shuffled: false,
    };
    assert!(matches!(
        communities::<f32>(1000, 1998, &nearly_one, 1),
        Err(GenerateError::TooSkewed { wanted: 1998, .. })
    ));
    assert!(matches!(
        communities::<f32>(3, 10, &full, 1),
        Err(GenerateError::TooManyNonzeros { .. })
    ));
}
