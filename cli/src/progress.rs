//! A bar on the standard error for work that takes long. It is not drawn where that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::time::Duration;
use warprow::Device;

/// A bar for steps, whose number is set later.
#[cfg(feature = "bench")]
pub fn steps() -> ProgressBar {
    let bar = ProgressBar::new(0).with_style(style());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Work of unknown length, such as reading a file.
pub fn waiting(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Runs `work`, and draws how far the emulator's launches are.
pub fn emulated<R>(device: &Device, what: &str, work: impl FnOnce() -> R) -> R {
    let bar = ProgressBar::new(0)
        .with_style(style())
        .with_message(what.to_owned());
    let shown = bar.clone();
    device.set_progress(Some(Arc::new(move |done, total| {
        shown.set_length(total);
        shown.set_position(done);
    })));
    let result = work();
    device.set_progress(None);
    bar.finish_and_clear();
    result
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}%, {eta} left");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}
