//! Panics in kernels. A hook saves message and line for the fault, instead of printing them.

use std::any::Any;
use std::panic::{set_hook, take_hook};
use std::sync::Once;

use crate::block::current::try_current;
use crate::block::{Block, Lane};
use crate::fault::{FaultKind, SourceLocation};

/// Wraps the panic hook of the process, once. The default hook may print a backtrace, which could overflow the stack of
/// a fiber.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    if std::thread::panicking() {
        // The hook cannot be replaced during a panic. A panic in the kernel is then printed, and still reported.
        return;
    }
    INSTALLED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| match try_current() {
            Some(lane) => {
                let message = info
                    .payload_as_str()
                    .unwrap_or("(not a message)")
                    .to_owned();
                if let Some(location) = info.location() {
                    let location = SourceLocation {
                        file: location.file().to_owned().into(),
                        line: location.line(),
                        column: location.column(),
                    };
                    *lane.block().panic.borrow_mut() = Some((message, location));
                }
                // The destructors that run now must not wait for other threads.
                lane.block().end_steps();
            }
            None => previous(info),
        }));
    });
}

/// Reports the panic of a thread of the block.
pub(crate) fn report(block: &Block, lane: &Lane, payload: &(dyn Any + Send)) {
    let (message, location) = block.panic.take().unwrap_or_else(|| {
        // The program has replaced the hook, so only the payload is known.
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("(not a message)");
        let location = SourceLocation {
            file: "unknown".into(),
            line: 0,
            column: 0,
        };
        (message.to_owned(), location)
    });
    block.report(lane, FaultKind::Panic { message }, location);
}
