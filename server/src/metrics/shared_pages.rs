//! Metrics pages that are shared by all clients, because their content does not depend on which
//! client requests them. Pages that are requested regularly are written in advance.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::Format;
use crate::{lock, view::View};

/// The time for which a page is reused: slightly longer than the usual sampling interval, because a
/// new page is written after each sample.
const REUSE_DURATION: Duration = Duration::from_millis(1200);

/// The time for which a page is kept without requests. Prometheus scrapes every minute by default.
const KEEP_DURATION: Duration = Duration::from_secs(90);

/// The newest page for each key.
#[derive(Default)]
pub(crate) struct SharedPages {
    newest: Mutex<HashMap<PageKey, KeptPage>>,
}

struct KeptPage {
    /// The number of state changes in the hub at the time when the page was written.
    change: u64,
    started: Instant,
    requested: Instant,
    page: Arc<OnceLock<Vec<u8>>>,
}

impl SharedPages {
    /// Returns a recent page, or else the result of `write`. If another thread is already writing
    /// the page, this waits for the result.
    pub(super) fn get_or_write(
        &self,
        key: PageKey,
        change: u64,
        write: impl FnOnce() -> Vec<u8>,
    ) -> Vec<u8> {
        let page = {
            let mut newest = lock::lock(&self.newest);
            let kept = newest.entry(key).or_insert_with(|| KeptPage::new(change));
            if kept.change < change || kept.started.elapsed() >= REUSE_DURATION {
                *kept = KeptPage::new(change);
            }
            kept.requested = Instant::now();
            Arc::clone(&kept.page)
        };
        page.get_or_init(write).clone()
    }

    /// Returns the keys of the pages that clients request regularly.
    pub(super) fn requested_keys(&self) -> Vec<PageKey> {
        lock::lock(&self.newest).keys().copied().collect()
    }

    /// Writes a new version of a page in advance.
    pub(super) fn renew_page(&self, key: PageKey, change: u64, write: impl FnOnce() -> Vec<u8>) {
        let mut new = KeptPage::new(change);
        let _ = new.page.set(write());
        let mut newest = lock::lock(&self.newest);
        if let Some(kept) = newest
            .get_mut(&key)
            .filter(|kept| kept.started <= new.started)
        {
            new.requested = kept.requested;
            *kept = new;
        }
    }

    /// Removes pages without recent requests, and returns the removed size in KiB.
    pub(crate) fn remove_unused_pages(&self) -> usize {
        let mut newest = lock::lock(&self.newest);
        let unwanted = newest.extract_if(|_, kept| kept.requested.elapsed() >= KEEP_DURATION);
        unwanted
            .filter_map(|(_, kept)| kept.page.get().map(Vec::len))
            .sum::<usize>()
            / 1024
    }
}

impl KeptPage {
    fn new(change: u64) -> Self {
        Self {
            change,
            started: Instant::now(),
            requested: Instant::now(),
            page: Arc::default(),
        }
    }
}

/// The naming scheme of the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[schemars(rename = "MetricNames")]
pub(crate) enum MetricNames {
    /// gpumon's own names, in base units.
    #[default]
    #[serde(rename = "gpumon")]
    Gpumon,
    /// dcgm-exporter's names up to version 4.8.
    #[serde(rename = "dcgm")]
    Dcgm,
    /// dcgm-exporter's names since version 4.9.
    #[serde(rename = "dcgm-4.9")]
    Dcgm49,
}

/// The groups of clients that a page is written for. No page is written for a single user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum PageReader {
    /// The server's own user, and clients with the scope `metrics`.
    #[default]
    Trusted,
    /// All users of the machine. `commands` has the same meaning as in [`View::Names`].
    Anybody { commands: bool },
    /// A client that sees no users, jobs or pods.
    Nobody,
}

impl PageReader {
    /// Returns the group of clients that has this view.
    pub(super) fn from_view(view: &View) -> Self {
        match view {
            View::Whole => Self::Trusted,
            View::Names { commands, .. } => Self::Anybody {
                commands: *commands,
            },
            View::Own(_) => Self::Nobody,
        }
    }

    pub(super) fn to_view(self) -> View {
        match self {
            Self::Trusted => View::Whole,
            Self::Anybody { commands } => View::Names {
                user: None,
                commands,
            },
            Self::Nobody => View::Own(None),
        }
    }
}

/// The properties that distinguish the pages written from the same sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
// The booleans are independent options.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct PageKey {
    pub(super) names: MetricNames,
    pub(super) links: bool,
    /// Whether the page includes metrics of processes.
    pub(super) processes: bool,
    /// The clients that the page is written for.
    pub(super) reader: PageReader,
    pub(super) format: Format,
    pub(super) gzip: bool,
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn page_is_shared_until_data_changes() {
        let (pages, written) = (SharedPages::default(), AtomicUsize::new(0));
        let write = || {
            thread::sleep(Duration::from_millis(5));
            vec![written.fetch_add(1, Ordering::Relaxed) as u8; 2048]
        };
        let get = |change| pages.get_or_write(PageKey::default(), change, write);
        thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| get(1))).collect();
            assert!(all.into_iter().all(|reader| reader.join().unwrap()[0] == 0));
        });
        assert_eq!((get(2)[0], get(2)[0]), (1, 1));
        assert_eq!(pages.requested_keys(), [PageKey::default()]);
        pages.renew_page(PageKey::default(), 2, write);
        assert_eq!((get(2)[0], pages.remove_unused_pages()), (2, 0));
        let mut long_ago = KeptPage::new(2);
        long_ago.started = Instant::now().checked_sub(REUSE_DURATION).unwrap();
        pages
            .newest
            .lock()
            .unwrap()
            .insert(PageKey::default(), long_ago);
        assert_eq!(get(2)[0], 3);
        pages
            .newest
            .lock()
            .unwrap()
            .get_mut(&PageKey::default())
            .unwrap()
            .requested -= KEEP_DURATION;
        assert_eq!(
            (pages.remove_unused_pages(), pages.requested_keys().len()),
            (2, 0)
        );
        pages.renew_page(PageKey::default(), 2, write);
        assert_eq!(pages.requested_keys(), [], "nobody asks for it");
    }
}
