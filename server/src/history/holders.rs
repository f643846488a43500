//! Who held a GPU's memory in the recent past.

use std::{cmp::Reverse, collections::HashMap};

use gpumon_probe::model::{MigInstance, Process, ProcessKind, fields::Kind};

use super::column::{Column, short};
use crate::frame::HolderHistory;

/// So many are remembered of a GPU, those that held the most; a chart names fewer.
const MOST: usize = 16;

/// Tells holders apart, as the page does: a notebook with all that its kernel has started, or another process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Kernel(String),
    /// A PID alone is used again. A process that holds two MIG instances is listed once for each.
    Process {
        pid: u32,
        started_ms: Option<u64>,
        kind: ProcessKind,
        mig: Option<MigInstance>,
    },
}

/// Those of one GPU, the first to come first.
#[derive(Debug, Default)]
pub(super) struct Holders(Vec<Holder>);

#[derive(Debug)]
struct Holder {
    key: Key,
    /// As it was seen last.
    process: Process,
    memory_bytes: Column,
}

impl Holders {
    /// Sets the newest place of columns that are so long.
    pub(super) fn set_newest(&mut self, processes: &[Process], length: usize) {
        let mut held: HashMap<Key, (&Process, f64)> = HashMap::new();
        for process in processes {
            let Some(bytes) = process.memory_bytes.value() else {
                continue;
            };
            let (main, sum) = held.entry(Key::of(process)).or_insert((process, 0.0));
            *sum += *bytes as f64;
            if rank(process) > rank(main) {
                *main = process;
            }
        }
        let mut held: Vec<_> = held.into_iter().collect();
        held.sort_by_key(|(_, (main, bytes))| (Reverse(*bytes as u64), main.pid));
        let mut new = Vec::new();
        for (key, (main, bytes)) in held.into_iter().take(MOST) {
            match self.0.iter_mut().find(|holder| holder.key == key) {
                Some(holder) => {
                    holder.process.clone_from(main);
                    holder.memory_bytes.set_newest(bytes, 1);
                }
                None => new.push((key, main, bytes)),
            }
        }
        self.make_room(&mut new);
        for (key, main, bytes) in new {
            let mut memory_bytes = Column::new(Kind::Gauge, length);
            memory_bytes.set_newest(bytes, 1);
            self.0.push(Holder {
                key,
                process: main.clone(),
                memory_bytes,
            });
        }
    }

    /// Forgets the holders with the least memory, known or new, as long as there are more than [`MOST`]. Of equal ones,
    /// the oldest goes first. A new one gets its column only afterwards: with hundreds of short-lived processes a second,
    /// columns that are dropped at once fragment the heap.
    fn make_room(&mut self, new: &mut Vec<(Key, &Process, f64)>) {
        let excess = (self.0.len() + new.len()).saturating_sub(MOST);
        if excess == 0 {
            return;
        }
        let known = self.0.iter().map(Holder::peak);
        let mut peaks: Vec<(usize, f64)> = known
            .chain(new.iter().map(|(_, _, bytes)| f64::from(short(*bytes))))
            .enumerate()
            .collect();
        peaks.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let mut is_kept = vec![true; peaks.len()];
        peaks[..excess]
            .iter()
            .for_each(|(place, _)| is_kept[*place] = false);
        let mut is_kept = is_kept.into_iter();
        let mut keep = || is_kept.next().unwrap_or(true);
        self.0.retain(|_| keep());
        new.retain(|_| keep());
    }

    pub(super) fn columns(&mut self) -> impl Iterator<Item = &mut Column> {
        self.0.iter_mut().map(|holder| &mut holder.memory_bytes)
    }

    /// Forgets those of whom nothing is left.
    pub(super) fn prune(&mut self) {
        self.0.retain(|holder| !holder.memory_bytes.is_empty());
    }

    /// Those who held something from the place `old` on.
    pub(super) fn newest(&self, old: usize) -> Vec<HolderHistory> {
        let newest = self.0.iter().map(
            |Holder {
                 process,
                 memory_bytes,
                 ..
             }| HolderHistory {
                process: process.clone(),
                memory_bytes: memory_bytes.charted(old),
            },
        );
        newest
            .filter(|holder| holder.memory_bytes.iter().any(Option::is_some))
            .collect()
    }
}

impl Holder {
    fn peak(&self) -> f64 {
        self.memory_bytes.peak()
    }
}

impl Key {
    fn of(process: &Process) -> Self {
        match process
            .owner
            .value()
            .and_then(|owner| owner.notebook.as_ref())
        {
            Some(notebook) => Self::Kernel(notebook.kernel_id.clone()),
            None => Self::Process {
                pid: process.pid,
                started_ms: process.started_ms.value().copied(),
                kind: process.kind,
                mig: process.mig,
            },
        }
    }
}

/// The kernel stands for its notebook, else whichever holds the most.
fn rank(process: &Process) -> (bool, u64) {
    let notebook = process
        .owner
        .value()
        .and_then(|owner| owner.notebook.as_ref());
    (
        notebook.is_some_and(|own| own.kernel_pid == process.pid),
        process.memory_bytes.value().copied().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Notebook, Owner, Reading};

    use super::*;

    fn process(pid: u32, bytes: u64, kernel: Option<&str>) -> Process {
        let notebook = kernel.map(|id| Notebook {
            kernel_id: id.to_owned(),
            kernel_name: None,
            path: Reading::Now("train.ipynb".to_owned()),
            kernel_pid: 7,
        });
        Process {
            pid,
            kind: ProcessKind::Compute,
            memory_bytes: Reading::Now(bytes),
            sm_percent: Reading::Now(0.0),
            memory_percent: Reading::Now(0.0),
            encoder_percent: Reading::Now(0.0),
            decoder_percent: Reading::Now(0.0),
            name: Reading::Now(format!("p{pid}")),
            program: None,
            command: Reading::Absent(Absence::Hidden),
            user: Reading::Now("ana".to_owned()),
            host_memory_bytes: Reading::Now(1),
            traced: Reading::Now(false),
            started_ms: Reading::Now(1),
            mig: None,
            mps: false,
            owner: Reading::Now(Owner {
                notebook,
                ..Owner::default()
            }),
        }
    }

    /// The columns after these samples.
    fn after(samples: &[Vec<Process>]) -> Holders {
        let mut holders = Holders::default();
        for (processes, length) in samples.iter().zip(1..) {
            holders.columns().for_each(Column::push_newest);
            holders.set_newest(processes, length);
        }
        holders
    }

    fn told(holders: &Holders) -> Vec<(u32, Vec<Option<f32>>)> {
        holders
            .newest(0)
            .into_iter()
            .map(|holder| (holder.process.pid, holder.memory_bytes))
            .collect()
    }

    #[test]
    fn a_notebook_holds_what_its_kernel_and_its_children_do_and_whoever_has_gone_is_still_named() {
        let holders = after(&[
            vec![
                process(9, 300, Some("k")),
                process(7, 100, Some("k")),
                process(3, 50, None),
            ],
            vec![process(7, 100, Some("k"))],
        ]);
        assert_eq!(
            told(&holders),
            [
                (7, vec![Some(400.0), Some(100.0)]),
                (3, vec![Some(50.0), None])
            ]
        );
        assert_eq!(
            holders.newest(1).len(),
            1,
            "who held nothing then is left out"
        );
    }

    #[test]
    fn memory_that_is_not_known_is_no_part_of_it() {
        let unknown = Process {
            memory_bytes: Reading::Absent(Absence::Unknown),
            ..process(1, 0, None)
        };
        assert_eq!(told(&after(&[vec![unknown]])), []);
    }

    #[test]
    fn however_many_come_and_go_the_largest_are_remembered() {
        let samples: Vec<_> = (0..200)
            .map(|at| {
                (0..100)
                    .map(|i| process(at * 100 + i, u64::from(i) + 1, None))
                    .collect()
            })
            .collect();
        let holders = after(&samples);
        assert_eq!(holders.0.len(), MOST);
        assert!(holders.0.iter().all(|holder| holder.peak() >= 99.0));
    }

    #[test]
    fn who_is_forgotten_leaves_no_column() {
        let mut holders = after(&[vec![process(1, 5, None)], Vec::new()]);
        holders.columns().for_each(|column| column.forget(1));
        holders.prune();
        assert_eq!(holders.columns().count(), 0);
    }
}
