//! What this program shows to be let in, as it stands in files at this moment.

use std::{
    fs::File,
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::header::HeaderValue;

use super::super::settings::Authorization;

/// A token is some kilobytes, and a chain of certificates some more.
const MOST: u64 = 1 << 20;

/// What every container of Kubernetes may read, and nobody else: its modes cannot be changed.
const MOUNTED_SECRETS: &str = "/var/run/secrets";

/// The header, read anew of its file: tokens of Kubernetes are replaced every hour.
pub(super) fn authorization(of: &Authorization) -> Result<Option<HeaderValue>, String> {
    let (text, path) = match of {
        Authorization::None => return Ok(None),
        Authorization::BearerFile(path) => (format!("Bearer {}", secret_line(path)?), path),
        Authorization::Basic { user, password_file } => {
            let pair = format!("{user}:{}", secret_line(password_file)?);
            (format!("Basic {}", STANDARD.encode(pair)), password_file)
        }
    };
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| format!("{} has characters that no header can have; put the token alone there", path.display()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn secret_line(path: &Path) -> Result<String, String> {
    let text = secret(path)?;
    let text = String::from_utf8(text).map_err(|_| format!("{} is not text; name another file", path.display()))?;
    let line = text.trim();
    if line.is_empty() {
        Err(format!("{} is empty; put the secret there", path.display()))
    } else {
        Ok(line.to_owned())
    }
}

/// A file that others may not read.
pub(super) fn secret(path: &Path) -> Result<Vec<u8>, String> {
    let (file, metadata) = open(path)?;
    if metadata.mode() & 0o004 != 0 && !path.starts_with(MOUNTED_SECRETS) {
        let path = path.display();
        return Err(format!("{path} holds a secret and can be read by others; run `chmod 600 {path}`"));
    }
    bytes(file, path)
}

/// A file that everybody may read.
pub(super) fn public(path: &Path) -> Result<Vec<u8>, String> {
    bytes(open(path)?.0, path)
}

fn open(path: &Path) -> Result<(File, std::fs::Metadata), String> {
    let unreadable = |error| format!("cannot read {}: {error}", path.display());
    // To open a pipe would wait for whoever writes to it.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(format!("{} is not a regular file; name one", path.display()));
    }
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    Ok((file, metadata))
}

fn bytes(file: File, path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let length = file.take(MOST + 1).read_to_end(&mut bytes);
    let length = length.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if length as u64 > MOST {
        return Err(format!("{} is larger than {MOST} bytes; name another file", path.display()));
    }
    Ok(bytes)
}

/// Differs where a file has changed.
pub(super) type Stamp = Option<(u64, u64, SystemTime)>;

/// Of each of these files.
pub(super) fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.ino(), metadata.len(), metadata.modified().ok()?))
    };
    paths.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::*;

    #[test]
    fn a_token_is_read_anew_and_only_where_others_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let of = Authorization::BearerFile(path.clone());
        let header = || authorization(&of).map(|value| value.unwrap().to_str().unwrap().to_owned());
        assert!(header().unwrap_err().contains("cannot read"));
        fs::write(&path, "one\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(header().unwrap_err().contains("chmod 600"));
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert_eq!(header().unwrap(), "Bearer one");
        fs::write(&path, "two").unwrap();
        assert_eq!(header().unwrap(), "Bearer two");
        for (text, cause) in [(" \n", "empty"), ("a\nb", "no header")] {
            fs::write(&path, text).unwrap();
            let error = header().unwrap_err();
            assert!(error.contains(cause) && !error.contains("a\nb"), "{error}");
        }
    }

    #[test]
    fn a_password_is_told_as_basic_authentication_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let password_file = folder.path().join("password");
        fs::write(&password_file, "päss\n").unwrap();
        fs::set_permissions(&password_file, Permissions::from_mode(0o600)).unwrap();
        let of = Authorization::Basic { user: "ana".to_owned(), password_file };
        assert_eq!(authorization(&of).unwrap().unwrap(), "Basic YW5hOnDDpHNz");
        assert!(!format!("{:?}", authorization(&of).unwrap()).contains("YW5h"), "it stays out of logs");
    }
}
