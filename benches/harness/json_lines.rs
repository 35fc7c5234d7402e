//! The file of a bench's results: a JSON object a line, each with where and when it is from.

use crate::harness::driver_release::driver_release;
use anyhow::Context;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use warprow::device::Device;

/// Where and when results are from.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// The device's name.
    pub device: String,
    /// The newest CUDA version that the driver supports; null on the emulator.
    pub driver: Option<String>,
    /// The driver's release; nothing on the emulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_release: Option<String>,
    /// A checksum of the PTX that was launched; null on the emulator.
    pub ptx: Option<String>,
    /// The greatest clock frequencies in MHz, of the multiprocessors and of the memory; null on the emulator.
    pub clocks_mhz: Option<[u32; 2]>,
    /// The seed of what is random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The day, in UTC.
    date: String,
}

impl Environment {
    /// Of now, on that device.
    pub fn of(device: &Device) -> Self {
        let properties = device.properties();
        let driver = properties.driver;
        Self {
            device: device.name().to_owned(),
            driver: driver.map(|version| format!("CUDA {version}")),
            driver_release: driver.and_then(|_| driver_release()),
            ptx: properties.kernels.map(|checksum| format!("{checksum:08x}")),
            clocks_mhz: properties
                .clock_mhz
                .zip(properties.memory_clock_mhz)
                .map(<[u32; 2]>::from),
            seed: None,
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        }
    }

    /// With the seed of what is random.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self {
            seed: Some(seed),
            ..self
        }
    }
}

/// The file, if there is one. Each result is written at once, so that a run that is cut off leaves what it had.
#[derive(Debug)]
pub struct JsonLines {
    file: Option<File>,
    environment: Environment,
}

impl JsonLines {
    /// Creates the file, or empties it; none for no path.
    ///
    /// # Errors
    ///
    /// The operating system's, with the path.
    pub fn create(path: Option<&Path>, environment: Environment) -> anyhow::Result<Self> {
        let create = |path: &Path| {
            File::create(path).with_context(|| format!("cannot write {}", path.display()))
        };
        let file = path.map(create).transpose()?;
        Ok(Self::to(file, environment))
    }

    /// Writes to that file, if there is one.
    pub fn to(file: Option<File>, environment: Environment) -> Self {
        Self { file, environment }
    }

    /// Adds a result, an object whose fields come first, and returns its line.
    ///
    /// # Errors
    ///
    /// The operating system's; what is no object.
    pub fn write(&mut self, result: &impl Serialize) -> anyhow::Result<String> {
        #[derive(Serialize)]
        struct Object<'a, R: Serialize> {
            #[serde(flatten)]
            result: &'a R,
            #[serde(flatten)]
            environment: &'a Environment,
        }
        let mut line = serde_json::to_string(&Object {
            result,
            environment: &self.environment,
        })?;
        line.push('\n');
        if let Some(file) = &mut self.file {
            file.write_all(line.as_bytes())?;
        }
        Ok(line)
    }
}
