//! Readable labels of processes.

use gpumon_probe::model::{Owner, Process, ProcessKind};
use unicode_width::UnicodeWidthStr;

use crate::terminal::{
    Layout,
    line::{cut, make_printable},
};

/// The minimum width of a process's name. If less space would remain, the job or container is
/// omitted from the label.
const MIN_NAME_WIDTH: usize = 12;

const SCRIPTS: [&str; 7] = [".py", ".sh", ".jl", ".R", ".js", ".pl", ".rb"];

/// The label of a process: its notebook or command, and the job, pod, container, or service to
/// which it belongs.
pub(crate) struct ProcessLabel {
    /// The command line with the folders of its program removed.
    name: String,
    /// The command line with the folders of both its program and its script removed.
    short: String,
    /// The job, pod, container, or service of the process, most informative part first.
    behind: Vec<String>,
}

impl ProcessLabel {
    /// Returns the label of a process, or `None` if neither a notebook nor a command is known.
    /// `notebook` is the name of the process's notebook.
    pub(crate) fn from_process(
        process: &Process,
        notebook: Option<&str>,
        layout: Layout,
    ) -> Option<Self> {
        let owner = process.owner.value();
        let (name, command) = (process.name.value(), process.command.value());
        let (name, short) = match (notebook, name, command) {
            (Some(notebook), name, _) => {
                let named = name.map_or_else(
                    || notebook.to_owned(),
                    |name| format!("{notebook} ({name})"),
                );
                (named.clone(), named)
            }
            (None, _, Some(command)) => {
                let tidy = strip_folders(command, name.map(String::as_str));
                let short = shorten_script(&tidy);
                (tidy, short)
            }
            (None, Some(name), None) => (name.clone(), name.clone()),
            (None, None, None) => return None,
        };
        let printable = |text: String| make_printable(&text, layout);
        Some(Self {
            name: printable(name),
            short: printable(short),
            behind: owner
                .map(list_environment)
                .unwrap_or_default()
                .into_iter()
                .map(printable)
                .collect(),
        })
    }

    pub(crate) fn full_text(&self) -> String {
        self.name.clone() + &join_in_brackets(&self.behind)
    }

    /// Fits the label into `columns` columns. If there is no room for all parts of the environment,
    /// only the most informative part is shown.
    pub(crate) fn fit_to_width(&self, columns: usize, layout: Layout) -> String {
        let behind = join_in_brackets(&self.behind[..self.behind.len().min(1)]);
        let less = [
            self.full_text(),
            self.name.clone() + &behind,
            self.short.clone() + &behind,
        ];
        if let Some(fits) = less.into_iter().find(|text| text.width() <= columns) {
            return fits;
        }
        match columns.checked_sub(behind.width()) {
            Some(room) if room >= MIN_NAME_WIDTH => cut(&self.short, room, layout) + &behind,
            _ => cut(&(self.short.clone() + &behind), columns, layout),
        }
    }
}

fn join_in_brackets(behind: &[String]) -> String {
    if behind.is_empty() {
        String::new()
    } else {
        format!(" ({})", behind.join(", "))
    }
}

/// Returns the last part of a path.
fn last_component(path: &str) -> &str {
    path.rsplit('/')
        .next()
        .filter(|base| !base.is_empty())
        .unwrap_or(path)
}

/// Returns a command line without the folders of its program. Folder names may contain blanks, so
/// the program's name `name` marks their end.
fn strip_folders(command: &str, name: Option<&str>) -> String {
    let program = command.split(' ').next().unwrap_or_default();
    let named = name
        .filter(|_| command.starts_with(['/', '.']))
        .and_then(|name| {
            let start = command.find(&format!("/{name}"))? + 1;
            let rest = &command[start + name.len()..];
            (rest.is_empty() || rest.starts_with(' ')).then_some(start)
        });
    // A title that a process has set for itself, such as `[kworker/0:1]`, is not a path.
    let is_path = !program.starts_with(['[', '(']) && !program.ends_with(':');
    let start = named.unwrap_or_else(|| {
        if is_path {
            program.len() - last_component(program).len()
        } else {
            0
        }
    });
    command[start..].to_owned()
}

/// Returns a command line with the folders of its script removed.
fn shorten_script(command: &str) -> String {
    let is_script =
        |word: &str| word.contains('/') && SCRIPTS.iter().any(|end| word.ends_with(end));
    let mut script = command
        .split(' ')
        .filter(|word| !word.starts_with('-') && is_script(word));
    script.next().map_or_else(
        || command.to_owned(),
        |script| command.replacen(script, last_component(script), 1),
    )
}

/// Returns the letters by which nvidia-smi denotes the type of a process.
pub(super) fn kind_letters(process: &Process) -> &'static str {
    match (process.kind, process.mps) {
        (ProcessKind::Compute, false) => "C",
        (ProcessKind::Graphics, _) => "G",
        (ProcessKind::ComputeAndGraphics, false) => "C+G",
        (ProcessKind::Compute, true) => "M+C",
        (ProcessKind::ComputeAndGraphics, true) => "M+C+G",
    }
}

/// Returns the job, pod, container, or service to which a process belongs, most informative part
/// first.
fn list_environment(owner: &Owner) -> Vec<String> {
    let batch = owner
        .batch_job()
        .map(|(kind, job)| format!("{} {}", kind.json_name(), job.job_id));
    let pod = owner.pod.as_ref().map(|pod| format!("pod {}", pod.label()));
    let container = owner
        .container
        .as_ref()
        .map(|container| format!("container {}", container.label()));
    batch
        .into_iter()
        .chain(pod)
        .chain(container)
        .chain(owner.unit.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{BatchJob, Owner, Reading};

    use super::*;
    use crate::{table::examples, terminal::glyphs::Glyphs};

    const TERMINAL: Layout = Layout {
        width: Some(80),
        height: None,
        glyphs: Glyphs::Braille,
    };

    fn build_label(command: &str, name: &str) -> ProcessLabel {
        let mut process = examples::example_process(1, "ana", 1.0, command);
        process.name = Reading::Now(name.to_owned());
        let slurm = Some(BatchJob {
            job_id: "88123".to_owned(),
            step: None,
            private: false,
        });
        process.owner = Reading::Now(Owner {
            slurm,
            unit: Some("a.scope".to_owned()),
            ..Owner::default()
        });
        ProcessLabel::from_process(&process, None, TERMINAL).unwrap()
    }

    #[test]
    fn script_folders_are_dropped_only_to_fit_width() {
        let what = build_label(
            "/home/ana/miniconda3/envs/torch/bin/python3 -u /home/ana/work/train.py --bf16",
            "python3",
        );
        for (columns, text) in [
            (
                80,
                "python3 -u /home/ana/work/train.py --bf16 (slurm 88123, a.scope)",
            ),
            (
                60,
                "python3 -u /home/ana/work/train.py --bf16 (slurm 88123)",
            ),
            (50, "python3 -u train.py --bf16 (slurm 88123)"),
            (36, "python3 -u train.py -… (slurm 88123)"),
            (20, "python3 -u train.py…"),
        ] {
            assert_eq!(what.fit_to_width(columns, TERMINAL), text);
        }
    }

    #[test]
    fn batch_job_is_named_with_its_system() {
        let job = || {
            Some(BatchJob {
                job_id: "7.server".to_owned(),
                step: None,
                private: false,
            })
        };
        assert_eq!(
            list_environment(&Owner {
                pbs: job(),
                ..Owner::default()
            }),
            ["pbs 7.server"]
        );
        assert_eq!(
            list_environment(&Owner {
                lsf: job(),
                ..Owner::default()
            }),
            ["lsf 7.server"]
        );
    }

    #[test]
    fn process_title_is_unchanged() {
        for (command, name, text) in [
            (
                "/opt/my tools/bin/serve --port 80",
                "serve",
                "serve --port 80",
            ),
            ("./simulate /data/a", "simulate", "simulate /data/a"),
            (
                "vllm serve meta-llama/Llama-3.1-8B",
                "vllm",
                "vllm serve meta-llama/Llama-3.1-8B",
            ),
            ("[kworker/0:1]", "kworker/0:1", "[kworker/0:1]"),
            ("/usr/bin/", "x", "/usr/bin/"),
            ("", "x", ""),
        ] {
            assert_eq!(build_label(command, name).name, text);
        }
    }
}
