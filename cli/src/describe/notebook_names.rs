//! Names of notebooks: for each path, the shortest suffix that no other path shares. The web page
//! follows the same rule, and `tests/notebook-names.json` contains test cases for both
//! implementations.

use std::collections::HashMap;

use gpumon_probe::model::{Process, Sample};

/// The shortest unique names of notebooks, by path.
#[derive(Debug, Default)]
pub(crate) struct NotebookNames(HashMap<String, String>);

impl NotebookNames {
    pub(crate) fn new<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let ends: HashMap<&str, Vec<String>> = paths
            .into_iter()
            .map(|path| (path, list_path_ends(path)))
            .collect();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for end in ends.values().flatten() {
            *counts.entry(end.clone()).or_default() += 1;
        }
        let name = |(path, ends): (&str, Vec<String>)| {
            let name = ends.into_iter().find(|end| counts.get(end) == Some(&1));
            (path.to_owned(), name.unwrap_or_else(|| path.to_owned()))
        };
        Self(ends.into_iter().map(name).collect())
    }

    /// Returns the names of all notebooks with processes on a GPU.
    pub(crate) fn from_sample(sample: &Sample) -> Self {
        let processes = sample
            .gpus
            .iter()
            .filter_map(|gpu| gpu.processes.value())
            .flatten();
        Self::new(processes.filter_map(find_notebook_path))
    }

    pub(crate) fn find_by_process(&self, process: &Process) -> Option<&str> {
        self.find_by_path(find_notebook_path(process)?)
    }

    pub(crate) fn find_by_path(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }
}

/// Returns the path of the notebook to which the process belongs: the process is the notebook's
/// kernel or was started by it.
pub(crate) fn find_notebook_path(process: &Process) -> Option<&str> {
    process
        .owner
        .value()?
        .notebook
        .as_ref()?
        .path
        .value()
        .map(String::as_str)
}

/// Returns the candidate names of a path: its suffixes, from the shortest to the whole path.
fn list_path_ends(path: &str) -> Vec<String> {
    let (folder, base) = path
        .rsplit_once('/')
        .map_or((None, path), |(folder, base)| (Some(folder), base));
    let shown = match (find_console_number(base), folder) {
        (None, _) => path.to_owned(),
        (Some(number), None) => format!("Console {number}"),
        (Some(number), Some(folder)) => format!("{folder}/Console {number}"),
    };
    let parts: Vec<&str> = shown.split('/').filter(|part| !part.is_empty()).collect();
    let mut ends: Vec<String> = (0..parts.len())
        .rev()
        .map(|start| parts[start..].join("/"))
        .collect();
    if ends.last() != Some(&shown) {
        ends.push(shown);
    }
    ends
}

/// Returns the number of a console, such as 1, from the last part of its session's path. JupyterLab
/// requests the path `console-1-<uuid>`, which Jupyter shows as `Console 1`.
fn find_console_number(base: &str) -> Option<&str> {
    let is_number =
        |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_uuid = |text: &str| {
        text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            })
    };
    let asked = base
        .strip_prefix("console-")
        .and_then(|rest| rest.split_once('-'));
    let asked = asked
        .filter(|(_, uuid)| is_uuid(uuid))
        .map(|(number, _)| number);
    asked
        .or_else(|| base.strip_prefix("Console "))
        .filter(is_number)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Case {
        name: String,
        paths: Vec<String>,
        names: Vec<String>,
    }

    #[test]
    fn notebooks_have_shortest_distinct_names() {
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../../../tests/notebook-names.json")).unwrap();
        for Case { name, paths, names } in cases {
            let known = NotebookNames::new(paths.iter().map(String::as_str));
            let found: Vec<_> = paths
                .iter()
                .map(|path| known.find_by_path(path).unwrap())
                .collect();
            assert_eq!(found, names, "{name}");
        }
    }
}
