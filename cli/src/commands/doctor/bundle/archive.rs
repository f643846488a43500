//! The archive as a file: whole or not there at all, for its owner alone.

use std::{
    io::{self, Write},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};

use super::{Content, File};

/// The folder in it. The archive's own name may be that of somebody.
const FOLDER: &str = "gpumon-bundle";

/// The files as a tar.gz.
pub(super) fn pack(files: &[File], at_s: u64) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_mtime(at_s);
        let name = format!("{FOLDER}/{}", file.name);
        match &file.content {
            Content::Bytes(bytes) => {
                header.set_size(bytes.len() as u64);
                header.set_mode(0o644);
                archive.append_data(&mut header, name, bytes.as_slice())?;
            }
            Content::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                header.set_mode(0o777);
                archive.append_link(&mut header, name, target)?;
            }
        }
    }
    archive.into_inner()?.finish()
}

/// Writes a new file; one that is there is left alone.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // Mode 0600, and gone where anything fails.
    let mut file = tempfile::Builder::new()
        .prefix(".gpumon-bundle-")
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}
