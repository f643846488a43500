//! Small files that are read and replaced as a whole.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, fchown},
    path::{Path, PathBuf},
};

use crate::bounded;

/// The content of a file; `None` where there is none.
///
/// # Errors
/// Where it cannot be read, or has more than `limit` bytes.
pub(crate) fn read(path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Err(invalid("it is no file")),
        Ok(found) if found.len() > limit as u64 => return Err(invalid(format!("it has more than {limit} bytes"))),
        Ok(_) => {}
    }
    bounded::read(path, limit).map(Some)
}

/// What a file has that it cannot have.
pub(crate) fn invalid(cause: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, cause.into())
}

/// Whoever reads it meanwhile, or after a crash, finds the old file or the new one. Only the user of its folder can read
/// it.
///
/// # Errors
/// Where it cannot be written; nothing is left beside it.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // Of an earlier process, or what somebody has put there.
    let _ = fs::remove_file(&beside);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        give_to_owner_of_folder(&file, path);
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// What root writes into the directory of a service is for that service's user. Nobody else can give a file away.
fn give_to_owner_of_folder(file: &File, path: &Path) {
    if let (Some(Ok(folder)), Ok(written)) = (path.parent().map(fs::metadata), file.metadata())
        && folder.uid() != written.uid()
    {
        let _ = fchown(file, Some(folder.uid()), Some(folder.gid()));
    }
}
