//! The names of GPUs, the labels of MIG devices, and the names of notebooks.

use std::collections::HashMap;

use gpumon_probe::model::{
    Gpu, Inventory, MigDevice, MigInstance, Process, Reading, Sample, Vendor,
};
use gpumon_workload::protocol::DeviceName;
use unicode_width::UnicodeWidthStr;

use crate::terminal::{Layout, line::cut};

/// The maximum width of a name. A longer name would take too much of the space for the readings.
pub(crate) const MAX_NAME_WIDTH: usize = 24;

/// The least informative words of device names, in the order in which they are removed. The GPUs of
/// one machine rarely differ only in these words.
const DISPENSABLE_WORDS: [&str; 9] = [
    "Edition",
    "Generation",
    "GPU",
    "Blackwell",
    "Hopper",
    "Ampere",
    "Ada",
    "Lovelace",
    "Workstation",
];

/// Returns a GPU's name without the vendor's name.
pub(crate) fn format_name_without_vendor(name: Option<&Reading<String>>) -> String {
    let name = name.and_then(Reading::value);
    name.map_or_else(
        || "unknown GPU".to_owned(),
        |name| Vendor::strip_vendor(name).to_owned(),
    )
}

/// Returns the GPU models in the order of their first GPU, such as `2 x H200` or `1 x H200 + 1 x
/// L40S`.
pub(crate) fn format_models(inventory: &Inventory) -> String {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for gpu in &inventory.gpus {
        let name = format_name_without_vendor(Some(&gpu.name));
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
        .iter()
        .map(|(name, count)| format!("{count} x {name}"))
        .collect::<Vec<_>>()
        .join(" + ")
}

/// Returns the label of a device that runs a workload, such as `GPU 0: H200`.
pub(crate) fn label_device(device: &DeviceName) -> String {
    let name = Vendor::strip_vendor(&device.name);
    device
        .index
        .map_or_else(|| capitalize(name), |index| format!("GPU {index}: {name}"))
}

pub(crate) fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Shortens a name to at most `columns` columns. Uninformative words are removed first; then the
/// name is cut.
pub(crate) fn fit_name(name: &str, columns: usize, layout: Layout) -> String {
    let mut words: Vec<&str> = name.split(' ').collect();
    for needless in DISPENSABLE_WORDS {
        if words.join(" ").width() <= columns {
            break;
        }
        words.retain(|word| *word != needless);
    }
    let short = words.join(" ");
    // A name that consists only of uninformative words is kept.
    cut(
        if short.is_empty() { name } else { &short },
        columns,
        layout,
    )
}

/// Returns the label of a GPU, such as `6`, or of one of its MIG devices, such as `6:0` for the
/// first MIG device of GPU 6. Containers select devices by this label.
pub(crate) fn format_device_label(gpu: u32, device: Option<&MigDevice>) -> String {
    match device {
        Some(device) => format!("{gpu}:{}", device.index),
        None => gpu.to_string(),
    }
}

pub(crate) fn find_mig_device(gpu: &Gpu, instance: MigInstance) -> Option<&MigDevice> {
    gpu.mig_devices
        .iter()
        .find(|device| device.instance == instance)
}

/// Returns the MIG device on which a process runs, if the device is known.
pub(crate) fn find_mig_device_of_process<'a>(
    process: &Process,
    gpu: Option<&'a Gpu>,
) -> Option<&'a MigDevice> {
    find_mig_device(gpu?, process.mig?)
}

/// The shortest unique names of notebooks, by path. A name is the shortest suffix of the path that
/// no other path shares. The web page follows the same rule, and `tests/notebook-names.json`
/// contains test cases for both implementations.
#[derive(Debug, Default)]
pub(crate) struct NotebookNames(HashMap<String, String>);

impl NotebookNames {
    pub(crate) fn new<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let ends: HashMap<&str, Vec<String>> = paths
            .into_iter()
            .map(|path| (path, list_path_suffixes(path)))
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
fn list_path_suffixes(path: &str) -> Vec<String> {
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

/// Returns the number of a console from the last part of its session's path. JupyterLab requests
/// the path `console-1-<uuid>` for the console that Jupyter shows as `Console 1`.
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
    use super::*;
    use crate::terminal::{screen::Glyphs, text::UNLIMITED_LAYOUT};

    #[test]
    fn short_names_of_different_gpus_differ() {
        for (name, short) in [
            ("H200", "H200"),
            ("A100-SXM4-80GB", "A100-SXM4-80GB"),
            ("RTX 6000 Ada Generation", "RTX 6000 Ada Generation"),
            ("RTX 4000 SFF Ada Generation", "RTX 4000 SFF Ada"),
            ("GeForce RTX 4090 Laptop GPU", "GeForce RTX 4090 Laptop"),
            (
                "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
                "RTX PRO 6000 Max-Q",
            ),
            (
                "RTX PRO 6000 Blackwell Workstation Edition",
                "RTX PRO 6000 Workstation",
            ),
            (
                "RTX PRO 6000 Blackwell Server Edition",
                "RTX PRO 6000 Server",
            ),
        ] {
            assert_eq!(fit_name(name, MAX_NAME_WIDTH, UNLIMITED_LAYOUT), short);
        }
    }

    #[test]
    fn long_name_is_truncated_with_ellipsis() {
        assert_eq!(
            fit_name("RTX PRO 6000 Blackwell Max-Q", 10, UNLIMITED_LAYOUT),
            "RTX PRO 6…"
        );
        assert_eq!(fit_name("訓練データ", 6, UNLIMITED_LAYOUT), "訓練…");
        let ascii = Layout {
            glyphs: Glyphs::Ascii,
            ..UNLIMITED_LAYOUT
        };
        assert_eq!(fit_name("GPU", 2, ascii), "G~");
        assert_eq!(fit_name("anything", 0, UNLIMITED_LAYOUT), "");
    }
}

#[cfg(test)]
mod notebook_names_tests {
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
