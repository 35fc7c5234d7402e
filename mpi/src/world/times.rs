//! The time of each phase of a run: the slowest rank's. A phase that runs several times counts with its fastest.

use super::World;
use std::fmt;
use std::time::{Duration, Instant};

/// Phases in the order in which they ran.
#[derive(Clone, Debug, Default)]
pub struct PhaseTimes {
    phases: Vec<(&'static str, Duration)>,
}

impl PhaseTimes {
    /// Runs a phase after all ranks have come so far, and notes its time: that of the slowest rank.
    ///
    /// # Errors
    ///
    /// What the phase returns.
    pub fn measure<R, E>(
        &mut self,
        world: &World,
        phase: &'static str,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        world.barrier();
        let started = Instant::now();
        let result = work()?;
        self.note(phase, world.max(started.elapsed().as_secs_f64()));
        Ok(result)
    }

    /// Notes the seconds of a phase.
    pub fn note(&mut self, phase: &'static str, seconds: f64) {
        let time = Duration::from_secs_f64(seconds);
        match self.phases.iter_mut().find(|(name, _)| *name == phase) {
            Some((_, least)) => *least = time.min(*least),
            None => self.phases.push((phase, time)),
        }
    }

    /// The time of a phase; 0 if it has not run.
    pub fn of(&self, phase: &str) -> Duration {
        let found = self.phases.iter().find(|(name, _)| *name == phase);
        found.map_or(Duration::ZERO, |(_, time)| *time)
    }

    /// The phases and their times.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        self.phases.iter().copied()
    }
}

impl fmt::Display for PhaseTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (phase, time)) in self.phases.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{phase} {:.3} ms", time.as_secs_f64() * 1e3)?;
        }
        Ok(())
    }
}
