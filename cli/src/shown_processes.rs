//! The processes that a view is limited to: `--pid`, `--compute`, `--graphics`.

use gpumon_probe::model::{Process, ProcessKind};

/// The options that limit a list of processes.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ShownProcesses {
    /// List only the processes with these PIDs, comma-separated
    #[arg(long = "pid", value_name = "PIDS", value_delimiter = ',')]
    pids: Vec<u32>,

    /// List only processes that compute, of type C or C+G
    #[arg(long)]
    compute: bool,

    /// List only processes that draw, of type G or C+G; with --compute, both
    #[arg(long)]
    graphics: bool,
}

impl ShownProcesses {
    /// Returns the first of these options that was given.
    pub(crate) fn find_typed(&self) -> Option<&'static str> {
        let all = [
            ("--pid", !self.pids.is_empty()),
            ("--compute", self.compute),
            ("--graphics", self.graphics),
        ];
        all.into_iter()
            .find_map(|(name, is_typed)| is_typed.then_some(name))
    }

    /// Returns whether a process is listed.
    pub(crate) fn is_shown(&self, process: &Process) -> bool {
        let computes = process.kind != ProcessKind::Graphics;
        let draws = process.kind != ProcessKind::Compute;
        let is_any_kind = !self.compute && !self.graphics;
        (self.pids.is_empty() || self.pids.contains(&process.pid))
            && (is_any_kind || self.compute && computes || self.graphics && draws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::examples;

    #[test]
    fn processes_are_listed_by_pid_and_kind() {
        let kinds = [
            ProcessKind::Compute,
            ProcessKind::Graphics,
            ProcessKind::ComputeAndGraphics,
        ];
        let processes = kinds.map(|kind| Process {
            kind,
            ..examples::process(7, "ana", 1.0, "python")
        });
        let listed =
            |shown: ShownProcesses| [0, 1, 2].map(|at: usize| shown.is_shown(&processes[at]));
        let (none, some) = (ShownProcesses::default(), |compute, graphics| {
            ShownProcesses {
                pids: vec![7],
                compute,
                graphics,
            }
        });
        assert_eq!(listed(none.clone()), [true, true, true]);
        assert_eq!(listed(some(true, false)), [true, false, true]);
        assert_eq!(listed(some(false, true)), [false, true, true]);
        assert_eq!(listed(some(true, true)), [true, true, true]);
        assert_eq!(
            listed(ShownProcesses {
                pids: vec![8],
                ..none
            }),
            [false; 3]
        );
    }
}
