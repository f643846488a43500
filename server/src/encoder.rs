//! Encoding of large responses outside the event loop. The number of simultaneous encodings is
//! limited, and equal requests share a response.
//!
//! The history of 64 GPUs is 10 MB of JSON. Encoding this in the event loop would delay the samples
//! of all clients.
//!
//! Each user gets at most half of the encodings at a time, and not more memory than remains for
//! others. A user with many requests, or with slow connections, therefore does not delay other
//! users.

use std::{
    collections::HashMap,
    hash::Hash,
    io::Write,
    sync::{Arc, Mutex},
    thread::available_parallelism,
    time::Duration,
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::{Instant, timeout},
};

use crate::{lock, peer::Who};

/// The time for which a response is reused for equal requests.
const REUSE_FOR: Duration = Duration::from_millis(500);

const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// The compression level. The fastest one reduces JSON to a tenth of its size.
const COMPRESSION: Compression = Compression::fast();

/// The error if there are too many requests, or if clients read too slowly.
#[derive(Debug)]
pub(crate) struct Overloaded;

/// An encoder of responses, which are identified by a key `K`.
pub(crate) struct Encoder<K> {
    permits: Arc<Semaphore>,
    permits_per_user: usize,
    /// The permits of each user who encodes or waits.
    by_user: Mutex<HashMap<Who, Arc<Semaphore>>>,
    quota: Arc<MemoryQuota>,
    /// The recent responses, including those that are being encoded.
    recent: Mutex<HashMap<K, Recent>>,
}

struct Recent {
    at: Instant,
    answer: Arc<OnceCell<Bytes>>,
}

impl Recent {
    /// Returns `true` if the response is recent, or if a request waits for it.
    fn is_wanted(&self) -> bool {
        self.at.elapsed() < REUSE_FOR
            || (!self.answer.initialized() && Arc::strong_count(&self.answer) > 1)
    }
}

impl<K: Clone + Eq + Hash> Encoder<K> {
    /// Creates an encoder that uses half of the processors, so that the others serve clients. All
    /// responses that are being sent have at most `most_held_kib` together, so that slow clients do
    /// not fill the memory.
    pub(crate) fn new(most_held_kib: usize) -> Self {
        let permits = available_parallelism().map_or(1, |all| (all.get() / 2).clamp(1, 4));
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            permits_per_user: permits.div_ceil(2),
            by_user: Mutex::default(),
            quota: Arc::new(MemoryQuota {
                most_kib: most_held_kib,
                held_kib: Mutex::default(),
            }),
            recent: Mutex::default(),
        }
    }

    /// Returns the response for `key`: a recent one, or the result of `write`.
    ///
    /// # Errors
    /// Returns [`Overloaded`] if there is no permit within ten seconds, or if the responses being
    /// sent exceed the quota.
    pub(crate) async fn answer(
        &self,
        who: Who,
        key: K,
        write: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<Bytes, Overloaded> {
        let answer = self.entry_of(key);
        if let Some(written) = answer.get() {
            return Ok(written.clone());
        }
        // The permit is acquired before the encoding starts. Otherwise another user with the same
        // request could wait for this user's permit.
        let permit = timeout(QUEUE_TIMEOUT, self.permit(who))
            .await
            .map_err(|_| Overloaded)??;
        let written = answer.get_or_try_init(|| async {
            // The permit is held until the encoding ends, even if the client disconnects before.
            let write = move || (write(), drop(permit)).0;
            let bytes = spawn_blocking(write).await.map_err(|_| Overloaded)?;
            let room = self
                .quota
                .take(who, bytes.len() / 1024 + 1)
                .ok_or(Overloaded)?;
            Ok(Bytes::from_owner(QuotaBytes {
                bytes,
                _reserved: room,
            }))
        });
        written.await.cloned()
    }

    /// Waits for a permit of the user first, and then for one of all users.
    async fn permit(&self, who: Who) -> Result<[OwnedSemaphorePermit; 2], Overloaded> {
        let of_user = {
            let mut by_user = lock::lock(&self.by_user);
            by_user.retain(|_, turns| Arc::strong_count(turns) > 1);
            Arc::clone(
                by_user
                    .entry(who)
                    .or_insert_with(|| Arc::new(Semaphore::new(self.permits_per_user))),
            )
        };
        let of_user = of_user.acquire_owned().await.map_err(|_| Overloaded)?;
        let of_all = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| Overloaded)?;
        Ok([of_user, of_all])
    }

    /// Returns the entry of a response, and removes old responses.
    fn entry_of(&self, key: K) -> Arc<OnceCell<Bytes>> {
        let mut recent = lock::lock(&self.recent);
        recent.retain(|_, recent| recent.is_wanted());
        let new = || Recent {
            at: Instant::now(),
            answer: Arc::default(),
        };
        Arc::clone(&recent.entry(key).or_insert_with(new).answer)
    }

    /// Removes old responses, and returns their size in KiB.
    pub(crate) fn trim(&self) -> usize {
        let mut recent = lock::lock(&self.recent);
        let kib = |recent: &HashMap<K, Recent>| {
            recent
                .values()
                .filter_map(|recent| recent.answer.get())
                .map(|bytes| bytes.len() / 1024)
                .sum::<usize>()
        };
        let before = kib(&recent);
        recent.retain(|_, recent| recent.is_wanted());
        before - kib(&recent)
    }
}

/// A quota for the memory of responses that are being sent, in total and per user.
struct MemoryQuota {
    most_kib: usize,
    held_kib: Mutex<HashMap<Who, usize>>,
}

impl MemoryQuota {
    /// Reserves memory for a response. Returns `None` if the user would have more memory than
    /// remains for others.
    fn take(self: &Arc<Self>, who: Who, kib: usize) -> Option<Reserved> {
        let mut held = lock::lock(&self.held_kib);
        let free = self.most_kib - held.values().sum::<usize>();
        let of_user = held.get(&who).copied().unwrap_or_default() + kib;
        if of_user > free {
            return None;
        }
        held.insert(who, of_user);
        Some(Reserved {
            quota: Arc::clone(self),
            who,
            kib,
        })
    }
}

/// Reserved memory, which is released when dropped.
struct Reserved {
    quota: Arc<MemoryQuota>,
    who: Who,
    kib: usize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut held = lock::lock(&self.quota.held_kib);
        if let Some(of_user) = held.get_mut(&self.who) {
            *of_user -= self.kib;
            if *of_user == 0 {
                held.remove(&self.who);
            }
        }
    }
}

/// A response whose memory is reserved until the last client has received it.
struct QuotaBytes {
    bytes: Vec<u8>,
    _reserved: Reserved,
}

impl AsRef<[u8]> for QuotaBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Compresses bytes with gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), COMPRESSION);
    // Writing to a vector cannot fail.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    const SOMEBODY: Who = Who::User(1);
    const OTHER: Who = Who::User(2);

    #[tokio::test]
    async fn who_asks_for_the_same_shares_one_answer() {
        let encoder = Encoder::<&str>::new(100);
        let written = Arc::new(AtomicUsize::new(0));
        let ask = |key| {
            let written = Arc::clone(&written);
            encoder.answer(SOMEBODY, key, move || {
                written.fetch_add(1, Ordering::Relaxed);
                key.as_bytes().to_vec()
            })
        };
        let (first, same, other) = tokio::join!(ask("a"), ask("a"), ask("b"));
        let (first, same) = (first.unwrap(), same.unwrap());
        assert_eq!(
            (&*first, first.as_ptr(), &*other.unwrap()),
            (&b"a"[..], same.as_ptr(), &b"b"[..])
        );
        assert_eq!(written.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn answers_that_nobody_takes_leave_no_room_and_come_back_with_them() {
        let encoder = Encoder::<u32>::new(100);
        let large = || vec![0; 60 * 1024];
        let held = encoder.answer(SOMEBODY, 1, large).await.unwrap();
        assert!(encoder.answer(SOMEBODY, 2, large).await.is_err());
        drop(held);
        tokio::time::sleep(REUSE_FOR).await;
        encoder.trim();
        assert!(encoder.answer(SOMEBODY, 3, large).await.is_ok());
    }

    #[tokio::test]
    async fn who_asks_for_much_keeps_nobody_else_waiting() {
        const MUCH: usize = 40;
        let encoder = Encoder::<usize>::new(100_000);
        let written = Arc::new(AtomicUsize::new(0));
        let ask = |who, key| {
            let written = Arc::clone(&written);
            encoder.answer(who, key, move || {
                std::thread::sleep(Duration::from_millis(10));
                written.fetch_add(1, Ordering::Relaxed);
                Vec::new()
            })
        };
        let much = join_all((0..MUCH).map(|key| ask(SOMEBODY, key)));
        let one = async {
            // The response of one user must not depend on another user's slow reading.
            ask(OTHER, MUCH - 1).await.unwrap();
            written.load(Ordering::Relaxed)
        };
        let (much, before_one) = tokio::join!(much, one);
        assert!(
            much.iter().all(Result::is_ok) && before_one < MUCH / 4,
            "{before_one}"
        );
    }

    #[tokio::test]
    async fn who_takes_answers_slowly_leaves_room_to_others() {
        let encoder = Encoder::<u32>::new(100);
        let (mut held, mut key) = (Vec::new(), 0);
        while let Ok(answer) = encoder.answer(SOMEBODY, key, || vec![0; 9 * 1024]).await {
            (held, key) = ([held, vec![answer]].concat(), key + 1);
        }
        assert_eq!(held.len(), 5, "half of it");
        assert!(
            encoder
                .answer(OTHER, key + 1, || vec![0; 40 * 1024])
                .await
                .is_ok()
        );
    }
}
