//! The log of recent events. Process events and cell events are frequent, and marks can be frequent
//! too. These events must not displace other events.

use std::collections::VecDeque;

use gpumon_probe::model::{Event, EventKind};

/// The maximum number of events in the log.
const MAX_EVENTS: usize = 256;

/// The maximum number of process events between two samples, for all GPUs together. The collector
/// limits only the events of each single GPU. With many GPUs, these events would overflow the
/// queues of slow clients, and other events would be lost.
pub(super) const MAX_PROCESS_EVENTS: usize = 64;

/// The maximum number of marks in the log.
const MAX_MARKS: usize = 64;

/// The newest events, the oldest first.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    events: VecDeque<Event>,
    /// The number of process events since the newest sample.
    process_events: usize,
}

impl EventLog {
    /// Adds an event from the collector. Returns `false` if the event exceeds the limit of process
    /// events.
    pub(super) fn add_from_collector(&mut self, event: &Event) -> bool {
        self.process_events += usize::from(is_process_event(event));
        let is_kept = !is_process_event(event) || self.process_events <= MAX_PROCESS_EVENTS;
        if is_kept {
            self.add(event.clone());
        }
        is_kept
    }

    /// Adds an event. If the log is full, the least important event is removed. If the log has the
    /// maximum number of marks, a new mark replaces the oldest one.
    pub(super) fn add(&mut self, event: Event) {
        if !is_mark(&event) {
            self.make_room();
            self.events.push_back(event);
            return;
        }
        if self.events.iter().filter(|known| is_mark(known)).count() == MAX_MARKS {
            let oldest = self.events.iter().position(is_mark);
            oldest.and_then(|place| self.events.remove(place));
        }
        self.make_room();
        // A mark may have an earlier time than the newest event.
        let place = self
            .events
            .iter()
            .rposition(|known| known.at_ms <= event.at_ms)
            .map_or(0, |before| before + 1);
        self.events.insert(place, event);
    }

    /// Adds the events of an earlier process before the events of this process.
    pub(super) fn restore(&mut self, earlier: Vec<Event>) {
        let since = std::mem::take(&mut self.events);
        earlier
            .into_iter()
            .chain(since)
            .for_each(|event| self.add(event));
    }

    /// Adds the events of another server. If an event is in both logs, this log's copy is kept.
    pub(super) fn merge(&mut self, others: Vec<Event>) {
        let mut events: Vec<_> = std::mem::take(&mut self.events).into();
        let unknown: Vec<_> = others
            .into_iter()
            .filter(|event| !events.iter().any(|known| known.is_same_event(event)))
            .collect();
        events.extend(unknown);
        events.sort_by_key(|event| event.at_ms);
        for event in events {
            self.add(event);
        }
    }

    fn make_room(&mut self) {
        if self.events.len() == MAX_EVENTS {
            self.events.remove(find_event_to_remove(&self.events));
        }
    }

    /// Resets the count of process events, because a new sample has arrived.
    pub(super) fn reset_process_event_count(&mut self) {
        self.process_events = 0;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }
}

/// Returns the position of the event to remove first, which is the oldest one. If more than half of
/// the events are about processes and cells, only these events are considered. Many short-lived
/// processes therefore do not displace older Xid events.
fn find_event_to_remove(events: &VecDeque<Event>) -> usize {
    let is_frequent =
        |event: &&Event| is_process_event(event) || matches!(event.what, EventKind::Cell(_));
    let frequent = events.iter().filter(is_frequent).count();
    let oldest = events.iter().position(|event| is_frequent(&event));
    oldest.filter(|_| frequent > events.len() / 2).unwrap_or(0)
}

fn is_process_event(event: &Event) -> bool {
    matches!(
        event.what,
        EventKind::ProcessStarted(_) | EventKind::ProcessEnded(_)
    )
}

fn is_mark(event: &Event) -> bool {
    matches!(event.what, EventKind::Mark(_))
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Mark, ProcessRef, Reading};

    use super::*;

    #[test]
    fn many_process_events_do_not_evict_gpu_events() {
        let mut log = EventLog::default();
        let add = |log: &mut EventLog, at_ms, what| {
            log.add(Event {
                at_ms,
                gpu: None,
                what,
            });
        };
        add(&mut log, 0, EventKind::MigChanged);
        for at_ms in 1..=1000 {
            let unknown = || Reading::Absent(Absence::Unknown);
            let started_ms = Reading::Absent(Absence::Unknown);
            let started = ProcessRef {
                pid: 1,
                name: unknown(),
                program: None,
                user: unknown(),
                started_ms,
            };
            add(&mut log, at_ms, EventKind::ProcessStarted(started));
        }
        let times: Vec<_> = log.iter().map(|event| event.at_ms).collect();
        assert_eq!(
            (times.len(), times[0], times[1]),
            (MAX_EVENTS, 0, 1000 - MAX_EVENTS as u64 + 2)
        );
        for at_ms in 1001..=2000 {
            add(&mut log, at_ms, EventKind::MigChanged);
        }
        assert_eq!(log.iter().last().unwrap().at_ms, 2000);
        assert!(
            log.iter()
                .filter(|event| event.what == EventKind::MigChanged)
                .count()
                >= MAX_EVENTS / 2
        );
    }

    #[test]
    fn marks_are_sorted_and_evict_only_other_marks() {
        let mut log = EventLog::default();
        let mark = |at_ms: u64| Event {
            at_ms,
            gpu: None,
            what: EventKind::Mark(Mark {
                text: at_ms.to_string(),
                user: None,
            }),
        };
        for at_ms in [10, 20, 30] {
            log.add(Event {
                at_ms,
                gpu: None,
                what: EventKind::MigChanged,
            });
        }
        log.add(mark(25));
        log.add(mark(5));
        assert_eq!(
            log.iter().map(|event| event.at_ms).collect::<Vec<_>>(),
            [5, 10, 20, 25, 30]
        );
        (100..100 + MAX_MARKS as u64).for_each(|at_ms| log.add(mark(at_ms)));
        let times: Vec<_> = log.iter().map(|event| event.at_ms).collect();
        assert_eq!(
            (times.len(), &times[..4]),
            (3 + MAX_MARKS, &[10, 20, 30, 100][..])
        );
    }
}
