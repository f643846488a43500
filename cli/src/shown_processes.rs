//! Options that select the processes in a view: `--pid`, `--compute` and `--graphics`.

use gpumon_probe::model::{Process, ProcessKind};

/// Options that limit a list of processes.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ShownProcesses {
    /// List only the processes with these PIDs, comma-separated
    #[arg(long = "pid", value_name = "PIDS", value_delimiter = ',', value_parser = parse_pid)]
    pids: Vec<u32>,

    /// List only processes that compute, of type C or C+G
    #[arg(long)]
    compute: bool,

    /// List only processes that draw, of type G or C+G; with --compute, list processes that do
    /// either
    #[arg(long)]
    graphics: bool,

    /// The only user whose processes are listed. Commands with such an option set this field.
    #[arg(skip)]
    pub(crate) user: Option<String>,
}

impl ShownProcesses {
    /// Returns the first of these options that the user typed.
    pub(crate) fn find_typed_option(&self) -> Option<&'static str> {
        let all = [
            ("--pid", !self.pids.is_empty()),
            ("--compute", self.compute),
            ("--graphics", self.graphics),
        ];
        all.into_iter()
            .find_map(|(name, is_typed)| is_typed.then_some(name))
    }

    /// Returns `true` if some processes may be hidden.
    pub(crate) fn is_limited(&self) -> bool {
        self.user.is_some() || self.find_typed_option().is_some()
    }

    pub(crate) fn is_shown(&self, process: &Process) -> bool {
        let is_users = |user: &String| process.user.value() == Some(user);
        let computes = process.kind != ProcessKind::Graphics;
        let draws = process.kind != ProcessKind::Compute;
        let is_any_kind = !self.compute && !self.graphics;
        self.user.as_ref().is_none_or(is_users)
            && (self.pids.is_empty() || self.pids.contains(&process.pid))
            && (is_any_kind || self.compute && computes || self.graphics && draws)
    }
}

fn parse_pid(text: &str) -> Result<u32, String> {
    let pid = text.trim().parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| "expected PIDs, separated by commas".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::examples;

    #[test]
    fn processes_are_filtered_by_pid_kind_and_user() {
        let kinds = [
            ProcessKind::Compute,
            ProcessKind::Graphics,
            ProcessKind::ComputeAndGraphics,
        ];
        let processes = kinds.map(|kind| Process {
            kind,
            ..examples::example_process(7, "ana", 1.0, "python")
        });
        let listed = |compute, graphics, pids: &[u32], user: Option<&str>| {
            let shown = ShownProcesses {
                pids: pids.to_vec(),
                compute,
                graphics,
                user: user.map(str::to_owned),
            };
            [0, 1, 2].map(|at: usize| shown.is_shown(&processes[at]))
        };
        assert_eq!(listed(false, false, &[], None), [true; 3]);
        assert_eq!(listed(true, false, &[7], None), [true, false, true]);
        assert_eq!(listed(false, true, &[7], Some("ana")), [false, true, true]);
        assert_eq!(listed(true, true, &[7, 8], None), [true; 3]);
        assert_eq!(listed(false, false, &[8], None), [false; 3]);
        assert_eq!(listed(false, false, &[], Some("bob")), [false; 3]);
    }

    #[test]
    fn pid_is_positive_number() {
        assert_eq!(parse_pid(" 7"), Ok(7));
        assert!(
            ["", "0", "-1", "x"]
                .iter()
                .all(|text| parse_pid(text).is_err())
        );
    }
}
