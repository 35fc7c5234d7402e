//! The file of a profile: JSON, with the unit of a number in the name of its field.

use super::{DeviceProfile, ProfileError};
use crate::device::properties::{DeviceRates, Version};
use serde::{Deserialize, Serialize};
use simt::Hardware;
use std::path::Path;

/// Bytes of a GB.
const GB: u64 = 1_000_000_000;

/// Bytes in GB, rounded.
fn in_gb(bytes: u64) -> u64 {
    (bytes + GB / 2) / GB
}

/// The fields of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    name: String,
    source: String,
    compute_capability: String,
    multiprocessors: u64,
    clock_mhz: u64,
    memory_gb_per_second: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    l2_gb_per_second: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    launch_ns: Option<u64>,
    l1_kib: u64,
    l2_kib: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    l2_partitions: Option<u64>,
    registers: u64,
    max_warps: u64,
    max_blocks: u64,
    shared_kib: u64,
    reserved_shared_kib: u64,
}

impl Fields {
    /// Each number with its name and its greatest value: what it counts fits its type then, also in bytes or hertz.
    fn limits(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let kib = (u32::MAX >> 10).into();
        let count = u32::MAX.into();
        let may_be_absent = [
            ("l2_gb_per_second", self.l2_gb_per_second, count),
            ("launch_ns", self.launch_ns, count),
            ("l2_partitions", self.l2_partitions, 2),
        ];
        let given = may_be_absent
            .into_iter()
            .filter_map(|(name, value, most)| Some((name, value?, most)));
        [
            ("multiprocessors", self.multiprocessors, count),
            ("clock_mhz", self.clock_mhz, count),
            ("memory_gb_per_second", self.memory_gb_per_second, count),
            ("l1_kib", self.l1_kib, kib),
            ("l2_kib", self.l2_kib, count),
            ("registers", self.registers, count),
            ("max_warps", self.max_warps, count),
            ("max_blocks", self.max_blocks, count),
            ("shared_kib", self.shared_kib, kib),
            ("reserved_shared_kib", self.reserved_shared_kib, kib),
        ]
        .into_iter()
        .chain(given)
    }
}

/// The version in a text like `9.0`.
fn version(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some(Version::new(major.parse().ok()?, minor.parse().ok()?))
}

/// The name of the field in a line `"name": value`.
fn field_of(line: &str) -> Option<String> {
    let (name, _) = line.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(name.to_owned())
}

impl DeviceProfile {
    /// Reads the file of a profile, as `warprow tune` writes it. The folder `host/device/profile` has examples.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no JSON, lacks a field or has one that is unknown, or a number is 0 or too large.
    /// The error names the file, the line and the field.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| ProfileError {
            path: path.to_owned(),
            line: None,
            field: None,
            reason: error.to_string(),
        })?;
        Self::parse(&text, path)
    }

    /// The profile in the text of a file.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, ProfileError> {
        let error = |line: usize, reason: String| ProfileError {
            path: path.to_owned(),
            line: Some(line),
            field: text.lines().nth(line.saturating_sub(1)).and_then(field_of),
            reason,
        };
        let fields: Fields =
            serde_json::from_str(text).map_err(|found| error(found.line(), found.to_string()))?;
        let line_of = |name: &str| {
            let is_it = |line: &str| field_of(line).is_some_and(|field| field == name);
            1 + text.lines().position(is_it).unwrap_or(0)
        };
        for (name, value, most) in fields.limits() {
            if value == 0 || value > most {
                let reason = format!("wanted a number from 1 to {most}, found {value}");
                return Err(error(line_of(name), reason));
            }
        }
        let version = version(&fields.compute_capability).ok_or_else(|| {
            let found = &fields.compute_capability;
            let reason = format!("wanted two numbers like \"9.0\", found \"{found}\"");
            error(line_of("compute_capability"), reason)
        })?;
        // Nothing is cut off or overflows: see `limits`.
        let count = |value: u64| value as u32;
        let bytes = |kib: u64| (kib << 10) as u32;
        let hardware = Hardware {
            multiprocessors: count(fields.multiprocessors),
            l1_bytes: bytes(fields.l1_kib),
            l2_bytes: fields.l2_kib << 10,
            registers: count(fields.registers),
            max_warps: count(fields.max_warps),
            max_blocks: count(fields.max_blocks),
            shared_bytes: bytes(fields.shared_kib),
            reserved_shared_bytes: bytes(fields.reserved_shared_kib),
        };
        Ok(Self {
            name: fields.name,
            source: fields.source,
            compute_capability: version,
            hardware,
            rates: DeviceRates {
                clock_hz: fields.clock_mhz * 1_000_000,
                memory_bytes_per_second: fields.memory_gb_per_second * GB,
                l2_bytes_per_second: fields.l2_gb_per_second.map(|rate| rate * GB),
                launch_nanoseconds: fields.launch_ns.map(count),
                l1_bytes: hardware.l1_bytes,
                l2_partitions: (fields.l2_partitions)
                    .map_or_else(|| DeviceRates::l2_partitions_of(version), count),
            },
        })
    }

    /// The text of a file that [`read`](Self::read) reads: rates are rounded to MHz and GB/s, sizes to KiB.
    #[must_use]
    pub fn to_json(&self) -> String {
        let hardware = self.hardware;
        let fields = Fields {
            name: self.name.clone(),
            source: self.source.clone(),
            compute_capability: self.compute_capability.to_string(),
            multiprocessors: hardware.multiprocessors.into(),
            clock_mhz: self.rates.clock_hz / 1_000_000,
            memory_gb_per_second: in_gb(self.rates.memory_bytes_per_second),
            l2_gb_per_second: self.rates.l2_bytes_per_second.map(in_gb),
            launch_ns: self.rates.launch_nanoseconds.map(u64::from),
            l1_kib: u64::from(hardware.l1_bytes) >> 10,
            l2_kib: hardware.l2_bytes >> 10,
            l2_partitions: Some(self.rates.l2_partitions.into()),
            registers: hardware.registers.into(),
            max_warps: hardware.max_warps.into(),
            max_blocks: hardware.max_blocks.into(),
            shared_kib: u64::from(hardware.shared_bytes) >> 10,
            reserved_shared_kib: u64::from(hardware.reserved_shared_bytes) >> 10,
        };
        // Strings and numbers always have a text.
        let mut text = serde_json::to_string_pretty(&fields).unwrap_or_default();
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of the H200's file with another text in the place of one.
    fn error_of(text: &str, other: &str) -> String {
        let file = include_str!("h200.json");
        assert!(file.contains(text), "{text}");
        let changed = file.replacen(text, other, 1);
        let found = DeviceProfile::parse(&changed, Path::new("my.json"));
        found.unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read_again() {
        for profile in DeviceProfile::all() {
            let read = DeviceProfile::parse(&profile.to_json(), Path::new("written"));
            assert_eq!(read.unwrap(), profile);
        }
    }

    #[test]
    fn a_file_without_partitions_has_those_of_its_compute_capability() {
        for profile in DeviceProfile::all() {
            let partitions = format!("  \"l2_partitions\": {},\n", profile.rates.l2_partitions);
            let text = profile.to_json();
            assert!(text.contains(&partitions), "{text}");
            let read = DeviceProfile::parse(&text.replace(&partitions, ""), Path::new("short"));
            assert_eq!(read.unwrap(), profile);
        }
    }

    #[test]
    fn an_error_names_the_file_the_line_and_the_field() {
        for (text, other, wanted) in [
            (
                "4800",
                "0",
                "my.json, line 7, field `memory_gb_per_second`: wanted a number from 1 to",
            ),
            (
                "\"l2_gb_per_second\": ",
                "\"launch_ns\": 5000000000, \"l2_gb_per_second\": ",
                "`launch_ns`: wanted a number from 1 to 4294967295, found 5000000000",
            ),
            (
                "\"l2_partitions\": 2",
                "\"l2_partitions\": 3",
                "line 11, field `l2_partitions`: wanted a number from 1 to 2, found 3",
            ),
            (
                "132",
                "\"many\"",
                "my.json, line 5, field `multiprocessors`: invalid type: string \"many\", expected u64",
            ),
            (
                "1980",
                "-3",
                "line 6, field `clock_mhz`: invalid value: integer `-3`",
            ),
            (
                "\"l2_kib\"",
                "\"l3_kib\"",
                "line 10, field `l3_kib`: unknown field `l3_kib`, expected one of",
            ),
            ("  \"l1_kib\": 256,\n", "", "missing field `l1_kib`"),
            (
                "\"9.0\"",
                "\"nine\"",
                "my.json, line 4, field `compute_capability`: wanted two numbers like \"9.0\", found",
            ),
            ("65536,", "65536", "my.json, line 13"),
        ] {
            let found = error_of(text, other);
            assert!(found.contains(wanted), "{found}");
        }
        let absent = DeviceProfile::read("no/such.json").unwrap_err().to_string();
        assert!(absent.starts_with("no/such.json: "), "{absent}");
    }
}
