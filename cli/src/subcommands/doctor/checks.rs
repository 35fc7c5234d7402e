//! What a check finds; the checks of the program itself.

use crate::commands::Global;
use crate::failure::Result;
use crate::output::Out;
use crate::terminal;
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use warprow::device::{DEVICE_VARIABLE, DeviceProfile, PROFILE_VARIABLE, Selector};

/// The columns of the names of checks.
const NAME: usize = 18;

/// How a check ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It works.
    Ok,
    /// It is missing, and not everybody needs it.
    Missing,
    /// It is there, or asked for, and does not work.
    Fails,
}

/// What a check has found.
#[derive(Debug)]
pub struct Check {
    pub name: String,
    pub status: Status,
    pub found: String,
    /// What to do.
    pub advice: Option<String>,
}

impl Check {
    pub fn ok(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, Status::Ok, found, None)
    }

    pub fn missing(
        name: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(name, Status::Missing, found, Some(advice.into()))
    }

    pub fn fails(
        name: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self::new(name, Status::Fails, found, Some(advice.into()))
    }

    fn new(
        name: impl Into<String>,
        status: Status,
        found: impl Into<String>,
        advice: Option<String>,
    ) -> Self {
        Self {
            name: name.into(),
            status,
            found: found.into(),
            advice,
        }
    }

    /// Prints the check, and below it what to do.
    pub fn print(&self, out: &mut Out) -> Result<()> {
        let (word, color) = match self.status {
            Status::Ok => ("ok", AnsiColor::Green),
            Status::Missing => ("missing", AnsiColor::Yellow),
            Status::Fails => ("FAILS", AnsiColor::Red),
        };
        let style = Style::new().fg_color(Some(color.into()));
        let indent = " ".repeat(8 + NAME + 1);
        let width = terminal::width().saturating_sub(indent.len()).max(30);
        let found = terminal::wrapped(&self.found, width).replace('\n', &format!("\n{indent}"));
        out.text(&format!(
            "{style}{word:<8}{style:#}{:<NAME$} {found}\n",
            self.name
        ))?;
        if let Some(advice) = &self.advice {
            let advice = terminal::wrapped(&format!("-> {advice}"), width);
            out.text(&format!(
                "{indent}{}\n",
                advice.replace('\n', &format!("\n{indent}   "))
            ))?;
        }
        Ok(())
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "status": match self.status {
                Status::Ok => "ok",
                Status::Missing => "missing",
                Status::Fails => "fails",
            },
            "found": self.found,
            "advice": self.advice,
        })
    }
}

/// The versions.
pub fn program(_: &Global, checks: &mut Vec<Check>) {
    let version = env!("CARGO_PKG_VERSION");
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let found = format!("{version} on {system}");
    checks.push(if cfg!(debug_assertions) {
        let advice = "build with --release: the emulator is several times as fast";
        Check::missing("warprow", format!("{found}, not optimised"), advice)
    } else {
        Check::ok("warprow", found)
    });
}

/// The variables that the library reads.
pub fn environment(_: &Global, checks: &mut Vec<Check>) {
    match Selector::from_environment() {
        Ok(selector) => checks.push(Check::ok(DEVICE_VARIABLE, selector.to_string())),
        Err(error) => {
            let advice = format!("unset {DEVICE_VARIABLE}, or set it to one of these");
            checks.push(Check::fails(DEVICE_VARIABLE, error.to_string(), advice));
        }
    }
    match DeviceProfile::from_environment() {
        Ok(Some(profile)) => checks.push(Check::ok(PROFILE_VARIABLE, profile.name)),
        Ok(None) => {}
        Err(error) => {
            let advice =
                format!("unset {PROFILE_VARIABLE}, or name a file that `warprow tune` has written");
            checks.push(Check::fails(PROFILE_VARIABLE, error.to_string(), advice));
        }
    }
    if let Ok(visible) = std::env::var("CUDA_VISIBLE_DEVICES") {
        checks.push(Check::ok("CUDA_VISIBLE_DEVICES", visible));
    }
}
