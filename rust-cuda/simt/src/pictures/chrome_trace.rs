//! Traces of warps in the Trace Event Format, for Perfetto and `chrome://tracing`.

use std::fmt::Write;

use super::sources::place;
use crate::counters::{LaunchReport, TracedRequest};

/// The requests of the traced warps as JSON in Chrome's Trace Event Format.
///
/// A block is a process and a warp a thread. Each request and each collective operation takes one unit of time, in the
/// order in which its warp executes them: the times are positions, not measurements. Warps are not aligned with each
/// other.
#[must_use]
pub fn chrome_trace(report: &LaunchReport) -> String {
    let mut events = Vec::new();
    let mut named = None;
    // Viewers treat thread 0 as the idle thread, and expect a number for each thread of all processes.
    for (thread, trace) in (1..).zip(&report.traces) {
        let process = trace.block + 1;
        if named != Some(trace.block) {
            let name = format!("{}, block {}", report.kernel, trace.block);
            events.push(name_event("process_name", process, thread, &name));
            named = Some(trace.block);
        }
        let name = format!("warp {}", trace.warp);
        events.push(name_event("thread_name", process, thread, &name));
        let requests = trace.requests.iter().enumerate();
        events.extend(requests.map(|(time, request)| event(request, time, process, thread)));
    }
    format!("{{\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
}

/// The name of a process or of a thread.
fn name_event(kind: &str, process: u64, thread: u64, name: &str) -> String {
    let name = quoted(name);
    format!(
        r#"{{"name":"{kind}","ph":"M","pid":{process},"tid":{thread},"args":{{"name":{name}}}}}"#
    )
}

/// A request as an event with a start and a duration.
fn event(request: &TracedRequest, time: usize, process: u64, thread: u64) -> String {
    let kind = request.kind.name();
    let place = place(&request.file, request.line);
    let mut arguments = format!(
        r#""file":{},"line":{},"active lanes":{}"#,
        quoted(&request.file),
        request.line,
        request.lanes.count_ones()
    );
    if request.kind.is_global() {
        let sectors = request.global_counters().sectors;
        let _ = write!(
            arguments,
            r#","bytes of a lane":{},"sectors":{sectors}"#,
            request.bytes
        );
    }
    if request.kind.is_shared() {
        let shared = request.shared_counters();
        let _ = write!(
            arguments,
            r#","bytes of a lane":{},"wavefronts":{},"bank conflicts":{}"#,
            request.bytes, shared.wavefronts, shared.bank_conflicts
        );
    }
    let name = quoted(&format!("{kind} {place}"));
    let position = format!(r#""ts":{time},"dur":1,"pid":{process},"tid":{thread}"#);
    format!(r#"{{"name":{name},"cat":"{kind}","ph":"X",{position},"args":{{{arguments}}}}}"#)
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if u32::from(control) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_json_are_escaped() {
        assert_eq!(quoted("a \"b\"\\c\n"), r#""a \"b\"\\c\u000a""#);
    }
}
