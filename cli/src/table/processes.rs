//! The lines of processes, and the readable labels of processes. A process on several GPUs has a
//! line for each of them.

use std::cmp::Reverse;

use gpumon_probe::model::{Health, Owner, Process, ProcessKind};
use unicode_width::UnicodeWidthStr;

use super::{ColumnWidths, View};
use crate::{
    describe::{self, NotebookNames},
    options::ShownProcesses,
    terminal::{
        Layout,
        columns::{Part, choose_parts},
        line::{DIM, Line, MEMORY, PLAIN, UTILIZATION, cut, make_printable, pad_end, pad_start},
        units::{
            ABSENT, format_compact_duration, format_gib, format_optional, format_whole_number,
        },
    },
};

const COLUMNS: usize = 8;
const HEADINGS: [&str; COLUMNS] = [
    "GPU", "PID", "USER", "TYPE", "MEMORY", "SM", "HOST MEM", "TIME",
];
/// The ranks of the columns. The columns with the highest rank are omitted first.
const RANKS: [u8; COLUMNS] = [0, 0, 1, 4, 0, 2, 5, 3];
const USER: usize = 2;
const TYPE: usize = 3;
const MEMORY_HELD: usize = 4;
const SM: usize = 5;
const HOST_MEMORY: usize = 6;
const GAP: usize = 2;
/// The maximum width of a user name. A longer name would push the command off the screen.
const MAX_USER_WIDTH: usize = 16;
const MIN_USER_WIDTH: usize = 8;
/// The minimum width of a process label. Other columns are omitted to make room for it.
pub(crate) const MIN_LABEL_WIDTH: usize = 16;
/// The width of a label that is sufficient for most commands together with their jobs.
pub(crate) const GOOD_LABEL_WIDTH: usize = 40;

/// The widths of the columns. Columns of width 0 are omitted.
pub(super) type Widths = [usize; COLUMNS];

struct Row {
    cells: [String; COLUMNS],
    what: Option<ProcessLabel>,
}

pub(super) fn format_lines(
    view: &View<'_>,
    layout: Layout,
    kept: Option<&mut ColumnWidths>,
) -> Vec<Line> {
    let mut rows = Vec::new();
    let names = NotebookNames::from_sample(view.sample);
    for gpu in &view.sample.gpus {
        let known = view.find_board(gpu.index);
        let place = |process: &Process| {
            let part = describe::find_mig_device_of_process(process, known);
            describe::format_device_label(gpu.index, part)
        };
        // The processes are sorted by MIG device and then by memory in use. Processes with unknown
        // memory come last.
        let is_listed =
            |process: &&Process| view.listed.is_none_or(|listed| listed.is_shown(process));
        let processes = gpu.processes.value().into_iter().flatten();
        let mut processes: Vec<&Process> = processes.filter(is_listed).collect();
        processes.sort_by_key(|process| {
            (
                process.mig,
                Reverse(process.memory_bytes.value().copied()),
                process.pid,
            )
        });
        rows.extend(
            processes.into_iter().map(|process| {
                build_row(place(process), process, &names, view.sample.at_ms, layout)
            }),
        );
    }
    let mut lines = if rows.is_empty() {
        Vec::new()
    } else {
        format_table(&rows, layout, kept)
    };
    let is_well = |health: &Health| *health == Health::Ok;
    let unknown = view.sample.gpus.iter().filter(|gpu| is_well(&gpu.health));
    for (gpu, reason) in unknown.filter_map(|gpu| Some((gpu.index, gpu.processes.absence()?))) {
        lines.push(Line::new(DIM, format!("processes of GPU {gpu}: {reason}")));
    }
    for gpu in view
        .sample
        .gpus
        .iter()
        .filter(|gpu| gpu.processes_omitted > 0)
    {
        lines.push(Line::new(
            DIM,
            format!(
                "GPU {}: {}",
                gpu.index,
                describe::format_omitted_processes(gpu.processes_omitted)
            ),
        ));
    }
    for gpu in &view.sample.gpus {
        let note = describe::format_unlisted_processes(gpu)
            .map(|note| format!("GPU {}: {note}", gpu.index));
        lines.extend(note.map(|note| Line::new(DIM, note)));
    }
    for gpu in view.sample.gpus.iter().filter(|gpu| is_well(&gpu.health)) {
        let known = view.find_board(gpu.index);
        for (place, holders) in describe::list_unused_allocations(gpu, known) {
            let holders = make_printable(&holders, layout);
            lines.push(Line::new(
                DIM,
                format!("GPU {place}: allocated to {holders}, no process"),
            ));
        }
    }
    if lines.is_empty() {
        let is_limited = view.listed.is_some_and(ShownProcesses::may_hide_processes);
        let words = if is_limited {
            "no matching processes"
        } else {
            "no processes"
        };
        lines.push(Line::new(DIM, words));
    }
    lines
}

fn build_row(
    place: String,
    process: &Process,
    names: &NotebookNames,
    now_ms: u64,
    layout: Layout,
) -> Row {
    let memory = process.memory_bytes.value();
    let cells = [
        place,
        process.pid.to_string(),
        format_optional(process.user.value(), |user| {
            cut(&make_printable(user, layout), MAX_USER_WIDTH, layout)
        }),
        kind_letters(process).to_owned(),
        memory.map_or_else(
            || "unknown".to_owned(),
            |bytes| format!("{} GiB", format_gib(*bytes)),
        ),
        format_whole_number(&process.sm_percent, "%"),
        format_optional(process.host_memory_bytes.value(), |bytes| {
            format!("{} GiB", format_gib(*bytes))
        }),
        format_optional(process.started_ms.value(), |started| {
            format_compact_duration(now_ms.saturating_sub(*started))
        }),
    ];
    Row {
        cells,
        what: ProcessLabel::from_process(process, names.find_by_process(process), layout),
    }
}

fn format_table(rows: &[Row], layout: Layout, kept: Option<&mut ColumnWidths>) -> Vec<Line> {
    let mut widths = HEADINGS.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.width());
        }
    }
    // A minimum width lets the numbers grow without moving the columns to the right.
    for memory in [MEMORY_HELD, HOST_MEMORY] {
        widths[memory] = widths[memory].max("00.0 GiB".len());
    }
    widths[SM] = widths[SM].max("100 %".len());
    // The column of types is omitted if all are the usual `C`, and the column of host memory if it
    // contains only dashes.
    if rows.iter().all(|row| row.cells[TYPE] == "C") {
        widths[TYPE] = 0;
    }
    if rows.iter().all(|row| row.cells[HOST_MEMORY] == ABSENT) {
        widths[HOST_MEMORY] = 0;
    }
    if let Some(kept) = kept {
        for (width, before) in widths.iter_mut().zip(kept.processes) {
            *width = before.max(*width);
        }
        kept.processes = widths;
    }
    let room = |widths: &Widths| {
        let shown = widths.iter().filter(|width| **width > 0);
        let taken: usize = shown.map(|width| width + GAP).sum();
        let columns = layout.width.unwrap_or(usize::MAX);
        columns.saturating_sub(taken)
    };
    if room(&widths) < MIN_LABEL_WIDTH {
        widths[USER] = widths[USER].min(MIN_USER_WIDTH);
    }
    if let Some(columns) = layout.width {
        let shown: Vec<usize> = (0..COLUMNS).filter(|at| widths[*at] > 0).collect();
        let parts = shown.iter().map(|at| Part {
            width: widths[*at],
            rank: RANKS[*at],
            rest: if *at == HOST_MEMORY {
                GOOD_LABEL_WIDTH
            } else {
                MIN_LABEL_WIDTH
            },
        });
        let fits = choose_parts(&parts.collect::<Vec<_>>(), GAP, columns.saturating_sub(GAP));
        for (at, _) in shown.iter().zip(fits).filter(|(_, fits)| !fits) {
            widths[*at] = 0;
        }
    }
    let room = room(&widths);
    let mut head = format_cells(&HEADINGS.map(str::to_owned), &widths, layout, |_| DIM);
    head.push(DIM, "WHAT");
    let mut lines = vec![head];
    lines.extend(rows.iter().map(|row| {
        let mut line = format_cells(&row.cells, &widths, layout, cell_style);
        line.push(
            PLAIN,
            format_optional(row.what.as_ref(), |what| what.fit_to_width(room, layout)),
        );
        line
    }));
    lines
}

/// Returns a column's style. Colors have the same meaning as in the lines of GPUs.
fn cell_style(column: usize) -> anstyle::Style {
    match column {
        MEMORY_HELD => MEMORY,
        SM => UTILIZATION,
        _ => PLAIN,
    }
}

/// Formats the line of a process. All cells except the user's name are right-aligned. Columns of
/// width 0 are omitted.
fn format_cells(
    cells: &[String; COLUMNS],
    widths: &Widths,
    layout: Layout,
    style: fn(usize) -> anstyle::Style,
) -> Line {
    let mut line = Line::default();
    for (column, (cell, width)) in cells
        .iter()
        .zip(widths)
        .enumerate()
        .filter(|(_, (_, width))| **width > 0)
    {
        let cell = cut(cell, *width, layout);
        line.push(
            style(column),
            if column == USER || column == TYPE {
                pad_end(&cell, *width)
            } else {
                pad_start(&cell, *width)
            },
        );
        line.push(PLAIN, " ".repeat(GAP));
    }
    line
}

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
                let short = strip_script_folders(&tidy);
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
                .map(list_owner_labels)
                .unwrap_or_default()
                .into_iter()
                .map(printable)
                .collect(),
        })
    }

    pub(crate) fn full_text(&self) -> String {
        self.name.clone() + &join_in_brackets(&self.behind)
    }

    /// Fits the label into `columns` columns. If there is not enough room, only the most
    /// informative of the job, pod, container, and service is kept. If that does not save enough,
    /// the command is shortened as well.
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
/// the end of the folders is found by searching for the program's name, `name`.
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
fn strip_script_folders(command: &str) -> String {
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
fn kind_letters(process: &Process) -> &'static str {
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
fn list_owner_labels(owner: &Owner) -> Vec<String> {
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
    use crate::{table::examples, terminal::screen::Glyphs};

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
    fn batch_job_label_includes_scheduler_name() {
        let job = || {
            Some(BatchJob {
                job_id: "7.server".to_owned(),
                step: None,
                private: false,
            })
        };
        assert_eq!(
            list_owner_labels(&Owner {
                pbs: job(),
                ..Owner::default()
            }),
            ["pbs 7.server"]
        );
        assert_eq!(
            list_owner_labels(&Owner {
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
