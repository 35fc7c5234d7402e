//! What the samples of an operation come to.

use crate::first_use::Operation;
use crate::first_use::sample::{ModuleTime, Sample};
use crate::harness::measure::summary;
use serde::Serialize;
use std::fmt;

/// An operation with an empty or a filled cache. Times are medians; null on the emulator.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    operation: &'static str,
    /// The driver's cache before: `empty`, or `filled` by a process that did the same.
    cache: &'static str,
    ms: Option<f64>,
    ms_min: Option<f64>,
    ms_max: Option<f64>,
    samples: usize,
    /// The sum of the modules' times.
    modules_ms: Option<f64>,
    /// In the order in which they were compiled.
    modules: Vec<ModuleTime>,
    /// Whether all results were right.
    pub ok: bool,
}

impl Results {
    pub fn of(
        operation: Operation,
        cache: &'static str,
        samples: &[Sample],
        on_emulator: bool,
    ) -> Self {
        let timing = summary(samples.iter().map(|sample| sample.ms).collect(), 1);
        let timing = timing.filter(|_| !on_emulator);
        let first = samples.first().map_or(&[][..], |sample| &sample.modules);
        let modules: Vec<ModuleTime> = first.iter().map(|module| median(module, samples)).collect();
        let modules_ms = modules.iter().map(|module| module.ms).sum();
        Self {
            operation: operation.name(),
            cache,
            ms: timing.map(|timing| timing.median),
            ms_min: timing.map(|timing| timing.min),
            ms_max: timing.map(|timing| timing.max),
            samples: samples.len(),
            modules_ms: (!on_emulator).then_some(modules_ms),
            modules,
            ok: samples.iter().all(|sample| sample.ok),
        }
    }
}

/// A module with the median of its times in all samples.
fn median(ModuleTime { module, ms }: &ModuleTime, samples: &[Sample]) -> ModuleTime {
    let loads = samples.iter().flat_map(|sample| &sample.modules);
    let times = loads
        .filter(|load| load.module == *module)
        .map(|load| load.ms);
    ModuleTime {
        module: module.clone(),
        ms: summary(times.collect(), 1).map_or(*ms, |timing| timing.median),
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, cache) = (self.operation, self.cache);
        let verdict = if self.ok { "verified" } else { "WRONG" };
        let (Some(ms), Some(modules_ms)) = (self.ms, self.modules_ms) else {
            return writeln!(f, "{operation:14} emulated, no times: {verdict}");
        };
        let (least, most) = (self.ms_min.unwrap_or(ms), self.ms_max.unwrap_or(ms));
        writeln!(
            f,
            "{operation:14} cache {cache:6} {ms:8.1} ms ({least:.1} to {most:.1}), \
             of which {} modules {modules_ms:.1} ms: {verdict}",
            self.modules.len()
        )?;
        for ModuleTime { module, ms } in &self.modules {
            writeln!(f, "    {module:44} {ms:8.1} ms")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ms: f64, modules: [f64; 2]) -> Sample {
        let modules = ["a.sm_80.ptx", "b.sm_80.ptx"].into_iter().zip(modules);
        let modules = modules.map(|(module, ms)| ModuleTime {
            module: module.to_owned(),
            ms,
        });
        Sample {
            ms,
            modules: modules.collect(),
            ok: true,
        }
    }

    #[test]
    fn times_are_medians_of_the_samples() {
        let samples = [
            sample(90.0, [10.0, 7.0]),
            sample(70.0, [30.0, 8.0]),
            sample(80.0, [20.0, 9.0]),
        ];
        let results = Results::of(Operation::Spmm, "empty", &samples, false);
        assert_eq!(
            results.to_string(),
            "spmm           cache empty      80.0 ms (70.0 to 90.0), of which 2 modules 28.0 ms: verified\n    \
             a.sm_80.ptx                                      20.0 ms\n    \
             b.sm_80.ptx                                       8.0 ms\n"
        );
    }

    #[test]
    fn the_emulator_has_no_times_and_one_wrong_result_is_told() {
        let mut samples = [sample(90.0, [10.0, 7.0]), sample(70.0, [30.0, 8.0])];
        samples[1].ok = false;
        let results = Results::of(Operation::Spgemm, "empty", &samples, true);
        assert_eq!(
            results.to_string(),
            "spgemm         emulated, no times: WRONG\n"
        );
        assert_eq!(
            (results.ms, results.modules_ms, results.ok),
            (None, None, false)
        );
    }
}
