//! Writing an archive.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, ZipArchiveWriter};

use crate::archive::{INDEX, STAMP};
use crate::index::{self, Module};

/// The date of all members, so that the same texts give the same bytes at any time: the first that a zip file can have.
const DATE: UtcDateTime = match UtcDateTime::from_components(1980, 1, 1, 0, 0, 0, 0) {
    Some(date) => date,
    None => panic!("this is a date"),
};

/// The bytes of an archive of these modules with their texts. Equal modules and stamps give equal bytes, whatever their
/// order.
pub fn write<'a>(modules: impl IntoIterator<Item = (Module, &'a str)>, stamp: &str) -> Vec<u8> {
    let mut modules: Vec<(Module, &str)> = modules.into_iter().collect();
    modules.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    let (modules, texts): (Vec<Module>, Vec<&str>) = modules.into_iter().unzip();
    let index = index::format(&modules);
    let names = modules.iter().map(|module| module.name.as_str());
    let members = [(INDEX, index.as_str()), (STAMP, stamp)];
    zip(members.into_iter().chain(names.zip(texts)))
        .expect("a zip file of members with different names is written to memory")
}

fn zip<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Vec<u8>, rawzip::Error> {
    let mut zip = ZipArchiveWriter::new(Vec::new());
    for (name, text) in members {
        let file = zip
            .new_file(name)
            .compression_method(CompressionMethod::DEFLATE)
            .last_modified(DATE);
        let (mut entry, config) = file.start()?;
        let encoder = DeflateEncoder::new(&mut entry, Compression::best());
        let mut writer = config.wrap(encoder);
        writer.write_all(text.as_bytes())?;
        let (encoder, descriptor) = writer.finish()?;
        encoder.finish()?;
        entry.finish(descriptor)?;
    }
    zip.finish()
}
