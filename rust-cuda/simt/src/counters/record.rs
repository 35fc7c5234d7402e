//! Records what lanes do, at which places of the kernel.

pub(crate) mod events;
pub(crate) mod instruction;
mod links;
pub(crate) mod recorder;
pub(crate) mod site;
mod source;
mod stack;
pub(crate) mod successions;
