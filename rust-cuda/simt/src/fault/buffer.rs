//! Positions in memory: the elements of a buffer, and the kernel's parameter that points to them.

use std::fmt;

/// A pointer among the arguments of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name of the parameter. For a field of a struct, those of the fields follow: `a.values`.
    pub name: String,
    /// The address that it points to.
    pub address: u64,
    /// The name of the elements' type: `f32`.
    pub element: &'static str,
    /// The size of an element in bytes, not zero.
    pub bytes: u32,
}

/// What is known of the buffer that a fault is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// The size of an element in bytes, as it was allocated; zero if it is not known.
    pub element_bytes: u64,
    /// The name of the elements' type; empty if it is not known.
    pub element: &'static str,
    /// The parameters that point to it, all to the same address; empty if they are not known.
    pub parameters: Vec<Parameter>,
}

/// Prints a position: `x[100] of 100 f32 (parameter x)`.
pub(crate) struct Position<'a> {
    address: u64,
    /// The offset of the address in its allocation, and the size of the allocation in bytes.
    extent: Option<(i64, u64)>,
    buffer: &'a Buffer,
}

impl<'a> Position<'a> {
    /// The position at an offset in an allocation of `size` bytes.
    pub fn within(address: u64, offset: i64, size: u64, buffer: &'a Buffer) -> Self {
        let extent = Some((offset, size));
        Self {
            address,
            extent,
            buffer,
        }
    }

    /// A position of which no allocation is known.
    pub fn alone(address: u64, buffer: &'a Buffer) -> Self {
        Self {
            address,
            extent: None,
            buffer,
        }
    }
}

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            extent,
            buffer,
        } = *self;
        if let [first, ..] = &*buffer.parameters {
            let bytes = i64::from(first.bytes.max(1));
            let distance = address.wrapping_sub(first.address).cast_signed();
            match distance.rem_euclid(bytes) {
                0 => {}
                byte => write!(f, "byte {byte} of ")?,
            }
            write!(f, "{}[{}]", first.name, distance.div_euclid(bytes))?;
            if let Some((offset, size)) = extent {
                let length = size.cast_signed() - (offset - distance);
                write!(f, " of {} {}", length.div_euclid(bytes), first.element)?;
            }
            let names: Vec<&str> = buffer.parameters.iter().map(Parameter::root).collect();
            let plural = if names.len() > 1 { "s" } else { "" };
            return write!(f, " (parameter{plural} {})", names.join(", "));
        }
        let bytes = buffer.element_bytes.cast_signed();
        match extent {
            Some((offset, size)) if bytes > 0 && offset.rem_euclid(bytes) == 0 => {
                let (index, count) = (offset.div_euclid(bytes), size.cast_signed() / bytes);
                write!(f, "element {index} of {count}")?;
                match buffer.element {
                    "" => write!(f, ", of {bytes} bytes each")?,
                    element => write!(f, " {element}")?,
                }
                write!(f, " (address {address:#x})")
            }
            Some((offset, size)) => {
                write!(f, "byte {offset} of {size} (address {address:#x})")
            }
            None => write!(f, "address {address:#x}"),
        }
    }
}

impl Parameter {
    /// The name of the parameter without fields.
    fn root(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }
}
