//! Reading an archive.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;

use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};

use crate::index::{self, IndexError, Module};

/// The member that is the index.
pub(crate) const INDEX: &str = "index";
/// The member that is the stamp.
pub(crate) const STAMP: &str = "stamp";

/// An archive of PTX modules. To open one reads its index; each module is unpacked when it is asked for.
#[derive(Debug)]
pub struct Archive {
    zip: ZipSliceArchive<Cow<'static, [u8]>>,
    members: HashMap<String, Member>,
    modules: Vec<Module>,
    /// The places in `modules` of those that have a kernel.
    by_kernel: HashMap<String, Vec<usize>>,
}

/// Where a member lies.
#[derive(Clone, Copy, Debug)]
struct Member {
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
}

/// Why bytes are no archive of PTX modules.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// They are no zip file, or a damaged one.
    #[error("this is no archive of PTX modules: {0}")]
    Zip(#[from] rawzip::Error),
    /// A member is missing.
    #[error("the archive has no member `{0}`")]
    NoMember(String),
    /// A member cannot be unpacked.
    #[error("the archive's member `{member}` cannot be read: {source}")]
    Member {
        /// The member.
        member: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The index is none.
    #[error("the archive's index cannot be read: {0}")]
    Index(#[from] IndexError),
}

impl Archive {
    /// Reads what the archive has, but no module yet.
    ///
    /// # Errors
    ///
    /// The bytes are no zip file, or it has no index, or one that names modules that are not there.
    pub fn open(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Archive, ArchiveError> {
        let zip = ZipArchive::from_slice(bytes.into())?;
        let mut members = HashMap::new();
        let mut entries = zip.entries();
        while let Some(entry) = entries.next_entry()? {
            let name = String::from_utf8_lossy(entry.file_path().as_ref()).into_owned();
            let member = Member {
                place: entry.wayfinder(),
                method: entry.compression_method(),
            };
            members.insert(name, member);
        }
        let mut archive = Archive {
            zip,
            members,
            modules: Vec::new(),
            by_kernel: HashMap::new(),
        };
        archive.modules = index::parse(&archive.read(INDEX)?)?;
        for (place, module) in archive.modules.iter().enumerate() {
            if !archive.members.contains_key(&module.name) {
                return Err(ArchiveError::NoMember(module.name.clone()));
            }
            for kernel in &module.kernels {
                let places = archive.by_kernel.entry(kernel.clone()).or_default();
                places.push(place);
            }
        }
        Ok(archive)
    }

    /// The modules, sorted by name.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The modules that have the entry point `kernel`, one for each target.
    pub fn modules_of(&self, kernel: &str) -> impl Iterator<Item = &Module> {
        let places = self.by_kernel.get(kernel).into_iter().flatten();
        places.map(|&place| &self.modules[place])
    }

    /// The module with the entry point `kernel` for the newest target that runs on a GPU of compute capability `gpu`,
    /// major and minor.
    pub fn module_for(&self, kernel: &str, gpu: (u32, u32)) -> Option<&Module> {
        let running = self
            .modules_of(kernel)
            .filter(|module| module.target.runs_on(gpu));
        running.max_by_key(|module| module.target)
    }

    /// The text of a module.
    ///
    /// # Errors
    ///
    /// It is not in this archive, or cannot be unpacked.
    pub fn text(&self, module: &Module) -> Result<String, ArchiveError> {
        self.read(&module.name)
    }

    /// What the modules were made from.
    ///
    /// # Errors
    ///
    /// The archive has no stamp, or it cannot be unpacked.
    pub fn stamp(&self) -> Result<String, ArchiveError> {
        self.read(STAMP)
    }

    /// A checksum of the whole archive. Archives of other kernels have other ones, but for one in four billion.
    pub fn checksum(&self) -> u32 {
        let mut crc = flate2::Crc::new();
        crc.update(self.zip.get_ref());
        crc.sum()
    }

    /// A member, unpacked; its checksum is that of the zip file.
    fn read(&self, name: &str) -> Result<String, ArchiveError> {
        let member = self.members.get(name);
        let &Member { place, method } =
            member.ok_or_else(|| ArchiveError::NoMember(name.to_owned()))?;
        let entry = self.zip.get_entry(place)?;
        let packed = entry.data();
        let mut text = String::new();
        let read = match method {
            CompressionMethod::STORE => entry.verifying_reader(packed).read_to_string(&mut text),
            CompressionMethod::DEFLATE => entry
                .verifying_reader(DeflateDecoder::new(packed))
                .read_to_string(&mut text),
            _ => Err(std::io::Error::other(format!(
                "it is compressed by {method:?}, wanted is deflate"
            ))),
        };
        read.map_err(|source| ArchiveError::Member {
            member: name.to_owned(),
            source,
        })?;
        Ok(text)
    }
}
