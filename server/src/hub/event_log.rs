//! Recent events. Those of processes and cells are many, and marks can be: they must not push out
//! the others.

use std::collections::VecDeque;

use gpumon_probe::model::{Event, EventKind};

/// So many events are remembered for clients to come.
const EVENTS: usize = 256;

/// So many processes' starts and ends between two samples are passed on, of all GPUs together. The
/// collector limits those of each GPU, but with many GPUs even slightly slow clients would miss
/// what is queued with them.
pub(super) const PROCESS_EVENTS: usize = 64;

/// So many marks are among them.
const MARKS: usize = 64;

/// The newest events, the oldest first.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    events: VecDeque<Event>,
    /// Those of processes since the newest sample.
    process_events: usize,
}

impl EventLog {
    /// Adds an event of the collector; false where it is one of too many.
    pub(super) fn add_from_collector(&mut self, event: &Event) -> bool {
        self.process_events += usize::from(is_of_process(event));
        let is_kept = !is_of_process(event) || self.process_events <= PROCESS_EVENTS;
        if is_kept {
            self.add(event.clone());
        }
        is_kept
    }

    /// Adds an event, in the place of another where there is no room.
    pub(super) fn add(&mut self, event: Event) {
        if !is_mark(&event) {
            self.make_room();
            self.events.push_back(event);
            return;
        }
        if self.events.iter().filter(|known| is_mark(known)).count() == MARKS {
            let oldest = self.events.iter().position(is_mark);
            oldest.and_then(|place| self.events.remove(place));
        }
        self.make_room();
        // It may be of a moment before what is known already.
        let place = self
            .events
            .iter()
            .rposition(|known| known.at_ms <= event.at_ms)
            .map_or(0, |before| before + 1);
        self.events.insert(place, event);
    }

    /// Puts what an earlier process has seen before what this one has.
    pub(super) fn restore(&mut self, earlier: Vec<Event>) {
        let since = std::mem::take(&mut self.events);
        earlier
            .into_iter()
            .chain(since)
            .for_each(|event| self.add(event));
    }

    /// Puts what another server has seen, too, in its place; what is known already stays as it is.
    pub(super) fn merge(&mut self, others: Vec<Event>) {
        let mut events: Vec<_> = std::mem::take(&mut self.events).into();
        let unknown: Vec<_> = others
            .into_iter()
            .filter(|event| !events.iter().any(|known| known.is_same(event)))
            .collect();
        events.extend(unknown);
        events.sort_by_key(|event| event.at_ms);
        for event in events {
            self.add(event);
        }
    }

    fn make_room(&mut self) {
        if self.events.len() == EVENTS {
            self.events.remove(least_important(&self.events));
        }
    }

    /// A sample came: what processes do is counted anew.
    pub(super) fn on_sample(&mut self) {
        self.process_events = 0;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }
}

/// The oldest; that of the processes and cells, where those have most of the places: whoever starts
/// many of them must not make the Xids of yesterday be forgotten.
fn least_important(events: &VecDeque<Event>) -> usize {
    let is_frequent =
        |event: &&Event| is_of_process(event) || matches!(event.what, EventKind::Cell(_));
    let frequent = events.iter().filter(is_frequent).count();
    let oldest = events.iter().position(|event| is_frequent(&event));
    oldest.filter(|_| frequent > events.len() / 2).unwrap_or(0)
}

fn is_of_process(event: &Event) -> bool {
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
    fn processes_that_come_and_go_do_not_push_out_what_happened_to_gpus() {
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
            (EVENTS, 0, 1000 - EVENTS as u64 + 2)
        );
        for at_ms in 1001..=2000 {
            add(&mut log, at_ms, EventKind::MigChanged);
        }
        assert_eq!(log.iter().last().unwrap().at_ms, 2000);
        assert!(
            log.iter()
                .filter(|event| event.what == EventKind::MigChanged)
                .count()
                >= EVENTS / 2
        );
    }

    #[test]
    fn marks_stand_where_their_moment_is_and_push_out_marks_alone() {
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
        (100..100 + MARKS as u64).for_each(|at_ms| log.add(mark(at_ms)));
        let times: Vec<_> = log.iter().map(|event| event.at_ms).collect();
        assert_eq!(
            (times.len(), &times[..4]),
            (3 + MARKS, &[10, 20, 30, 100][..])
        );
    }
}
