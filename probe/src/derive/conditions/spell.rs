//! Whether something lasts: a sight that comes and goes, made steady.

use super::clock::Moment;

/// Without readings, what was begun to be seen is forgotten after this long,
const UNKNOWN_BEFORE_MS: u64 = 10_000;

/// and what lasts is over after this long.
const UNKNOWN_DURING_MS: u64 = 60_000;

/// What one look shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight<T> {
    /// It is there, like this.
    Seen(T),
    /// It is not there.
    Clear,
    /// It is hardly there any more: it counts as not there, and while it lasts it is as it is seen now.
    Fading(T),
    /// It is not there, and nothing says that it may come back at once: what lasts is over now.
    Over,
    /// This look can neither begin nor end it, as with a number between its two thresholds.
    Undecided,
    /// The readings that would tell are absent.
    Unknown,
}

/// Something that begins after it was seen for a while in a row, and ends after it was not seen for a while.
#[derive(Debug)]
pub(super) struct Spell<T> {
    begin_after_ms: u64,
    end_after_ms: u64,
    /// Since when it has been seen.
    since: Option<Moment>,
    latest: Option<T>,
    has_begun: bool,
    clear_since: Option<Moment>,
    unknown_since: Option<Moment>,
}

impl<T> Spell<T> {
    pub(super) fn new(begin_after_ms: u64, end_after_ms: u64) -> Self {
        Self {
            begin_after_ms,
            end_after_ms,
            since: None,
            latest: None,
            has_begun: false,
            clear_since: None,
            unknown_since: None,
        }
    }

    /// Takes in a look. While it lasts: since when it was seen, and how it was seen last.
    pub(super) fn update(&mut self, sight: Sight<T>, now: Moment) -> Option<(Moment, &T)> {
        if !matches!(sight, Sight::Unknown) {
            self.unknown_since = None;
        }
        match sight {
            Sight::Seen(seen) => {
                self.latest = Some(seen);
                self.clear_since = None;
                let since = *self.since.get_or_insert(now);
                self.has_begun |= now.since(since) >= self.begin_after_ms;
            }
            Sight::Clear => self.clear(now),
            Sight::Fading(seen) => {
                self.latest = Some(seen);
                self.clear(now);
            }
            Sight::Undecided if self.has_begun => {}
            Sight::Undecided | Sight::Over => self.forget(),
            Sight::Unknown => {
                let since = *self.unknown_since.get_or_insert(now);
                if now.since(since) >= if self.has_begun { UNKNOWN_DURING_MS } else { UNKNOWN_BEFORE_MS } {
                    self.forget();
                }
            }
        }
        let since = self.since.filter(|_| self.has_begun)?;
        Some((since, self.latest.as_ref()?))
    }

    fn clear(&mut self, now: Moment) {
        let since = *self.clear_since.get_or_insert(now);
        if !self.has_begun || now.since(since) >= self.end_after_ms {
            self.forget();
        }
    }

    /// Whether it lasts.
    pub(super) fn lasts(&self) -> bool {
        self.has_begun
    }

    pub(super) fn forget(&mut self) {
        *self = Self::new(self.begin_after_ms, self.end_after_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::clock::Clock, Sight::*, *};

    /// Shows a spell that begins after 3 s and ends after 10 s one look every `step_ms`; whether it lasts after each.
    fn lasting(step_ms: u64, looks: &[Sight<u8>]) -> Vec<bool> {
        let mut clock = Clock::default();
        let mut spell = Spell::new(3_000, 10_000);
        let mut now_ms = 1_000_000;
        let mut look = |sight: &Sight<u8>| {
            now_ms += step_ms;
            spell.update(*sight, clock.advance(now_ms, true)).is_some()
        };
        looks.iter().map(&mut look).collect()
    }

    /// The number of looks after which it first lasts, and after which it no longer does.
    fn turns(step_ms: u64, looks: &[Sight<u8>]) -> (Option<usize>, Option<usize>) {
        let lasting = lasting(step_ms, looks);
        let begun = lasting.iter().position(|lasts| *lasts);
        let ended = begun.and_then(|begun| lasting.iter().skip(begun).position(|lasts| !lasts).map(|end| begun + end));
        (begun, ended)
    }

    #[test]
    fn it_begins_and_ends_by_time_and_not_by_looks() {
        for (step_ms, begins, ends) in [(1_000, 3, 110), (100, 30, 200), (10_000, 1, 101)] {
            let looks: Vec<_> = (0..300).map(|look| if look < 100 { Seen(0) } else { Clear }).collect();
            assert_eq!(turns(step_ms, &looks), (Some(begins), Some(ends)), "{step_ms}");
        }
    }

    #[test]
    fn it_does_not_flap() {
        let blinking: Vec<_> = (0..100).map(|look| if look % 2 == 0 { Seen(0) } else { Clear }).collect();
        assert_eq!(turns(1_000, &blinking), (None, None), "never seen for long");
        let rarely: Vec<_> = (0..100).map(|look| if look < 5 || look % 8 == 0 { Seen(0) } else { Clear }).collect();
        assert_eq!(turns(1_000, &rarely), (Some(3), None), "never gone for long");
    }

    #[test]
    fn without_readings_it_does_not_begin_and_does_not_last_for_ever() {
        assert_eq!(turns(1_000, &[Unknown; 200]), (None, None));
        let lost: Vec<_> = (0..200).map(|look| if look < 10 { Seen(0) } else { Unknown }).collect();
        assert_eq!(turns(1_000, &lost), (Some(3), Some(70)));
        let once = [Seen(0), Seen(0), Unknown, Seen(0)];
        assert_eq!(lasting(1_000, &once), [false, false, false, true], "a single miss is no break");
        let long: Vec<_> = (0..14).map(|look| if (1..13).contains(&look) { Unknown } else { Seen(0) }).collect();
        assert_eq!(turns(1_000, &long), (None, None));
    }

    #[test]
    fn an_undecided_look_neither_begins_nor_ends_it() {
        assert_eq!(lasting(2_000, &[Seen(0), Undecided, Seen(0), Seen(0)]), [false; 4]);
        let looks: Vec<_> = (0..100).map(|look| if look < 5 { Seen(0) } else { Undecided }).collect();
        assert_eq!(turns(1_000, &looks), (Some(3), None));
    }

    #[test]
    fn it_tells_since_when_and_what_was_seen_last() {
        let mut clock = Clock::default();
        let mut spell = Spell::new(1_000, 10_000);
        let first = clock.advance(5_000, true);
        spell.update(Seen('a'), first);
        spell.update(Seen('b'), clock.advance(6_000, true));
        assert_eq!(spell.update(Clear, clock.advance(7_000, true)), Some((first, &'b')));
    }
}
