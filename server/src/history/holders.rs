//! The processes that held a GPU's memory recently.

use std::{cmp::Reverse, collections::HashMap};

use gpumon_history::{timeline::Timeline, wanted::rounded};
use gpumon_probe::model::{MigInstance, Process, ProcessKind, fields::Kind};

use super::recent::{Item, Line, charted_values};
use crate::frame::HolderHistory;

/// The maximum number of holders per GPU, those with the most memory. A chart names fewer.
const MOST: usize = 16;

/// The identity of a holder: a notebook with all processes of its kernel, or another process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Kernel(String),
    /// A process. PIDs are reused, so its start is part of the identity. A process that holds two
    /// MIG instances is listed once for each.
    Process {
        pid: u32,
        started_ms: Option<u64>,
        kind: ProcessKind,
        mig: Option<MigInstance>,
    },
}

/// The holders of one GPU, in the order of their appearance. Their memory is in the timeline.
#[derive(Debug, Default)]
pub(super) struct Holders {
    all: Vec<Holder>,
    next: usize,
}

#[derive(Debug)]
struct Holder {
    key: Key,
    /// The last known state of the process.
    process: Process,
    number: usize,
}

impl Holders {
    /// Sets the newest value of each holder of a GPU.
    pub(super) fn set_newest(
        &mut self,
        processes: &[Process],
        timeline: &mut Timeline<Line>,
        gpu: usize,
    ) {
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
            let bytes = rounded(bytes);
            match self.all.iter_mut().find(|holder| holder.key == key) {
                Some(holder) => {
                    holder.process.clone_from(main);
                    set_newest(timeline, holder.line(gpu), bytes);
                }
                None => new.push((key, main, bytes)),
            }
        }
        self.make_room(&mut new, timeline, gpu);
        for (key, main, bytes) in new {
            let holder = Holder {
                key,
                process: main.clone(),
                number: self.next,
            };
            set_newest(timeline, holder.line(gpu), bytes);
            self.next += 1;
            self.all.push(holder);
        }
    }

    /// Removes the holders with the least memory, existing or new, until there are at most
    /// [`MOST`]; of equal ones, the oldest. New holders get their columns only afterwards: with
    /// hundreds of short-lived processes per second, columns that are dropped at once would
    /// fragment the heap.
    fn make_room(
        &mut self,
        new: &mut Vec<(Key, &Process, f64)>,
        timeline: &mut Timeline<Line>,
        gpu: usize,
    ) {
        let excess = (self.all.len() + new.len()).saturating_sub(MOST);
        if excess == 0 {
            return;
        }
        let known = self
            .all
            .iter()
            .map(|holder| holder.peak_bytes(timeline, gpu));
        let mut peaks: Vec<(usize, f64)> = known
            .chain(new.iter().map(|(_, _, bytes)| *bytes))
            .enumerate()
            .collect();
        peaks.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let mut is_kept = vec![true; peaks.len()];
        peaks[..excess]
            .iter()
            .for_each(|(place, _)| is_kept[*place] = false);
        let mut is_kept = is_kept.into_iter();
        let mut keep = || is_kept.next().unwrap_or(true);
        let forgotten = self.all.extract_if(.., |_| !keep());
        forgotten.for_each(|holder| timeline.remove(&holder.line(gpu)));
        new.retain(|_| keep());
    }

    /// Removes holders without a value.
    pub(super) fn prune(&mut self, timeline: &Timeline<Line>, gpu: usize) {
        self.all
            .retain(|holder| timeline.line(&holder.line(gpu)).is_some());
    }

    /// Returns the holders that have a value from the position `old` on.
    pub(super) fn histories_from(
        &self,
        timeline: &Timeline<Line>,
        gpu: usize,
        old: usize,
    ) -> Vec<HolderHistory> {
        let newest = self.all.iter().filter_map(|holder| {
            Some(HolderHistory {
                process: holder.process.clone(),
                memory_bytes: charted_values(timeline.line(&holder.line(gpu))?, old),
            })
        });
        newest
            .filter(|holder| holder.memory_bytes.iter().any(Option::is_some))
            .collect()
    }
}

fn set_newest(timeline: &mut Timeline<Line>, line: Line, bytes: f64) {
    let column = timeline.line_or_new(line, Kind::Gauge);
    column.read(bytes, true, false);
}

impl Holder {
    fn line(&self, gpu: usize) -> Line {
        (gpu, Item::Holder(self.number))
    }

    /// Returns the largest value, or 0 if there is none.
    fn peak_bytes(&self, timeline: &Timeline<Line>, gpu: usize) -> f64 {
        let column = timeline.line(&self.line(gpu));
        let values = column.into_iter().flat_map(|column| column.values(0));
        values.flatten().fold(0.0, f64::max)
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

/// Returns the rank of a process as the representative of its holder: the kernel comes first, then
/// the process with the most memory.
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
    use gpumon_history::timeline::Moment;
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

    /// The holders after some samples, with their timeline.
    struct Held(Holders, Timeline<Line>);

    fn holders_after(samples: &[Vec<Process>]) -> Held {
        let mut held = Held(Holders::default(), Timeline::default());
        for (processes, at_ms) in samples.iter().zip(1..) {
            held.1.push(Moment { at_ms, reach_ms: 0 });
            held.0.set_newest(processes, &mut held.1, 7);
        }
        held
    }

    impl Held {
        fn newest_from(&self, old: usize) -> Vec<HolderHistory> {
            self.0.histories_from(&self.1, 7, old)
        }
    }

    fn bytes_by_pid(holders: &Held) -> Vec<(u32, Vec<Option<f32>>)> {
        holders
            .newest_from(0)
            .into_iter()
            .map(|holder| (holder.process.pid, holder.memory_bytes))
            .collect()
    }

    #[test]
    fn a_notebook_holds_what_its_kernel_and_its_children_do_and_whoever_has_gone_is_still_named() {
        let holders = holders_after(&[
            vec![
                process(9, 300, Some("k")),
                process(7, 100, Some("k")),
                process(3, 50, None),
            ],
            vec![process(7, 100, Some("k"))],
        ]);
        assert_eq!(
            bytes_by_pid(&holders),
            [
                (7, vec![Some(400.0), Some(100.0)]),
                (3, vec![Some(50.0), None])
            ]
        );
        assert_eq!(
            holders.newest_from(1).len(),
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
        assert_eq!(bytes_by_pid(&holders_after(&[vec![unknown]])), []);
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
        let Held(holders, timeline) = holders_after(&samples);
        assert_eq!(holders.all.len(), MOST);
        let mut peaks = holders
            .all
            .iter()
            .map(|holder| holder.peak_bytes(&timeline, 7));
        assert!(peaks.all(|peak| peak >= 99.0));
        assert_eq!(timeline.lines(..).count(), MOST);
    }

    #[test]
    fn who_is_forgotten_leaves_no_column() {
        let Held(mut holders, mut timeline) =
            holders_after(&[vec![process(1, 5, None)], Vec::new()]);
        timeline.drop_before(2);
        holders.prune(&timeline, 7);
        assert_eq!((holders.all.len(), timeline.lines(..).count()), (0, 0));
    }
}
