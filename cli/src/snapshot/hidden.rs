//! What a server does not tell, and this user may know all the same.

use std::time::Duration;

use gpumon_probe::{
    model::{Absence, Process, Reading, Sample},
    owner::{CommandLines, Resolver},
};

const PATIENCE: Duration = Duration::from_millis(200);

/// A server keeps the command lines of other users to itself, for it does not know who asks. This user may look them up,
/// as `ps` does.
pub(crate) struct Hidden(Resolver);

impl Hidden {
    pub(crate) fn new() -> Self {
        Self(Resolver::new("/proc", CommandLines::All))
    }

    /// Fills in the commands and names that are hidden and can be looked up.
    pub(crate) fn fill_in(&mut self, sample: &mut Sample) {
        let mut found: Vec<Process> = hidden(sample).map(|process| process.clone()).collect();
        self.0.fill(&mut found, PATIENCE);
        for process in hidden(sample) {
            // The server may live in another PID namespace, where the number means another process.
            let same = found
                .iter()
                .find(|same| same.pid == process.pid && same.started_ms == process.started_ms);
            if let Some(same) = same.filter(|same| same.command.value().is_some()) {
                process.command.clone_from(&same.command);
                process.name.clone_from(&same.name);
            }
        }
    }
}

fn hidden(sample: &mut Sample) -> impl Iterator<Item = &mut Process> {
    let processes = sample
        .gpus
        .iter_mut()
        .filter_map(|gpu| match &mut gpu.processes {
            Reading::Now(processes)
            | Reading::Earlier {
                value: processes, ..
            } => Some(processes),
            Reading::Absent(_) => None,
        });
    processes
        .flatten()
        .filter(|process| process.command == Reading::Absent(Absence::Hidden))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::examples;

    #[test]
    fn a_hidden_command_is_looked_up_where_it_is_the_same_process() {
        let mut known = vec![examples::process(std::process::id(), "ana", 1.0, "")];
        Resolver::new("/proc", CommandLines::All).fill(&mut known, Duration::from_secs(20));
        let hidden = |started_ms: Reading<u64>| {
            let mut process = known[0].clone();
            (process.command, process.started_ms) = (Reading::Absent(Absence::Hidden), started_ms);
            process.name = Reading::Now("gpumon".to_owned());
            process
        };
        let stranger = Reading::Now(known[0].started_ms.value().unwrap() - 60_000);
        let mut sample = examples::sample(2);
        sample.gpus[0].processes = Reading::Now(vec![hidden(stranger)]);
        sample.gpus[1].processes = Reading::Now(vec![hidden(known[0].started_ms.clone())]);
        Hidden::new().fill_in(&mut sample);
        let found = |gpu: usize| &sample.gpus[gpu].processes.value().unwrap()[0];
        assert_eq!(
            found(0).command,
            Reading::Absent(Absence::Hidden),
            "a PID that was used again"
        );
        assert!(found(1).command.value().is_some());
        assert_eq!(
            (&found(1).command, &found(1).name),
            (&known[0].command, &known[0].name)
        );
    }
}
