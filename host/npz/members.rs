//! The arrays of an npz file, unpacked when they are asked for.

use std::io::Read;

use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};

use super::NpzProblem;
use crate::npy::{self, Integers, NpyProblem};
use crate::quote::quote;
use crate::scalar::Scalar;

/// The most members of a file that are looked at; a matrix has six.
const MOST_MEMBERS: usize = 1000;

/// The members of a zip file.
pub(super) struct Members<'a> {
    zip: ZipSliceArchive<&'a [u8]>,
    members: Vec<(String, ZipArchiveEntryWayfinder, CompressionMethod)>,
}

impl<'a> Members<'a> {
    /// Reads the directory.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, NpzProblem> {
        let zip = ZipArchive::from_slice(bytes).map_err(no_zip)?;
        let mut members = Vec::new();
        let mut entries = zip.entries();
        while members.len() < MOST_MEMBERS
            && let Some(entry) = entries.next_entry().map_err(no_zip)?
        {
            let path = entry.file_path();
            let name = String::from_utf8_lossy(path.as_ref());
            let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
            members.push((name, entry.wayfinder(), entry.compression_method()));
        }
        Ok(Self { zip, members })
    }

    /// The numbers of an array of one axis, rounded to `T`.
    pub(super) fn numbers<T: Scalar>(&self, member: &'static str) -> Result<Vec<T>, NpzProblem> {
        let array = self.read(member, |reader, length| npy::parse::<T>(reader, length))?;
        Ok(array.into_raw_vec_and_offset().0)
    }

    /// The whole numbers of an array.
    pub(super) fn integers(&self, member: &'static str) -> Result<Integers, NpzProblem> {
        self.read(member, |reader, length| npy::parse_integers(reader, length))
    }

    /// The text of an array that holds a single string.
    pub(super) fn text(&self, member: &'static str) -> Result<String, NpzProblem> {
        self.read(member, |reader, length| npy::parse_text(reader, length))
    }

    /// What `parse` makes of a member, which it is given with the length that the directory declares, if that is
    /// possible.
    fn read<R>(
        &self,
        member: &'static str,
        parse: impl FnOnce(&mut dyn Read, Option<u64>) -> Result<R, NpyProblem>,
    ) -> Result<R, NpzProblem> {
        let found = self.members.iter().find(|(name, ..)| name == member);
        let &(_, place, method) = found.ok_or_else(|| NpzProblem::Missing {
            member,
            found: self.names(),
        })?;
        let entry = self.zip.get_entry(place).map_err(no_zip)?;
        let packed = entry.data();
        let parsed = match method {
            CompressionMethod::STORE => {
                let length = Some(packed.len() as u64);
                parse(&mut entry.verifying_reader(packed), length)
            }
            CompressionMethod::DEFLATE => {
                // How long it will be is only known afterwards. Memory grows with what has been unpacked.
                let reader = DeflateDecoder::new(packed);
                parse(&mut entry.verifying_reader(reader), None)
            }
            method => {
                let found = format!("{method:?}");
                return Err(NpzProblem::Compression { member, found });
            }
        };
        parsed.map_err(|problem| NpzProblem::Member { member, problem })
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self
            .members
            .iter()
            .map(|(name, ..)| name.as_str())
            .collect();
        match &names[..] {
            [] => "none".to_owned(),
            names => quote(names.join(", ").as_bytes()),
        }
    }
}

fn no_zip(error: rawzip::Error) -> NpzProblem {
    NpzProblem::Zip(quote(error.to_string().as_bytes()))
}
