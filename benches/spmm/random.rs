//! Random products: matrices and numbers of features that nobody has tuned a kernel or a plan for.

use crate::harness::by_rows::{band_with_holes, constant_rows, power_law};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sprs::CsMatI;
use warprow::Scalar;
use warprow::generate::{self, Communities, GenerateError};

/// What is drawn: logarithms are uniform between those of the least and the most.
#[derive(Clone, Copy, Debug)]
struct Limits {
    rows: (u32, u32),
    /// Nonzeros of a row in the mean.
    mean_row: (u32, u32),
    features: (u32, u32),
    nonzeros: u64,
    /// Elements of X and of Y.
    elements: u64,
    multiplications: u64,
}

const LIMITS: Limits = Limits {
    rows: (1_000, 3_000_000),
    mean_row: (2, 500),
    features: (1, 512),
    nonzeros: 1 << 25,
    elements: 1 << 28,
    multiplications: 1 << 32,
};

/// The same on the emulator, which computes slowly.
const LIMITS_ON_EMULATOR: Limits = Limits {
    rows: (200, 1_000),
    mean_row: (2, 20),
    features: (1, 40),
    nonzeros: 10_000,
    elements: 40_000,
    multiplications: 400_000,
};

/// A matrix has at least so many times as many entries as nonzeros.
const LEAST_ENTRIES: u64 = 16;

/// A random matrix, and the number of features of its product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomProduct {
    /// Its place in the run, from 0.
    pub index: u32,
    /// How nonzeros are placed.
    pub rule: Rule,
    /// Rows of A.
    pub rows: u32,
    /// Columns of A.
    pub cols: u32,
    /// Nonzeros of a row in the mean; rules that draw columns one by one drop repeated ones.
    pub mean_row: u32,
    /// Columns of X.
    pub features: u32,
}

/// How nonzeros are placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// R-MAT, with the probability of the first quadrant.
    Rmat(f64),
    /// Each entry as likely as the other.
    Uniform,
    /// Planted communities of 64 columns and more; whether shuffled.
    Communities(bool),
    /// Communities and rows with power laws; whether shuffled.
    PowerLaw(bool),
    /// Rows of equal lengths, columns at random.
    ConstantRows,
    /// A band so many times as wide as it has nonzeros in a row, at random places.
    Band(u32),
}

/// So many products, of one rule after the other. Every other one has a power of two of features, so four rules always
/// have one.
pub fn products(count: u32, seed: u64, on_emulator: bool) -> Vec<RandomProduct> {
    let limits = if on_emulator {
        LIMITS_ON_EMULATOR
    } else {
        LIMITS
    };
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let fitting = |index| loop {
        let product = product(index, limits, &mut random);
        if product.fits(limits) {
            return product;
        }
    };
    (0..count).map(fitting).collect()
}

fn product(index: u32, limits: Limits, random: &mut ChaCha8Rng) -> RandomProduct {
    let mut draw = |(least, most): (u32, u32)| -> u32 {
        let (least, most) = (f64::from(least), f64::from(most));
        let logarithm = random.random_range(least.ln()..=(most + 1.0).ln());
        logarithm.exp().clamp(least, most) as u32
    };
    let (rows, other, mean_row) = (draw(limits.rows), draw(limits.rows), draw(limits.mean_row));
    let features = draw(limits.features);
    let features = match index % 2 {
        0 => features.next_power_of_two().min(limits.features.1),
        _ => features,
    };
    let rule = match index % 8 {
        0 => Rule::Rmat(random.random_range(0.25..0.6)),
        1 => Rule::Uniform,
        2 => Rule::Communities(false),
        3 => Rule::Communities(true),
        4 => Rule::PowerLaw(false),
        5 => Rule::PowerLaw(true),
        6 => Rule::ConstantRows,
        _ => Rule::Band(random.random_range(1..=16)),
    };
    let cols = match rule {
        Rule::Uniform | Rule::ConstantRows => other,
        _ => rows,
    };
    RandomProduct {
        index,
        rule,
        rows,
        cols,
        mean_row,
        features,
    }
}

impl RandomProduct {
    /// Nonzeros of A, or for some rules a few more.
    pub fn nonzeros(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.mean_row)
    }

    /// The same matrix with another number of features, if the product is not too large then.
    pub fn with_features(self, features: u32) -> Option<Self> {
        let other = Self { features, ..self };
        other.fits(LIMITS).then_some(other)
    }

    fn fits(&self, limits: Limits) -> bool {
        let features = u64::from(self.features);
        let nonzeros = self.nonzeros();
        let entries = u64::from(self.rows) * u64::from(self.cols);
        nonzeros <= limits.nonzeros
            && u64::from(self.rows.max(self.cols)) * features <= limits.elements
            && nonzeros * features <= limits.multiplications
            && nonzeros <= entries / LEAST_ENTRIES
    }

    /// The name of its rule.
    pub const fn kind(&self) -> &'static str {
        match self.rule {
            Rule::Rmat(_) => "rmat",
            Rule::Uniform => "uniform",
            Rule::Communities(false) => "communities",
            Rule::Communities(true) => "communities_shuffled",
            Rule::PowerLaw(false) => "power_law",
            Rule::PowerLaw(true) => "power_law_shuffled",
            Rule::ConstantRows => "constant_rows",
            Rule::Band(_) => "band",
        }
    }

    /// The matrix; the same for the same seed.
    ///
    /// # Errors
    ///
    /// One too dense for its rule.
    pub fn generate<T: Scalar>(&self, seed: u64) -> Result<CsMatI<T, u32, u32>, GenerateError> {
        let Self {
            rows,
            cols,
            mean_row,
            ..
        } = *self;
        let seed = seed.wrapping_mul(1 << 32) + u64::from(self.index);
        let nonzeros = rows * mean_row;
        match self.rule {
            Rule::Rmat(first) => {
                // As in the usual .57, .19, .19, .05 and .25, .25, .25, .25.
                let second = (1.0 - first) * (1.0 / 3.0 + 0.34 * (first - 0.25));
                let quadrants = [first, second, second, 1.0 - first - 2.0 * second];
                generate::rmat(rows, nonzeros, quadrants, seed)
            }
            Rule::Uniform => generate::uniform(rows, cols, nonzeros, seed),
            Rule::Communities(shuffled) => {
                let least = (3 * mean_row).max(64).min(rows / 3);
                let communities = Communities {
                    sizes: least..=(32 * least).min(rows / 3),
                    inside: 0.8,
                    shuffled,
                };
                generate::communities(rows, nonzeros, &communities, seed)
            }
            Rule::PowerLaw(shuffled) => Ok(power_law(rows, mean_row, shuffled, seed)),
            Rule::ConstantRows => Ok(constant_rows((rows, cols), mean_row, seed)),
            Rule::Band(width) => {
                let reach = (mean_row * width / 2).max(1);
                Ok(band_with_holes(rows, reach, mean_row, seed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_within_the_limits_and_each_seed_has_its_own() {
        let drawn = products(400, 1, false);
        assert_eq!(drawn, products(400, 1, false));
        assert_ne!(drawn, products(400, 2, false));
        assert!(drawn.iter().all(|product| product.fits(LIMITS)));
        let powers = drawn
            .iter()
            .filter(|product| product.features.is_power_of_two());
        assert!((200..300).contains(&powers.count()));
        assert!(drawn.iter().any(|product| product.rows != product.cols));
        let is_large = |product: &&RandomProduct| product.nonzeros() > 1_000_000;
        assert!((100..300).contains(&drawn.iter().filter(is_large).count()));
    }

    #[test]
    fn each_rule_generates_its_matrix() {
        for product in products(16, 3, true) {
            let a = product.generate::<f32>(3).unwrap();
            assert!(a == product.generate::<f32>(3).unwrap(), "{product:?}");
            let shape = (product.rows as usize, product.cols as usize);
            assert_eq!((a.rows(), a.cols()), shape, "{product:?}");
            let wanted = product.nonzeros() as usize;
            let near = wanted / 3..=wanted * 2;
            assert!(near.contains(&a.nnz()), "{product:?}: {}", a.nnz());
        }
    }
}
