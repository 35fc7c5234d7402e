//! cuSPARSE on the first device alone.

use crate::harness::cusparse::Error;
use crate::harness::host_clock::{Runs, measure_whole};
use crate::harness::measure::{Effort, measure};
use crate::spgemm::cusparse_spgemm;
use crate::spmm::cusparse_spmm;
use serde::Serialize;
use std::time::Duration;
use warprow::device::{Device, DeviceBuffer};
use warprow::reference::WholeProduct;
use warprow::{CsrMatrix, DeviceCsr};

/// Milliseconds that a product takes with the fastest algorithm of cuSPARSE.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Peer {
    #[serde(rename = "cusparse")]
    version: Option<String>,
    #[serde(rename = "cusparse_algorithm")]
    algorithm: Option<&'static str>,
    #[serde(rename = "cusparse_ms")]
    pub ms: Option<f64>,
    #[serde(rename = "cusparse_skipped")]
    pub skipped: Option<String>,
}

impl Peer {
    /// No time, for that reason.
    pub fn skipped(reason: &str) -> Self {
        Self {
            skipped: Some(reason.to_owned()),
            ..Self::default()
        }
    }

    /// The fastest of some algorithms. What cuSPARSE refuses and what does not fit the memory is no failure.
    fn fastest(
        version: &str,
        times: impl Iterator<Item = (&'static str, Result<Option<f64>, Error>)>,
    ) -> Self {
        let mut peer = Self {
            version: Some(version.to_owned()),
            ..Self::default()
        };
        for (name, time) in times {
            match time {
                Ok(Some(ms)) if peer.ms.is_none_or(|least| ms < least) => {
                    (peer.ms, peer.algorithm) = (Some(ms), Some(name));
                }
                Ok(_) => {}
                Err(error) => {
                    peer.skipped.get_or_insert(format!("{name}: {error}"));
                }
            }
        }
        if peer.ms.is_some() {
            peer.skipped = None;
        }
        peer
    }
}

/// `Y = A X`; prints a wrong Y, and leaves its algorithm out.
pub fn spmm(
    cusparse: &cusparse_spmm::Cusparse,
    product: &WholeProduct<f32>,
    features: u32,
    samples: u32,
) -> Peer {
    let device = cusparse.device();
    let operands = || -> Result<_, Error> {
        let x = product.x();
        let x = device.upload(x.as_slice().expect("a new array is contiguous"))?;
        let len = product.a().rows() * features as usize;
        let a = DeviceCsr::upload(device, product.a()).map_err(warprow::Error::from)?;
        Ok((a, x, device.zeros::<f32>(len)?))
    };
    let (a, x, mut y) = match operands() {
        Ok(operands) => operands,
        Err(error) => return Peer::skipped(&error.to_string()),
    };
    let time = |algorithm, y: &mut DeviceBuffer<f32>| -> Result<_, Error> {
        let mut prepared =
            cusparse_spmm::Product::prepare(cusparse, &a, &x, y, features, algorithm)?;
        let timing = measure(device, Effort::of(samples), || prepared.run())?;
        Ok(timing.map(|timing| timing.median))
    };
    let is_right = |y: &DeviceBuffer<f32>| -> Result<_, Error> {
        let y =
            ndarray::Array2::from_shape_vec((product.a().rows(), features as usize), y.download()?);
        Ok(product.verify(y.expect("it has its length").view()).ok())
    };
    let algorithms = cusparse_spmm::Algorithm::ALL.into_iter();
    let mut peer = Peer::fastest(
        cusparse.version(),
        algorithms.map(|algorithm| (algorithm.name(), time(algorithm, &mut y))),
    );
    // The Y of the algorithm that ran last.
    if peer.ms.is_some() && !is_right(&y).unwrap_or(false) {
        peer = Peer::skipped("its product is wrong");
    }
    peer
}

/// `C = A A`.
pub fn spgemm(cusparse: &cusparse_spgemm::Cusparse, a: &CsrMatrix<f32>, samples: u32) -> Peer {
    let device: &Device = cusparse.device();
    let a = match DeviceCsr::upload(device, a.view()) {
        Ok(a) => a,
        Err(error) => return Peer::skipped(&error.to_string()),
    };
    let runs = Runs {
        warm_ups: 1,
        samples,
        budget: Duration::from_secs(5),
    };
    let time = |algorithm| -> Result<_, Error> {
        let (timing, _) = measure_whole(device, runs, || cusparse.multiply(&a, &a, algorithm))?;
        Ok(timing.map(|timing| timing.median))
    };
    let algorithms = cusparse_spgemm::Algorithm::ALL.into_iter();
    Peer::fastest(
        cusparse.version(),
        algorithms.map(|algorithm| (algorithm.name(), time(algorithm))),
    )
}
