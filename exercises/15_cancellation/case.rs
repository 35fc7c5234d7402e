//! The variance of the samples of each sensor.

use super::attempt::variances;
use exercises::prelude::*;

/// Threads of a block.
const BLOCK: u32 = 64;

/// Samples of a sensor.
const SAMPLES: usize = 48;

/// One run with `sensors` sensors.
pub fn run(gpu: &Gpu, sensors: u32) -> Result<(), Failure> {
    let count = sensors as usize;
    let numbers: Vec<f32> = inputs::floats(SAMPLES * count)
        .into_iter()
        .map(|number| 10_000.0 + number)
        .collect();
    let samples = gpu.upload(&numbers);
    let variance = gpu.output::<f32>(count);
    let config = LaunchConfig::new(sensors.div_ceil(BLOCK), BLOCK);
    let arguments = (sensors, samples.read_only(), variance.mutable());
    gpu.launch(variances(), config, arguments)?;
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let of_sensor = |sensor| {
        let samples = (0..SAMPLES).map(|k| f64::from(numbers[k * count + sensor]));
        let samples: Vec<f64> = samples.collect();
        let middle = mean(&samples);
        let squares: Vec<f64> = samples.iter().map(|x| (x - middle).powi(2)).collect();
        mean(&squares)
    };
    let wanted: Vec<f64> = (0..count).map(of_sensor).collect();
    gpu.expect_close("variance", variance, &wanted, 1e-3)
}
