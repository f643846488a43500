//! The details of one process as lines of text.

use gpumon_probe::{
    model::{Absence, Owner, Process, Reading},
    units::byte_size,
};

use super::{ProcessScreen, secrets::masked};
use crate::{
    describe::{self, notebook_path},
    terminal::units::compact_duration,
    top::{
        dialog::Line,
        inspect::Facts,
        model::Model,
        painter::Painter,
        text::{align_left, date_and_clock, format_reading, percent, printable, what, wrap},
    },
};

const LABEL: usize = 14;

/// Returns all details as lines, and the index of the line where the environment begins.
pub(super) fn lines(
    painter: &Painter<'_>,
    columns: u16,
    screen: &ProcessScreen,
    model: &Model,
) -> (Vec<Line>, Option<usize>) {
    let ProcessScreen { key, process, .. } = screen;
    let mut groups = DetailGroups {
        lines: Vec::new(),
        columns: columns.into(),
        painter,
    };
    if !screen.is_there {
        groups.lines.push(vec![(
            "It is no longer on this GPU.".to_owned(),
            painter.theme.notice,
        )]);
    }
    groups.on_the_gpu(process, &place(key.gpu, process, model), model.now_ms());
    groups.owner(process);
    let environment = match &screen.found {
        None => {
            groups.fact("", "reading /proc");
            None
        }
        Some(Err(why)) => {
            groups.fact("/proc", why);
            Some(0)
        }
        Some(Ok(facts)) => Some(groups.facts(facts, process, screen.are_secrets_shown)),
    };
    (groups.lines, environment)
}

pub(in crate::top) fn name(process: &Process) -> String {
    let name = process
        .name
        .value()
        .cloned()
        .or_else(|| what(process, notebook_path(process)));
    printable(&name.unwrap_or_else(|| "unknown".to_owned()))
}

/// Returns the label of the GPU or MIG device, as in the list of processes.
fn place(gpu: u32, process: &Process, model: &Model) -> String {
    let part = process
        .mig
        .zip(model.board(gpu))
        .and_then(|(instance, board)| describe::device_of(board, instance));
    part.map_or_else(|| gpu.to_string(), |part| describe::label(gpu, part))
}

struct DetailGroups<'a, 'b> {
    lines: Vec<Line>,
    columns: usize,
    painter: &'a Painter<'b>,
}

impl DetailGroups<'_, '_> {
    fn fact(&mut self, label: &str, text: &str) {
        for (place, part) in wrap(text, self.columns.saturating_sub(LABEL))
            .into_iter()
            .enumerate()
        {
            let label = if place == 0 { label } else { "" };
            self.lines.push(vec![
                (align_left(label, LABEL), self.painter.theme.dim),
                (part, self.painter.theme.plain),
            ]);
        }
    }

    fn on_the_gpu(&mut self, process: &Process, place: &str, now_ms: u64) {
        let mig = process.mig.map(|mig| {
            format!(
                ", MIG instance {}/{}",
                mig.gpu_instance, mig.compute_instance
            )
        });
        let mps = if process.mps { ", through MPS" } else { "" };
        self.fact("GPU", &format!("{place}{}{mps}", mig.unwrap_or_default()));
        self.fact(
            "memory",
            &format_reading(&process.memory_bytes, |held| byte_size(*held as f64)),
        );
        let shares = [
            ("SM", &process.sm_percent),
            ("memory", &process.memory_percent),
            ("encoder", &process.encoder_percent),
            ("decoder", &process.decoder_percent),
        ];
        let shares = shares.map(|(name, share)| format!("{name} {}", percent(share)));
        self.fact("use", &shares.join("   "));
        self.fact(
            "user",
            &format_reading(&process.user, |user| printable(user)),
        );
        self.fact(
            "started",
            &format_reading(&process.started_ms, |started| {
                format!(
                    "{}, {} ago",
                    date_and_clock(*started),
                    compact_duration(now_ms.saturating_sub(*started))
                )
            }),
        );
    }

    fn owner(&mut self, process: &Process) {
        let Some(owner) = process.owner.value() else {
            return self.fact(
                "belongs to",
                &format_reading(&process.owner, |_| String::new()),
            );
        };
        let Owner {
            notebook,
            slurm: _,
            pbs: _,
            lsf: _,
            pod,
            container,
            unit,
            parents,
            partial,
        } = owner;
        if let Some(notebook) = notebook {
            let path = match &notebook.path {
                Reading::Absent(Absence::Unknown) => "a notebook without a name".to_owned(),
                path => format_reading(path, ToOwned::to_owned),
            };
            self.fact(
                "notebook",
                &printable(&format!(
                    "{path}, kernel {} ({})",
                    notebook.kernel_id, notebook.kernel_pid
                )),
            );
        }
        if let Some((kind, job)) = owner.batch_job() {
            let step = job
                .step
                .as_ref()
                .map_or_else(String::new, |step| format!(", step {step}"));
            self.fact(
                &format!("{} job", kind.word()),
                &printable(&format!("{}{step}", job.job_id)),
            );
        }
        if let Some(pod) = pod {
            let uid = if pod.name.is_some() {
                format!(" ({})", pod.uid)
            } else {
                String::new()
            };
            self.fact("pod", &printable(&(pod.label() + &uid)));
        }
        if let Some(container) = container {
            let name = container
                .name
                .as_ref()
                .map_or_else(String::new, |name| format!(" ({name})"));
            let told = format!("{:?} {}", container.runtime, container.id).to_lowercase() + &name;
            self.fact("container", &printable(&told));
        }
        if let Some(unit) = unit {
            self.fact("unit", &printable(unit));
        }
        if !parents.is_empty() {
            let line: Vec<_> = parents
                .iter()
                .map(|parent| format!("{} ({})", printable(&parent.name), parent.pid))
                .collect();
            self.fact("started by", &line.join(" ← "));
        } else if *partial {
            self.fact("started by", &Absence::NotReadYet.to_string());
        }
    }

    /// Adds the facts from `/proc`, and returns the index of the line where the environment begins.
    fn facts(&mut self, facts: &Facts, process: &Process, are_secrets_shown: bool) -> usize {
        let of =
            |fact: &Result<String, String>| fact.clone().unwrap_or_else(|why| format!("- ({why})"));
        let threads = if facts.threads == 1 {
            "thread"
        } else {
            "threads"
        };
        self.fact(
            "state",
            &format!(
                "{}, parent {}, {} {threads}",
                facts.state, facts.parent, facts.threads
            ),
        );
        let resident =
            |held: Option<u64>| held.map_or_else(|| "-".to_owned(), |held| byte_size(held as f64));
        let now = resident(process.host_memory_bytes.value().copied());
        let most = resident(facts.most_resident_bytes);
        self.fact("host memory", &format!("{now}, {most} at most"));
        self.fact("CPU time", &compact_duration(facts.cpu_ms));
        self.fact("program", &of(&facts.program));
        self.fact("folder", &of(&facts.folder));
        let command = facts
            .arguments
            .as_ref()
            .map(|arguments| arguments.join(" "))
            .map_err(Clone::clone);
        self.fact("command", &of(&command));
        let begin = self.lines.len();
        match &facts.environment {
            Err(why) => self.fact("environment", &format!("- ({why})")),
            Ok(entries) if entries.is_empty() => self.fact("environment", "empty"),
            Ok(entries) => {
                for (place, entry) in entries.iter().enumerate() {
                    let entry = if are_secrets_shown {
                        entry.clone()
                    } else {
                        masked(entry)
                    };
                    self.fact(if place == 0 { "environment" } else { "" }, &entry);
                }
            }
        }
        begin
    }
}
