//! `warprow doctor`: what works on this machine, and what to do about what does not.

mod caches;
mod checks;
mod devices;
mod toolchain;

use crate::commands::Global;
use crate::failure::Result;
use crate::output::Out;
use checks::{Check, Status};
use clap::Args;
use serde_json::Value;

pub const EXAMPLES: &str = "\
Examples:
  warprow doctor
  warprow doctor --json | jq '.checks[] | select(.status != \"ok\")'";

#[derive(Args)]
pub struct Options {}

/// Everything that is checked, in the order of the report.
const CHECKS: [fn(&Global, &mut Vec<Check>); 5] = [
    checks::program,
    checks::environment,
    devices::all,
    toolchain::all,
    caches::all,
];

pub fn run(_: &Options, global: &Global) -> Result<bool> {
    let mut out = Out::new(global);
    let mut found = Vec::new();
    for check in CHECKS {
        let before = found.len();
        check(global, &mut found);
        for check in &found[before..] {
            check.print(&mut out)?;
        }
    }
    let failed = found
        .iter()
        .filter(|check| check.status == Status::Fails)
        .count();
    let summary = match failed {
        0 => "warprow works here".to_owned(),
        count => format!("{count} of {} checks failed", found.len()),
    };
    out.text(&format!("\n{summary}\n"))?;
    out.value("ok", failed == 0);
    out.value(
        "checks",
        found.iter().map(Check::json).collect::<Vec<Value>>(),
    );
    out.finish()?;
    Ok(failed == 0)
}
