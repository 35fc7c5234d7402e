//! What a plan chooses, and what it refuses.

use ndarray::{Array1, Array2, s};
use warprow::device::{Device, DeviceProfile, EmulatorOptions};
use warprow::gemm::GemmError;
use warprow::operand::OperandError;
use warprow::{Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning, f16, generate};
use warprow_kernels::gemm::RowStride;

#[test]
fn a_plan_takes_parts_for_f32_only_where_they_suffice() {
    let device = Device::emulator(Default::default());
    let chosen = |w: &Array2<f32>| {
        let gemm = Gemm::plan(&device, w.view(), None, GemmOptions::default());
        gemm.unwrap().kernel()
    };
    let w = generate::dense::<f32>(16, 8, 1).unwrap();
    assert_eq!(chosen(&w), GemmKernel::SplitFragments);
    assert_eq!(
        chosen(&generate::dense(15, 8, 1).unwrap()),
        GemmKernel::Shallow
    );
    assert_eq!(
        chosen(&generate::dense(33, 8, 1).unwrap()),
        GemmKernel::SplitFragments
    );
    assert_eq!(
        chosen(&generate::dense(18, 17, 1).unwrap()),
        GemmKernel::WarpgroupSplit
    );
    assert_eq!(
        chosen(&generate::dense(15, 17, 1).unwrap()),
        GemmKernel::Shallow
    );
    // Three parts reach less far than two.
    let mut wide = generate::dense::<f32>(18, 17, 1).unwrap();
    for (weight, kernel) in [
        (128.0, GemmKernel::WarpgroupSplit),
        (-129.0, GemmKernel::SplitFragments),
        (1025.0, GemmKernel::Staged),
    ] {
        wide[[17, 16]] = weight;
        assert_eq!(chosen(&wide), kernel, "{weight}");
    }
    // Two parts of f16 want that the elements of W are not too different.
    let wider = generate::dense::<f32>(65, 65, 1)
        .unwrap()
        .mapv(|weight| weight + weight.signum());
    assert_eq!(chosen(&wider), GemmKernel::WarpgroupHalves);
    for (depth, kernel) in [(16, GemmKernel::WarpgroupHalves), (15, GemmKernel::Shallow)] {
        let first = wider.slice(s![..depth, ..]).to_owned();
        assert_eq!(chosen(&first), kernel, "{depth} rows");
    }
    for (scale, weight, kernel) in [
        (1.0, 32.0, GemmKernel::WarpgroupHalves),
        (1.0, -32.1, GemmKernel::WarpgroupSplit),
        (1.0, 0.0, GemmKernel::WarpgroupSplit),
        (1.0, 4.8e-7, GemmKernel::WarpgroupHalves),
        (1.0, -4.7e-7, GemmKernel::WarpgroupSplit),
        (0.01, 6e-8, GemmKernel::WarpgroupHalves),
        (0.01, 5.9e-8, GemmKernel::WarpgroupSplit),
        (1.0, 129.0, GemmKernel::SplitFragments),
        (1.0, f32::NAN, GemmKernel::Staged),
    ] {
        let mut w = wider.mapv(|weight| weight * scale);
        w[[64, 63]] = 1.9 * scale;
        w[[64, 64]] = weight;
        assert_eq!(chosen(&w), kernel, "{weight}");
    }
    for weight in [1e-38, 1025.0, f32::INFINITY, f32::NAN] {
        let mut w = w.clone();
        w[[15, 7]] = weight;
        assert_eq!(chosen(&w), GemmKernel::Staged, "{weight}");
    }
}

/// The kernel that a plan chooses for a W without small elements, and the tile of its instance.
fn chosen<T: GemmElement>(depth: usize, cols: usize) -> (GemmKernel, &'static str) {
    let device = Device::emulator(Default::default());
    let w = generate::dense::<T>(depth, cols, 1)
        .unwrap()
        .mapv(|weight| T::from_f64(weight.to_f64() + weight.to_f64().signum()));
    let gemm = Gemm::plan(&device, w.view(), None, GemmOptions::default()).unwrap();
    let name = gemm.entry_point(100).unwrap().unwrap();
    (gemm.kernel(), name.rsplit('_').next().unwrap())
}

#[test]
fn one_or_two_columns_of_w_are_inner_products() {
    fn one<T: GemmElement>() {
        for (depth, cols) in [(2, 1), (2, 2), (17, 1), (300, 2), (1023, 1)] {
            let wanted = GemmKernel::InnerProducts;
            assert_eq!(chosen::<T>(depth, cols).0, wanted, "{depth} to {cols}");
        }
        assert_eq!(chosen::<T>(1, 2).0, GemmKernel::Shallow);
        assert_ne!(chosen::<T>(300, 3).0, GemmKernel::InnerProducts);
    }
    one::<f32>();
    one::<f64>();
    one::<f16>();
}

#[test]
fn inner_products_refuse_rows_of_x_that_are_4_gib_apart() {
    let refusal = |depth| GemmKernel::InnerProducts.refusal::<f32>(depth);
    assert_eq!(refusal((1 << 30) - 1), None);
    assert!(refusal(1 << 30).is_some_and(|reason| reason.contains("4 GiB")));
    let strides = GemmKernel::InnerProducts.strides();
    let rows = |stride| RowStride { cols: 2, stride };
    let refusal = |stride| strides.refusal(8, rows(stride), rows(u32::MAX));
    assert_eq!(refusal((1 << 29) - 1), None);
    let reason = refusal(1 << 29).unwrap();
    assert!(reason.contains("found are 4294967296 bytes"), "{reason}");
}

#[test]
fn a_product_of_few_columns_is_shallow() {
    let is_shallow = |(kernel, _)| kernel == GemmKernel::Shallow;
    // The columns of W, and up to how many columns X has.
    for (cols, most) in [(3, 15), (300, 15)] {
        assert!(is_shallow(chosen::<f32>(most, cols)), "{cols} columns");
        assert!(!is_shallow(chosen::<f32>(most + 1, cols)), "{cols} columns");
    }
    for (cols, most) in [(3, 8), (5, 6), (8, 3), (64, 3), (65, 6), (300, 6)] {
        assert!(is_shallow(chosen::<f64>(most, cols)), "{cols} columns");
        assert!(!is_shallow(chosen::<f64>(most + 1, cols)), "{cols} columns");
    }
    for (cols, most) in [(3, 10), (8, 3), (15, 2), (16, 1), (31, 1)] {
        assert!(is_shallow(chosen::<f16>(most, cols)), "{cols} columns");
        assert!(!is_shallow(chosen::<f16>(most + 1, cols)), "{cols} columns");
    }
    // `flat_fragments` has no room for so wide rows of Y.
    assert!(is_shallow(chosen::<f16>(8, 1000)));
}

#[test]
fn short_rows_of_16_bit_elements_are_copied_as_one_range() {
    let flat = |depth, cols| match chosen::<f16>(depth, cols) {
        (GemmKernel::FlatFragments, steps) => Some(steps),
        _ => None,
    };
    for cols in [32, 47, 512] {
        assert_eq!(flat(1, cols), Some("1"), "{cols} columns");
    }
    for (depth, cols) in [(8, 16), (15, 3), (15, 64), (16, 3), (16, 24)] {
        assert_eq!(flat(depth, cols), Some("1"), "{depth} to {cols}");
    }
    for (depth, cols) in [(17, 64), (24, 63), (30, 64), (32, 9)] {
        assert_eq!(flat(depth, cols), Some("2"), "{depth} to {cols}");
    }
    for (depth, cols) in [(33, 50), (38, 48), (48, 51), (63, 64), (64, 50)] {
        assert_eq!(flat(depth, cols), Some("4"), "{depth} to {cols}");
    }
    // Rows of a multiple of 16 bytes stay in tiles where these were faster.
    let tiles = [
        (16, 8),
        (16, 16),
        (24, 48),
        (24, 64),
        (32, 8),
        (40, 24),
        (56, 80),
        (48, 128),
        (56, 144),
        (32, 256),
    ];
    for (depth, cols) in tiles {
        assert_eq!(flat(depth, cols), None, "{depth} to {cols}");
    }
    for (depth, cols) in [(24, 24), (32, 56), (24, 96), (32, 144), (32, 200)] {
        assert_eq!(flat(depth, cols), Some("2"), "{depth} to {cols}");
    }
    for (depth, cols) in [(40, 72), (48, 112), (40, 160), (64, 136), (56, 200)] {
        assert_eq!(flat(depth, cols), Some("4"), "{depth} to {cols}");
    }
    assert_eq!(flat(65, 50), None);
    // No room for eight warps, on a GPU with less shared memory earlier.
    assert_eq!(flat(16, 640), Some("1"));
    assert_eq!(flat(16, 800), None);
    let device = Device::emulator_of(&DeviceProfile::rtx_4090(), EmulatorOptions::default());
    for (cols, fits) in [(300, true), (350, false)] {
        let w = generate::dense::<f16>(16, cols, 1).unwrap();
        let gemm = Gemm::plan(&device, w.view(), None, GemmOptions::new()).unwrap();
        let is_flat = gemm.kernel() == GemmKernel::FlatFragments;
        assert_eq!(is_flat, fits, "{cols} columns");
    }
}

#[test]
fn a_product_in_f64_takes_the_tiles_with_fewer_surplus_columns_if_w_fits() {
    let instance = |depth, cols| {
        let (kernel, tile) = chosen::<f64>(depth, cols);
        assert_eq!(kernel, GemmKernel::Sm90Fragments);
        tile
    };
    for cols in [17, 32] {
        assert_eq!(instance(50, cols), "Columns32", "{cols} columns");
    }
    for cols in [33, 40, 65, 96, 129, 257] {
        assert_eq!(instance(50, cols), "Columns48", "{cols} columns");
    }
    // 145 to 192 columns are as many with tiles of 48.
    for cols in [49, 64, 145, 192, 290, 310] {
        assert_eq!(instance(50, cols), "Columns64", "{cols} columns");
    }
    for cols in [97, 128, 241, 256, 481] {
        assert_eq!(instance(50, cols), "Columns128", "{cols} columns");
    }
    // Memory takes longer than the surplus products.
    assert_eq!(instance(35, 70), "Columns128");
    assert_eq!(instance(36, 70), "Columns48");
    assert_eq!(instance(58, 470), "Columns128");
    assert_eq!(instance(59, 470), "Columns64");
    // A fifteenth more columns in tiles of 64 are as fast, a ninth more are not.
    assert_eq!(instance(121, 240), "Columns64");
    assert_eq!(instance(145, 288), "Columns48");
    // Tiles whose W leaves no room for eight warps are not taken.
    assert_eq!(instance(160, 128), "Columns128");
    assert_eq!(instance(161, 128), "Columns64");
    assert_eq!(instance(320, 128), "Columns64");
    assert_eq!(instance(321, 128), "Columns32");
    // With 8 warps instead of 12, a tile of 64 columns is slower than tiles of 48 with fewer surplus columns.
    assert_eq!(instance(230, 200), "Columns64");
    assert_eq!(instance(260, 200), "Columns48");
    assert_eq!(instance(432, 96), "Columns48");
    assert_eq!(instance(448, 96), "Columns32");
    assert_eq!(instance(1000, 96), "Columns48Streamed");
    assert_eq!(instance(1000, 60), "Columns64Streamed");
    assert_eq!(instance(432, 48), "Columns48");
    assert_eq!(instance(448, 48), "Columns48Compact");
    assert_eq!(instance(448, 40), "Columns48Streamed");
    // Tiles of 32 columns have fewer surplus columns, but only a deep product is bound by multiplications. Else tiles of
    // 48 columns have as many as those of 64, which have 8 warps.
    assert_eq!(instance(255, 150), "Columns48");
    assert_eq!(instance(256, 150), "Columns32");
}

#[test]
fn a_kernel_whose_blocks_want_too_much_shared_memory_is_refused() {
    let device = Device::emulator_of(&DeviceProfile::rtx_4090(), EmulatorOptions::default());
    let plan = |depth| {
        let w = generate::dense::<f16>(depth, 1000, 1).unwrap();
        let tuning = GemmTuning::new().kernel(GemmKernel::FlatFragments);
        Gemm::plan(&device, w.view(), None, GemmOptions::new().tuning(tuning))
    };
    assert!(plan(16).is_ok());
    let error = plan(64).unwrap_err().to_string();
    assert!(error.contains("takes 165216 bytes"), "{error}");
    assert!(error.contains("has 101376"), "{error}");
}

#[test]
fn a_product_in_f32_takes_tiles_of_48_columns_if_those_of_128_had_many_surplus_columns() {
    for cols in [129, 144, 288] {
        let wanted = (GemmKernel::WarpgroupSplit, "Columns48");
        assert_eq!(chosen::<f32>(40, cols), wanted, "{cols} columns");
    }
    for cols in [65, 128, 193, 256, 289] {
        let wanted = (GemmKernel::WarpgroupHalves, "Columns128");
        assert_eq!(chosen::<f32>(40, cols), wanted, "{cols} columns");
    }
    // Tiles of 64 columns have no room for a deep W.
    for (depth, kernel) in [
        (233, GemmKernel::WarpgroupSplit),
        (434, GemmKernel::WarpgroupHalves),
    ] {
        for cols in [49, 64] {
            assert_eq!(chosen::<f32>(depth, cols).0, kernel, "{depth} to {cols}");
        }
        assert_eq!(chosen::<f32>(depth, 48).0, GemmKernel::WarpgroupSplit);
    }
    for depth in [41, 42, 44] {
        let wanted = (GemmKernel::SplitFragments, "Columns16");
        assert_eq!(chosen::<f32>(depth, 9), wanted, "{depth} columns of X");
    }
}

#[test]
fn rows_of_16_bit_elements_are_copied_in_small_pieces_if_they_are_short() {
    assert_eq!(chosen::<f16>(126, 12).0, GemmKernel::WarpFragments);
    assert_eq!(chosen::<f16>(130, 12).0, GemmKernel::Fragments);
    assert_eq!(chosen::<f16>(132, 12).0, GemmKernel::WarpFragments);
    let wanted = (GemmKernel::WarpgroupFragments, "Columns128Unaligned");
    assert_eq!(chosen::<f16>(131, 49), wanted);
    assert_eq!(chosen::<f16>(131, 48).1, "Columns48Unaligned");
    // W has no room beside 128 columns.
    assert_eq!(chosen::<f16>(1023, 49).1, "Columns48Unaligned");
}

#[test]
fn f32_is_rounded_to_tf32_only_where_that_is_allowed() {
    let device = Device::emulator(Default::default());
    // It cannot be split.
    let mut w = generate::dense::<f32>(16, 4, 1).unwrap();
    w[[3, 3]] = 1e30;
    let plan = |kernel, tf32| {
        let options = GemmOptions::new()
            .tf32(tf32)
            .tuning(GemmTuning::new().kernel(kernel));
        Gemm::plan(&device, w.view(), None, options)
    };
    assert_ne!(plan(None, false).unwrap().kernel(), GemmKernel::Fragments);
    assert_ne!(
        plan(None, false).unwrap().kernel(),
        GemmKernel::WarpFragments
    );
    assert_eq!(
        plan(None, true).unwrap().kernel(),
        GemmKernel::WarpFragments
    );
    let refused = plan(Some(GemmKernel::WarpFragments), false).unwrap_err();
    assert!(refused.to_string().contains("tf32"), "{refused}");
    // An exact kernel is as fast.
    let w = generate::dense::<f32>(16, 17, 1).unwrap();
    let options = GemmOptions::new().tf32(true);
    let gemm = Gemm::plan(&device, w.view(), None, options).unwrap();
    assert_eq!(gemm.kernel(), GemmKernel::WarpgroupSplit);
}

#[test]
fn rows_of_an_odd_number_of_16_bit_elements_are_for_kernels_that_shift_them() {
    let device = Device::emulator(Default::default());
    let plan = |depth, kernel: Option<GemmKernel>| {
        let tuning = kernel.map_or(GemmTuning::new(), |kernel| GemmTuning::new().kernel(kernel));
        let w = generate::dense::<f16>(depth, 20, 1).unwrap();
        Gemm::plan(&device, w.view(), None, GemmOptions::new().tuning(tuning))
    };
    let default = |depth| plan(depth, None).unwrap().kernel();
    assert_eq!(default(1), GemmKernel::Shallow);
    assert_eq!(default(5), GemmKernel::FlatFragments);
    assert_eq!(default(63), GemmKernel::FlatFragments);
    assert_eq!(default(65), GemmKernel::WarpgroupFragments);
    assert_eq!(default(1023), GemmKernel::WarpgroupFragments);
    assert_eq!(default(1025), GemmKernel::Fragments);
    for (depth, kernel, reason) in [
        (
            5,
            GemmKernel::WarpFragments,
            "odd number of 16-bit elements",
        ),
        (1025, GemmKernel::WarpgroupFragments, "copies whole words"),
        (33, GemmKernel::Shallow, "at most 32 columns"),
        (65, GemmKernel::FlatFragments, "at most 64 columns"),
    ] {
        let refused = plan(depth, Some(kernel)).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_was_wanted_and_found() {
    let device = Device::emulator(Default::default());
    let other = Device::emulator(Default::default());
    let w = generate::dense::<f32>(4, 5, 1).unwrap();
    let bias = Array1::<f32>::zeros(4);
    let refused = Gemm::plan(&device, w.view(), Some(bias.view()), GemmOptions::default());
    let text = refused.unwrap_err().to_string();
    assert_eq!(text, "wrong length: the bias has 4 elements, wanted are 5");

    let gemm = Gemm::plan(&device, w.view(), None, GemmOptions::default()).unwrap();
    let text = gemm
        .multiply(Array2::zeros((2, 3)).view())
        .unwrap_err()
        .to_string();
    assert_eq!(text, "wrong shape: x is 2 x 3, wanted are 4 columns");
    let (x, mut y) = (
        device.zeros::<f32>(8).unwrap(),
        device.zeros::<f32>(9).unwrap(),
    );
    assert!(matches!(
        gemm.run(&x, 2, &mut y),
        Err(GemmError::Operand(OperandError::Length { what: "y", .. }))
    ));
    assert!(matches!(
        gemm.run(&x, 3, &mut y),
        Err(GemmError::Operand(OperandError::Length { what: "x", .. }))
    ));
    let mut elsewhere = other.zeros::<f32>(10).unwrap();
    assert!(matches!(
        gemm.run(&x, 2, &mut elsewhere),
        Err(GemmError::Operand(OperandError::OtherDevice {
            what: "y",
            ..
        }))
    ));

    let options = GemmOptions::new().tuning(GemmTuning::new().kernel(GemmKernel::Staged));
    let halves = w.mapv(f16::from_f32);
    let text = Gemm::plan(&device, halves.view(), None, options)
        .unwrap_err()
        .to_string();
    assert!(text.contains("no instance for f16"), "{text}");
}
