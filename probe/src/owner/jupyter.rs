//! Detection of the notebook that a process belongs to.
//!
//! Every Jupyter kernel, regardless of its language, is started with the path of its connection
//! file, `kernel-<id>.json`, as an argument. Jupyter writes the notebook's path and the kernel's
//! name into that file.

use std::io::{self, ErrorKind};

use serde::Deserialize;

use crate::model::{Absence, Notebook};

/// The fields that Jupyter adds to the connection file. They are missing if Jupyter did not start
/// the kernel.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConnectionFile {
    jupyter_session: String,
    kernel_name: String,
}

/// Returns the notebook of the kernel with these arguments, or `None` if the process is not a
/// kernel.
///
/// `read` reads the connection file. Its argument is the path below the process's root directory.
pub(super) fn read_notebook(
    pid: u32,
    arguments: &[String],
    read: impl FnOnce(&str) -> io::Result<Vec<u8>>,
) -> Option<Notebook> {
    let (path, kernel_id) = find_connection_file(arguments)?;
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
    let reported = |text: String| (!text.is_empty()).then_some(text);
    Some(Notebook {
        kernel_id: super::clean_id(&kernel_id),
        kernel_name: reported(super::clean_name(&connection.kernel_name)),
        path: reported(super::clean_line(&connection.jupyter_session))
            .ok_or(without)
            .into(),
        kernel_pid: pid,
    })
}

/// Returns `true` if `arguments` are those of a Jupyter kernel.
pub(super) fn is_kernel(arguments: &[String]) -> bool {
    find_connection_file(arguments).is_some()
}

/// Returns the argument with the path of the connection file, and the kernel's ID.
fn find_connection_file(arguments: &[String]) -> Option<(&String, String)> {
    arguments
        .iter()
        .find_map(|argument| Some((argument, parse_kernel_id(argument)?)))
}

/// Returns the ID in `…/kernel-<id>.json`. An option such as `--connection-file=` may precede the
/// path.
fn parse_kernel_id(argument: &str) -> Option<String> {
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

    fn read_missing(_: &str) -> io::Result<Vec<u8>> {
        Err(ErrorKind::NotFound.into())
    }

    fn split_arguments(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn kernel_is_recognized_by_connection_file() {
        for line in [
            "/usr/bin/python3 -m ipykernel_launcher -f /tmp/none/kernel-1b2c.json",
            "R --slave -e IRkernel::main() --args /tmp/none/kernel-1b2c.json",
            "julia -i --color=yes kernel.jl /tmp/none/kernel-1b2c.json",
            "xcpp --connection-file=/tmp/none/kernel-1b2c.json",
        ] {
            assert_eq!(
                read_notebook(7, &split_arguments(line), read_missing)
                    .unwrap()
                    .kernel_id,
                "1b2c",
                "{line}"
            );
        }
        for line in [
            "python3 train.py kernel-.json",
            "vi kernel-1b2c.json.bak",
            "python3",
        ] {
            assert_eq!(
                read_notebook(7, &split_arguments(line), read_missing),
                None,
                "{line}"
            );
        }
    }

    #[test]
    fn connection_file_has_notebook_and_kernel() {
        let read = |path: &str| {
            assert_eq!(path, "run/kernel-1b2c.json");
            Ok(br#"{"key":"secret","kernel_name":"python3","jupyter_session":"/home/ana/train.ipynb"}"#.to_vec())
        };
        let known = read_notebook(
            7,
            &split_arguments("python3 -f /run/kernel-1b2c.json"),
            read,
        )
        .unwrap();
        assert_eq!(known.path, Reading::Now("/home/ana/train.ipynb".to_owned()));
        assert_eq!(known.kernel_name.as_deref(), Some("python3"));
        assert_eq!(known.kernel_pid, 7);
    }

    #[test]
    fn missing_notebook_path_has_reason() {
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
            let known = read_notebook(
                7,
                &split_arguments("python3 -f /run/kernel-1b2c.json"),
                read,
            )
            .unwrap();
            assert_eq!(known.path, Reading::Absent(reason));
        }
    }
}
