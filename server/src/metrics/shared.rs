//! What was written last, once for all who ask: the pages do not differ by reader.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::PageKey;

/// The newest page of each kind.
#[derive(Default)]
pub(crate) struct SharedPages {
    newest: Mutex<HashMap<PageKey, Written>>,
}

/// As of which change it is, and the page when it is written.
type Written = (u64, Arc<OnceLock<Vec<u8>>>);

impl SharedPages {
    /// A copy of the page as of this change, made by `write` unless somebody has made it. It waits for whoever does.
    pub(super) fn get(&self, key: PageKey, change: u64, write: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        let page = {
            let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
            let (known, page) = newest.entry(key).or_default();
            if *known < change || *known == 0 {
                (*known, *page) = (change, Arc::default());
            }
            Arc::clone(page)
        };
        page.get_or_init(write).clone()
    }

    /// Lets go of all, and says how many KiB that was.
    pub(crate) fn trim(&self) -> usize {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = newest.drain().filter_map(|(_, (_, page))| page.get().map(Vec::len)).sum::<usize>();
        bytes / 1024
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
    fn a_page_is_written_once_for_all_and_again_after_a_change() {
        let (pages, written) = (SharedPages::default(), AtomicUsize::new(0));
        let get = |change| {
            pages.get(PageKey::default(), change, || {
                thread::sleep(std::time::Duration::from_millis(5));
                vec![written.fetch_add(1, Ordering::Relaxed) as u8; 2048]
            })
        };
        thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| get(1))).collect();
            assert!(all.into_iter().all(|reader| reader.join().unwrap()[0] == 0));
        });
        assert_eq!((get(2)[0], get(2)[0]), (1, 1));
        assert_eq!(get(1)[0], 1, "a newer one than was known when it was asked for");
        assert_eq!(pages.trim(), 2);
        assert_eq!(get(2)[0], 2);
    }
}
