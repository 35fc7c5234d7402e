//! Which entry points the phases of a product launch, from runs that are not timed.

use serde::Serialize;
use warprow::DeviceCsr;
use warprow::device::Device;
use warprow::operand::OperandError;
use warprow::spgemm::{Spgemm, SpgemmElement, SpgemmOptions, multiply};

/// The entry points of each phase, each once. `scripts/instances-by-evidence` reads them; a field belongs to the time
/// of the same name in a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Launched {
    /// Of a whole multiplication.
    #[serde(rename = "entry_points")]
    multiplication: Vec<&'static str>,
    /// Of the symbolic phase.
    #[serde(rename = "symbolic_entry_points")]
    symbolic: Vec<&'static str>,
    /// Of the first run of the numeric phase.
    #[serde(rename = "numeric_first_entry_points")]
    numeric_first: Vec<&'static str>,
    /// Of the runs after it.
    #[serde(rename = "numeric_entry_points")]
    numeric: Vec<&'static str>,
}

impl Launched {
    /// Those of `C = A B`.
    ///
    /// # Errors
    ///
    /// The operation's.
    pub fn of<T: SpgemmElement>(
        device: &Device,
        a: &DeviceCsr<T>,
        b: &DeviceCsr<T>,
        options: SpgemmOptions,
    ) -> Result<Self, OperandError> {
        let multiplication = logged(device, || multiply(a, b, options).map(drop))?;
        let mut spgemm = None;
        let symbolic = logged(device, || {
            spgemm = Some(Spgemm::symbolic(a.pattern(), b.pattern(), options)?);
            Ok(())
        })?;
        let spgemm: Spgemm<T> = spgemm.expect("the phase has succeeded");
        let run = || spgemm.numeric(a.values(), b.values()).map(drop);
        Ok(Self {
            multiplication,
            symbolic,
            numeric_first: logged(device, run)?,
            numeric: logged(device, run)?,
        })
    }
}

/// What `run` launches, each entry point once.
fn logged(
    device: &Device,
    run: impl FnOnce() -> Result<(), OperandError>,
) -> Result<Vec<&'static str>, OperandError> {
    let log = device.log_launches();
    run()?;
    Ok(log.launches().into_keys().collect())
}
