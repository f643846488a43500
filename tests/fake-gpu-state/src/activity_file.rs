//! The file with the activity of one process on one device. It consists of a few words.
//!
//! Running work is stored with its start time, so that a reader can compute how long it has been
//! running. The process itself does not write to the file until the work ends. Bytes and operations
//! are only counted then.

use std::array;

use crate::activity::{Activity, COUNTER_COUNT, Load, Peaks};

/// The number of words before the spans. They contain the number of spans, the counters, the time
/// up to which the counters are valid, and the peaks.
const HEADER_WORDS: usize = 1 + COUNTER_COUNT + 1 + 3;
const SPAN_WORDS: usize = 7;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ActivityFile {
    pub(crate) done: Activity,
    /// The time up to which work is included in the times of `done`.
    until_ns: u64,
    pub(crate) peaks: Peaks,
    /// The spans of running and future work.
    spans: Vec<Span>,
}

/// The time in which a kernel or a copy runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) from_ns: u64,
    /// The end of the span, or `u64::MAX` if the work is still running.
    pub(crate) until_ns: u64,
    pub(crate) load: Load,
}

impl ActivityFile {
    pub(crate) fn new(peaks: Peaks) -> Self {
        Self {
            peaks,
            ..Self::default()
        }
    }

    /// Adds a span that starts now or later. The caller must first count the times of the other
    /// spans up to now.
    pub(crate) fn add_span(&mut self, span: Span) {
        self.spans.push(span);
    }

    /// Ends the running span with this start and load.
    pub(crate) fn end_span(&mut self, from_ns: u64, load: Load, now_ns: u64) {
        let is_it =
            |own: &&mut Span| (own.from_ns, own.until_ns, own.load) == (from_ns, u64::MAX, load);
        if let Some(own) = self.spans.iter_mut().find(is_it) {
            own.until_ns = now_ns;
        }
    }

    /// Counts the times until `now_ns`.
    pub(crate) fn count_times_until(&mut self, now_ns: u64) {
        self.spans.sort_by_key(|span| span.from_ns);
        let (mut busy_until_ns, mut kernel_until_ns) = (self.until_ns, self.until_ns);
        let (mut sm_ns, mut warp_ns) = (0.0, 0.0);
        let (clocks, dram_bytes) = (self.peaks.clocks_per_second(), self.peaks.dram_bytes);
        for Span {
            from_ns,
            until_ns,
            load,
        } in &self.spans
        {
            let (from_ns, until_ns) = ((*from_ns).max(self.until_ns), (*until_ns).min(now_ns));
            let ns = until_ns.saturating_sub(from_ns) as f64;
            sm_ns += ns * load.sms;
            warp_ns += ns * load.warps;
            self.done.half_clocks += (ns * load.tensor * clocks / 1e9) as u64;
            self.done.single_clocks += (ns * load.single * clocks / 1e9) as u64;
            self.done.dram_bytes += (ns * load.dram * dram_bytes / 1e9) as u64;
            // Spans that run at the same time count only once as busy time.
            self.done.busy_ns += until_ns.saturating_sub(from_ns.max(busy_until_ns));
            busy_until_ns = busy_until_ns.max(until_ns);
            if load.sms > 0.0 {
                self.done.kernel_ns += until_ns.saturating_sub(from_ns.max(kernel_until_ns));
                kernel_until_ns = kernel_until_ns.max(until_ns);
            }
        }
        self.done.sm_ns += sm_ns as u64;
        self.done.warp_ns += warp_ns as u64;
        self.until_ns = self.until_ns.max(now_ns);
        self.spans.retain(|span| span.until_ns > now_ns);
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut words = vec![self.spans.len() as u64];
        words.extend(self.done.to_words());
        let Peaks {
            multiprocessors,
            sm_mhz,
            dram_bytes,
        } = self.peaks;
        words.push(self.until_ns);
        words.extend([multiprocessors, sm_mhz, dram_bytes].map(f64::to_bits));
        for Span {
            from_ns,
            until_ns,
            load,
        } in &self.spans
        {
            words.extend([*from_ns, *until_ns]);
            let shares = [load.sms, load.warps, load.tensor, load.single, load.dram];
            words.extend(shares.map(f64::to_bits));
        }
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Parses a file. Returns `None` if nothing has been written yet. Bytes after the last span are
    /// ignored: they remain from a longer version of the file, which was overwritten in place.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let words: Vec<_> = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect();
        let count = usize::try_from(*words.first()?).ok()?;
        let end = count.checked_mul(SPAN_WORDS)?.checked_add(HEADER_WORDS)?;
        let own = words.get(..end)?;
        let [_, done @ .., until_ns, multiprocessors, clock, dram] =
            own.first_chunk::<HEADER_WORDS>()?;
        let done = Activity::from_words(array::from_fn(|at| done[at]));
        let [multiprocessors, sm_mhz, dram_bytes] =
            [multiprocessors, clock, dram].map(|word| f64::from_bits(*word));
        let peaks = Peaks {
            multiprocessors,
            sm_mhz,
            dram_bytes,
        };
        let span = |[from_ns, until_ns, shares @ ..]: &[u64; SPAN_WORDS]| {
            let [sms, warps, tensor, single, dram] = shares.map(f64::from_bits);
            Span {
                from_ns: *from_ns,
                until_ns: *until_ns,
                load: Load {
                    sms,
                    warps,
                    tensor,
                    single,
                    dram,
                },
            }
        };
        let spans = own[HEADER_WORDS..].as_chunks().0.iter().map(span).collect();
        Some(Self {
            done,
            until_ns: *until_ns,
            peaks,
            spans,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_LOAD: Load = Load {
        sms: 0.5,
        warps: 0.25,
        tensor: 0.0,
        single: 0.0,
        dram: 0.0,
    };

    fn make_span(from_ns: u64, until_ns: u64) -> Span {
        Span {
            from_ns,
            until_ns,
            load: HALF_LOAD,
        }
    }

    #[test]
    fn shares_of_running_kernel_are_counted() {
        let mut page = ActivityFile::new(Peaks {
            multiprocessors: 2.0,
            sm_mhz: 1000.0,
            dram_bytes: 4e9,
        });
        page.count_times_until(1000);
        page.add_span(Span {
            load: Load {
                tensor: 1.0,
                dram: 0.5,
                ..HALF_LOAD
            },
            ..make_span(1000, u64::MAX)
        });
        page.count_times_until(1500);
        assert_eq!((page.done.half_clocks, page.done.dram_bytes), (1000, 1000));
    }

    #[test]
    fn copies_are_not_kernel_time() {
        let mut page = ActivityFile::default();
        page.count_times_until(1000);
        page.add_span(Span {
            load: Load::default(),
            ..make_span(1000, 1500)
        });
        page.add_span(make_span(1400, 1700));
        page.count_times_until(2000);
        assert_eq!((page.done.busy_ns, page.done.kernel_ns), (700, 300));
    }

    fn count_times(page: &ActivityFile, now_ns: u64) -> [u64; 3] {
        let mut page = page.clone();
        page.count_times_until(now_ns);
        [page.done.busy_ns, page.done.sm_ns, page.done.warp_ns]
    }

    #[test]
    fn overlapping_spans_count_once() {
        let mut page = ActivityFile::default();
        page.count_times_until(1000);
        page.add_span(make_span(1000, u64::MAX));
        assert_eq!(count_times(&page, 900), [0, 0, 0]);
        assert_eq!(count_times(&page, 1400), [400, 200, 100]);
        // The second span overlaps the first, and ends before it.
        page.count_times_until(1200);
        page.add_span(make_span(1200, 1600));
        assert_eq!(count_times(&page, 1600), [600, 500, 250]);
        page.count_times_until(2000);
        page.end_span(1000, HALF_LOAD, 2000);
        assert_eq!(count_times(&page, 3000), [1000, 700, 350]);
        // The third span starts later, as queued work of a stream does.
        page.add_span(make_span(4000, 4100));
        assert_eq!(
            (count_times(&page, 3500), count_times(&page, 9000)),
            ([1000, 700, 350], [1100, 750, 375])
        );
    }

    #[test]
    fn file_survives_round_trip() {
        let mut page = ActivityFile::new(Peaks {
            multiprocessors: 132.0,
            sm_mhz: 1980.0,
            dram_bytes: 2e9,
        });
        page.done = Activity {
            busy_ns: 1,
            nvlink_rx_bytes: 9,
            pcie_rx_bytes: 6,
            ..Activity::default()
        };
        let short = page.bytes();
        page.add_span(make_span(5, u64::MAX));
        let long = page.bytes();
        assert_eq!(ActivityFile::from_bytes(&long).as_ref(), Some(&page));
        // The remaining bytes of the longer version must be ignored.
        let rest = [&short[..], &long[short.len()..]].concat();
        assert!(ActivityFile::from_bytes(&rest).is_some_and(|page| page.spans.is_empty()));
        assert_eq!(
            (
                ActivityFile::from_bytes(&[]),
                ActivityFile::from_bytes(&long[..80])
            ),
            (None, None)
        );
    }
}
