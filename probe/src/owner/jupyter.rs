//! Detection of the notebook that a process belongs to.
//!
//! Every Jupyter kernel, regardless of its language, is started with the path of its connection
//! file, `kernel-<id>.json`, as an argument. Jupyter writes the notebook's path and the kernel's
//! name into that file.

use std::io::{self, ErrorKind};

use serde::Deserialize;

use super::clean;
use crate::model::{Absence, Notebook};

/// The fields that Jupyter adds to the connection file. Kernels that Jupyter did not start lack
/// them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConnectionFile {
    jupyter_session: String,
    kernel_name: String,
}

/// Returns the notebook of a kernel with these arguments, or `None` if they are not those of a
/// kernel.
///
/// `read` reads the connection file. Its argument is the path below the process's root.
pub(super) fn notebook(
    pid: u32,
    arguments: &[String],
    read: impl FnOnce(&str) -> io::Result<Vec<u8>>,
) -> Option<Notebook> {
    let (path, kernel_id) = connection(arguments)?;
    let (connection, without): (ConnectionFile, _) = match read(path.trim_start_matches('/')) {
        Ok(bytes) => (
            serde_json::from_slice(&bytes).unwrap_or_default(),
            Absence::Unknown,
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            (ConnectionFile::default(), Absence::Unknown)
        }
        Err(_) => (ConnectionFile::default(), Absence::NoPermission),
    };
    let told = |text: String| (!text.is_empty()).then_some(text);
    Some(Notebook {
        kernel_id: clean::id(&kernel_id),
        kernel_name: told(clean::name(&connection.kernel_name)),
        path: told(clean::line(&connection.jupyter_session))
            .ok_or(without)
            .into(),
        kernel_pid: pid,
    })
}

/// Returns `true` if these are the arguments of a kernel.
pub(super) fn is_kernel(arguments: &[String]) -> bool {
    connection(arguments).is_some()
}

/// Returns the argument with the path of the connection file, and the kernel's ID.
fn connection(arguments: &[String]) -> Option<(&String, String)> {
    arguments
        .iter()
        .find_map(|argument| Some((argument, kernel_id(argument)?)))
}

/// Returns the ID in `…/kernel-<id>.json`, which may follow an option such as
/// `--connection-file=…`.
fn kernel_id(argument: &str) -> Option<String> {
    let file = argument.rsplit(['/', '=']).next()?;
    let id = file.strip_prefix("kernel-")?.strip_suffix(".json")?;
    let is_id = !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_id.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reading;

    fn missing(_: &str) -> io::Result<Vec<u8>> {
        Err(ErrorKind::NotFound.into())
    }

    fn arguments(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn kernels_of_every_language_are_known_by_their_connection_file() {
        for line in [
            "/usr/bin/python3 -m ipykernel_launcher -f /tmp/none/kernel-1b2c.json",
            "R --slave -e IRkernel::main() --args /tmp/none/kernel-1b2c.json",
            "julia -i --color=yes kernel.jl /tmp/none/kernel-1b2c.json",
            "xcpp --connection-file=/tmp/none/kernel-1b2c.json",
        ] {
            assert_eq!(
                notebook(7, &arguments(line), missing).unwrap().kernel_id,
                "1b2c",
                "{line}"
            );
        }
        for line in [
            "python3 train.py kernel-.json",
            "vi kernel-1b2c.json.bak",
            "python3",
        ] {
            assert_eq!(notebook(7, &arguments(line), missing), None, "{line}");
        }
    }

    #[test]
    fn the_connection_file_tells_notebook_and_kernel() {
        let read = |path: &str| {
            assert_eq!(path, "run/kernel-1b2c.json");
            Ok(br#"{"key":"secret","kernel_name":"python3","jupyter_session":"/home/ana/train.ipynb"}"#.to_vec())
        };
        let known = notebook(7, &arguments("python3 -f /run/kernel-1b2c.json"), read).unwrap();
        assert_eq!(known.path, Reading::Now("/home/ana/train.ipynb".to_owned()));
        assert_eq!(known.kernel_name.as_deref(), Some("python3"));
        assert_eq!(known.kernel_pid, 7);
    }
    #[test]
    fn a_path_that_is_not_told_is_absent_with_its_reason() {
        for (read, reason) in [
            (Err(ErrorKind::NotFound), Absence::Unknown),
            (Err(ErrorKind::PermissionDenied), Absence::NoPermission),
            (Err(ErrorKind::InvalidInput), Absence::NoPermission),
            (Ok("{"), Absence::Unknown),
            (
                Ok(r#"{"kernel_name":"python3","jupyter_session":""}"#),
                Absence::Unknown,
            ),
        ] {
            let read = |_: &str| {
                read.map(|text| text.as_bytes().to_vec())
                    .map_err(io::Error::from)
            };
            let known = notebook(7, &arguments("python3 -f /run/kernel-1b2c.json"), read).unwrap();
            assert_eq!(known.path, Reading::Absent(reason));
        }
    }
}
