//! What a person would call a process.

use gpumon_probe::model::{Owner, Process, ProcessKind};
use unicode_width::UnicodeWidthStr;

use super::{
    Layout,
    line::{cut, printable},
};

/// With less room than this, what it runs in goes before what it is called is unreadable.
const SHORTEST: usize = 12;

/// The notebook, or the command; and the job, pod, container or service behind it.
pub(crate) struct What {
    name: String,
    /// What it runs in, the most telling first.
    behind: Vec<String>,
}

impl What {
    /// `None` where nothing is known of it.
    pub(crate) fn of(process: &Process, layout: Layout) -> Option<Self> {
        let owner = process.owner.value();
        let program = process.command.value().or_else(|| process.name.value()).cloned();
        let notebook = owner.and_then(|owner| owner.notebook.as_ref()?.path.as_deref());
        let name = match (notebook, process.name.value()) {
            (Some(path), Some(name)) => format!("{} ({name})", path.rsplit('/').next().unwrap_or(path)),
            (Some(path), None) => path.to_owned(),
            (None, _) => program?,
        };
        let printable = |text: String| printable(&text, layout);
        Some(Self {
            name: printable(name),
            behind: owner.map(behind).unwrap_or_default().into_iter().map(printable).collect(),
        })
    }

    /// In so many columns. All of what it runs in where there is room, else the most telling, which is shorter than a
    /// command line and is kept.
    pub(crate) fn fitted(&self, columns: usize, layout: Layout) -> String {
        let in_brackets = |behind: &[String]| {
            if behind.is_empty() { String::new() } else { format!(" ({})", behind.join(", ")) }
        };
        let whole = self.name.clone() + &in_brackets(&self.behind);
        if whole.width() <= columns {
            return whole;
        }
        let behind = in_brackets(&self.behind[..self.behind.len().min(1)]);
        match columns.checked_sub(behind.width()) {
            Some(room) if room >= SHORTEST => cut(&self.name, room, layout) + &behind,
            _ => cut(&whole, columns, layout),
        }
    }
}

/// nvidia-smi's letters for what a process does on the GPU.
pub(super) fn kind(process: &Process) -> &'static str {
    match (process.kind, process.mps) {
        (ProcessKind::Compute, false) => "C",
        (ProcessKind::Graphics, _) => "G",
        (ProcessKind::ComputeAndGraphics, false) => "C+G",
        (ProcessKind::Compute, true) => "M+C",
        (ProcessKind::ComputeAndGraphics, true) => "M+C+G",
    }
}

/// What a process runs in, the most telling first.
fn behind(owner: &Owner) -> Vec<String> {
    let short = |id: &str| id.chars().take(12).collect::<String>();
    let slurm = owner.slurm.as_ref().map(|job| format!("slurm {}", job.job_id));
    let pod = owner.pod.as_ref().map(|pod| format!("pod {}", pod.uid));
    let container = owner.container.as_ref().map(|container| format!("container {}", short(&container.id)));
    slurm.into_iter().chain(pod).chain(container).chain(owner.unit.clone()).collect()
}
