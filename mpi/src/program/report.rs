//! What the program says of a run: facts, the time of each phase, and what the model of the exchange predicts.

use super::options::RunOptions;
use anyhow::Result;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde_json::{Map, Value, json};
use warprow::Device;
use warprow_mpi::{DistributedCsr, PhaseTimes, World};

/// What is said of a run.
pub struct Report<'a> {
    pub world: &'a World,
    pub device: &'a Device,
    pub times: PhaseTimes,
    facts: Map<String, Value>,
    /// Milliseconds that the model predicts for phases.
    predicted: Map<String, Value>,
}

impl<'a> Report<'a> {
    pub fn new(world: &'a World, device: &'a Device) -> Self {
        Self {
            world,
            device,
            times: PhaseTimes::default(),
            facts: Map::new(),
            predicted: Map::new(),
        }
    }

    pub fn phase<R>(&mut self, name: &'static str, work: impl FnOnce() -> Result<R>) -> Result<R> {
        self.times.measure(self.world, name, work)
    }

    /// As [`phase`](Self::phase), with all work of the device that it has started.
    pub fn device_phase<R>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let device = self.device;
        self.phase(name, || {
            let result = work()?;
            device.synchronize()?;
            Ok(result)
        })
    }

    pub fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Notes a prediction: seconds, those of the slowest rank.
    pub fn predict(&mut self, phase: &str, seconds: f64) {
        let seconds = self.world.max(seconds);
        self.predicted
            .insert(phase.to_owned(), json!(seconds * 1e3));
    }

    /// Adds how the rows are divided, and which rows of the operand travel.
    pub fn division(&mut self, run: &RunOptions) {
        for (name, option) in [
            ("distribution", run.used_distribution().to_possible_value()),
            ("operand", run.operand.to_possible_value()),
        ] {
            let name_of = |value: PossibleValue| value.get_name().to_owned();
            self.fact(name, option.map(name_of));
        }
    }

    /// Adds what is to be said of a matrix's distribution.
    pub fn matrix<T>(&mut self, a: &DistributedCsr<T>) {
        let sum = |number: u64| self.world.all(number).iter().sum::<u64>();
        let received = sum(a.halo().rows().len() as u64);
        let replicated = sum((a.owners().rows() - a.halo().own().len()) as u64);
        self.fact("rows", a.shape().0);
        self.fact("columns", a.shape().1);
        self.fact("nonzeros", sum(a.local().nnz() as u64));
        self.fact("imbalance", a.partition().imbalance());
        self.fact("rows_received", received);
        self.fact("rows_replicated", replicated);
    }

    pub fn print(&mut self, as_json: bool, right: Option<bool>) {
        if !self.world.is_root() {
            return;
        }
        let (ranks, device) = (self.world.size(), self.device.name().to_owned());
        if as_json {
            let times = self
                .times
                .iter()
                .map(|(phase, time)| (phase.to_owned(), json!(time.as_secs_f64() * 1e3)));
            let times: Map<String, Value> = times.collect();
            let facts = std::mem::take(&mut self.facts);
            let predicted = std::mem::take(&mut self.predicted);
            let line = json!({
                "ranks": ranks, "device": device, "verified": right, "milliseconds": times,
                "predicted_milliseconds": predicted, "facts": facts,
            });
            println!("{line}");
            return;
        }
        println!("{ranks} ranks, {device}: {}", self.times);
        let predicted = self
            .predicted
            .iter()
            .filter_map(|(phase, ms)| Some((phase, ms.as_f64()?)));
        for (phase, milliseconds) in predicted {
            println!("predicted: {phase} {milliseconds:.3} ms");
        }
        let facts = self
            .facts
            .iter()
            .map(|(name, value)| format!("{name} {value}"));
        println!("{}", facts.collect::<Vec<_>>().join(", "));
        match right {
            None => {}
            Some(true) => println!("verified"),
            Some(false) => println!("WRONG"),
        }
    }
}
