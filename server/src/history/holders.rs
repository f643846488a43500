//! The processes that recently held a GPU's memory.

use std::{cmp::Reverse, collections::HashMap};

use gpumon_history::{span::round_to_four_digits, timeline::Timeline};
use gpumon_probe::model::{MigInstance, Process, ProcessKind, fields::Kind};

use super::recent::{LineKey, LineKind, chart_values};
use crate::frame::HolderHistory;

/// The maximum number of holders per GPU. Those with the most memory are kept. Charts show even
/// fewer of them by name.
const MAX_HOLDERS: usize = 16;

/// A holder's identity: a notebook with all processes of its kernel, or another process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum HolderKey {
    Kernel(String),
    /// A process. PIDs are reused, so the start time is part of the identity. A process that holds
    /// two MIG instances has an entry for each.
    Process {
        pid: u32,
        started_ms: Option<u64>,
        kind: ProcessKind,
        mig: Option<MigInstance>,
    },
}

/// The holders of one GPU, in the order of their appearance. Their memory is recorded in the
/// timeline.
#[derive(Debug, Default)]
pub(super) struct Holders {
    all: Vec<Holder>,
    next: usize,
}

#[derive(Debug)]
struct Holder {
    key: HolderKey,
    /// The last known state of the process.
    process: Process,
    number: usize,
}

impl Holders {
    /// Sets the newest value of each holder of a GPU.
    pub(super) fn set_newest_values(
        &mut self,
        processes: &[Process],
        timeline: &mut Timeline<LineKey>,
        gpu: usize,
    ) {
        let mut held: HashMap<HolderKey, (&Process, f64)> = HashMap::new();
        for process in processes {
            let Some(bytes) = process.memory_bytes.value() else {
                continue;
            };
            let (main, sum) = held
                .entry(HolderKey::from_process(process))
                .or_insert((process, 0.0));
            *sum += *bytes as f64;
            if representative_rank(process) > representative_rank(main) {
                *main = process;
            }
        }
        let mut held: Vec<_> = held.into_iter().collect();
        held.sort_by_key(|(_, (main, bytes))| (Reverse(*bytes as u64), main.pid));
        let mut new = Vec::new();
        for (key, (main, bytes)) in held.into_iter().take(MAX_HOLDERS) {
            let bytes = round_to_four_digits(bytes);
            match self.all.iter_mut().find(|holder| holder.key == key) {
                Some(holder) => {
                    holder.process.clone_from(main);
                    set_newest_bytes(timeline, holder.line_key(gpu), bytes);
                }
                None => new.push((key, main, bytes)),
            }
        }
        self.remove_smallest_holders(&mut new, timeline, gpu);
        for (key, main, bytes) in new {
            let holder = Holder {
                key,
                process: main.clone(),
                number: self.next,
            };
            set_newest_bytes(timeline, holder.line_key(gpu), bytes);
            self.next += 1;
            self.all.push(holder);
        }
    }

    /// Removes existing and new holders with the least memory until at most [`MAX_HOLDERS`] remain
    /// in total. Of two holders with equal memory, the older is removed. This happens before new
    /// holders get columns: adding and dropping columns for hundreds of short-lived processes per
    /// second would fragment the heap.
    fn remove_smallest_holders(
        &mut self,
        new: &mut Vec<(HolderKey, &Process, f64)>,
        timeline: &mut Timeline<LineKey>,
        gpu: usize,
    ) {
        let excess = (self.all.len() + new.len()).saturating_sub(MAX_HOLDERS);
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
        forgotten.for_each(|holder| timeline.remove(&holder.line_key(gpu)));
        new.retain(|_| keep());
    }

    /// Removes holders that no longer have any value in the timeline.
    pub(super) fn remove_holders_without_values(
        &mut self,
        timeline: &Timeline<LineKey>,
        gpu: usize,
    ) {
        self.all
            .retain(|holder| timeline.find_column(&holder.line_key(gpu)).is_some());
    }

    /// Returns the histories, from position `old` of the timeline, of all holders that have a value
    /// there or later.
    pub(super) fn list_histories(
        &self,
        timeline: &Timeline<LineKey>,
        gpu: usize,
        old: usize,
    ) -> Vec<HolderHistory> {
        let newest = self.all.iter().filter_map(|holder| {
            Some(HolderHistory {
                process: holder.process.clone(),
                memory_bytes: chart_values(timeline.find_column(&holder.line_key(gpu))?, old),
            })
        });
        newest
            .filter(|holder| holder.memory_bytes.iter().any(Option::is_some))
            .collect()
    }
}

fn set_newest_bytes(timeline: &mut Timeline<LineKey>, line: LineKey, bytes: f64) {
    let column = timeline.column_or_new(line, Kind::Gauge);
    column.record_reading(bytes, true, false);
}

impl Holder {
    fn line_key(&self, gpu: usize) -> LineKey {
        (gpu, LineKind::Holder(self.number))
    }

    /// Returns a holder's largest memory value, or 0 if it has none.
    fn peak_bytes(&self, timeline: &Timeline<LineKey>, gpu: usize) -> f64 {
        let column = timeline.find_column(&self.line_key(gpu));
        let values = column.into_iter().flat_map(|column| column.values(0));
        values.flatten().fold(0.0, f64::max)
    }
}

impl HolderKey {
    fn from_process(process: &Process) -> Self {
        match process.notebook() {
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

/// Returns the rank by which a holder's representative process is chosen. The kernel's own process
/// ranks first, then the process with the most memory.
fn representative_rank(process: &Process) -> (bool, u64) {
    (
        process
            .notebook()
            .is_some_and(|own| own.kernel_pid == process.pid),
        process.memory_bytes.value().copied().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use gpumon_history::timeline::TimePoint;
    use gpumon_probe::model::{Absence, Notebook, Owner, Reading};

    use super::*;

    fn make_process(pid: u32, bytes: u64, kernel: Option<&str>) -> Process {
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

    /// The holders after a series of samples, with their timeline.
    struct TestHolders(Holders, Timeline<LineKey>);

    fn build_holders(samples: &[Vec<Process>]) -> TestHolders {
        let mut held = TestHolders(Holders::default(), Timeline::default());
        for (processes, at_ms) in samples.iter().zip(1..) {
            held.1.push(TimePoint { at_ms, reach_ms: 0 });
            held.0.set_newest_values(processes, &mut held.1, 7);
        }
        held
    }

    impl TestHolders {
        fn histories_from_position(&self, old: usize) -> Vec<HolderHistory> {
            self.0.list_histories(&self.1, 7, old)
        }
    }

    fn bytes_by_pid(holders: &TestHolders) -> Vec<(u32, Vec<Option<f32>>)> {
        holders
            .histories_from_position(0)
            .into_iter()
            .map(|holder| (holder.process.pid, holder.memory_bytes))
            .collect()
    }

    #[test]
    fn notebook_sums_memory_of_its_kernel_processes() {
        let holders = build_holders(&[
            vec![
                make_process(9, 300, Some("k")),
                make_process(7, 100, Some("k")),
                make_process(3, 50, None),
            ],
            vec![make_process(7, 100, Some("k"))],
        ]);
        assert_eq!(
            bytes_by_pid(&holders),
            [
                (7, vec![Some(400.0), Some(100.0)]),
                (3, vec![Some(50.0), None])
            ]
        );
        assert_eq!(
            holders.histories_from_position(1).len(),
            1,
            "who held nothing then is left out"
        );
    }

    #[test]
    fn unknown_memory_is_ignored() {
        let unknown = Process {
            memory_bytes: Reading::Absent(Absence::Unknown),
            ..make_process(1, 0, None)
        };
        assert_eq!(bytes_by_pid(&build_holders(&[vec![unknown]])), []);
    }

    #[test]
    fn number_of_holders_is_limited_to_largest() {
        let samples: Vec<_> = (0..200)
            .map(|at| {
                (0..100)
                    .map(|i| make_process(at * 100 + i, u64::from(i) + 1, None))
                    .collect()
            })
            .collect();
        let TestHolders(holders, timeline) = build_holders(&samples);
        assert_eq!(holders.all.len(), MAX_HOLDERS);
        let mut peaks = holders
            .all
            .iter()
            .map(|holder| holder.peak_bytes(&timeline, 7));
        assert!(peaks.all(|peak| peak >= 99.0));
        assert_eq!(timeline.columns(..).count(), MAX_HOLDERS);
    }

    #[test]
    fn pruning_memory_holder_removes_its_column() {
        let TestHolders(mut holders, mut timeline) =
            build_holders(&[vec![make_process(1, 5, None)], Vec::new()]);
        timeline.drop_before(2);
        holders.remove_holders_without_values(&timeline, 7);
        assert_eq!((holders.all.len(), timeline.columns(..).count()), (0, 0));
    }
}
