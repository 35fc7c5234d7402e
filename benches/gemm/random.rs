//! Random products: shapes that nobody has tuned a kernel for.

use crate::gemm::options::WeightShape;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The fewest and the most rows of X.
const ROWS: (f64, f64) = (1e4, 3_162_278.0);

/// The same on the emulator, which computes slowly.
const ROWS_ON_EMULATOR: (f64, f64) = (1.0, 300.0);

/// The fewest and the most columns of X, and of W.
const COLUMNS: (f64, f64) = (1.0, 512.0);

/// The sizes of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// Rows of X and Y.
    pub rows: u32,
    /// Rows and columns of W.
    pub shape: WeightShape,
}

/// So many products. The logarithms of their rows, and of the columns of X and of W, are uniform and independent.
pub fn products(count: u32, seed: u64, on_emulator: bool) -> Vec<Product> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |(least, most): (f64, f64)| -> u32 {
        let logarithm = random.random_range(least.ln()..=(most + 1.0).ln());
        logarithm.exp().clamp(least, most) as u32
    };
    let rows = if on_emulator { ROWS_ON_EMULATOR } else { ROWS };
    let product = |_| Product {
        rows: draw(rows),
        shape: WeightShape {
            depth: draw(COLUMNS) as usize,
            cols: draw(COLUMNS) as usize,
        },
    };
    (0..count).map(product).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_within_the_limits_and_each_seed_has_its_own() {
        let drawn = products(1000, 1, false);
        assert_eq!(drawn, products(1000, 1, false));
        assert_ne!(drawn, products(1000, 2, false));
        let between = |value: f64, (least, most): (f64, f64)| (least..=most).contains(&value);
        assert!(drawn.iter().all(|product| {
            between(product.rows.into(), ROWS)
                && between(product.shape.depth as f64, COLUMNS)
                && between(product.shape.cols as f64, COLUMNS)
        }));
        let below = |limit| {
            let below = drawn.iter().filter(|product| product.shape.cols < limit);
            below.count()
        };
        // Half of the logarithms are below the middle one.
        assert!((400..600).contains(&below(23)), "{}", below(23));
        assert!(drawn.iter().any(|product| product.shape.depth == 1));
    }
}
