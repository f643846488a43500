//! Metrics pages that are shared by all clients, because they do not depend on the single client.
//! Pages that are requested regularly are written in advance.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use super::page_key::PageKey;
use crate::lock;

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
    /// The value of the hub's state change count when the page was written.
    change: u64,
    begun: Instant,
    asked: Instant,
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
            if kept.change < change || kept.begun.elapsed() >= REUSE_DURATION {
                *kept = KeptPage::new(change);
            }
            kept.asked = Instant::now();
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
        if let Some(kept) = newest.get_mut(&key).filter(|kept| kept.begun <= new.begun) {
            new.asked = kept.asked;
            *kept = new;
        }
    }

    /// Removes pages without recent requests, and returns the removed size in KiB.
    pub(crate) fn remove_unused_pages(&self) -> usize {
        let mut newest = lock::lock(&self.newest);
        let unwanted = newest.extract_if(|_, kept| kept.asked.elapsed() >= KEEP_DURATION);
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
            begun: Instant::now(),
            asked: Instant::now(),
            page: Arc::default(),
        }
    }
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
        long_ago.begun = Instant::now().checked_sub(REUSE_DURATION).unwrap();
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
            .asked -= KEEP_DURATION;
        assert_eq!(
            (pages.remove_unused_pages(), pages.requested_keys().len()),
            (2, 0)
        );
        pages.renew_page(PageKey::default(), 2, write);
        assert_eq!(pages.requested_keys(), [], "nobody asks for it");
    }
}
