//! Answers that take milliseconds to write: off the event loop, a few at a time, and once for all who ask for the same.
//!
//! History of 64 GPUs is 10 MB of JSON. Written where clients are served, it would delay everybody's samples.

use std::{
    collections::HashMap,
    hash::Hash,
    io::Write,
    sync::{Arc, Mutex, PoisonError},
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

/// What was written answers the same question for so long, unless something new has come.
const FRESH: Duration = Duration::from_millis(500);

/// How long a question waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// The fastest level, which leaves a tenth of the JSON's size.
const COMPRESSION: Compression = Compression::fast();

/// Too much is asked for at once, or taken too slowly.
#[derive(Debug)]
pub(crate) struct Overloaded;

/// Writes answers whose subjects are told apart by `K`.
pub(crate) struct Encoder<K> {
    turns: Arc<Semaphore>,
    /// KiB that may still be held for clients.
    room: Arc<Semaphore>,
    /// What was written lately, or is being written.
    recent: Mutex<HashMap<K, Recent>>,
}

struct Recent {
    at: Instant,
    answer: Arc<OnceCell<Bytes>>,
}

impl Recent {
    /// Whether it is fresh, or somebody waits for it to be written.
    fn is_wanted(&self) -> bool {
        self.at.elapsed() < FRESH || (!self.answer.initialized() && Arc::strong_count(&self.answer) > 1)
    }
}

impl<K: Clone + Eq + Hash> Encoder<K> {
    /// Half of the processors write; the others serve. All answers together that are being sent hold `most_held_kib` at
    /// most, so that clients that take them slowly do not fill the memory.
    pub(crate) fn new(most_held_kib: usize) -> Self {
        let turns = available_parallelism().map_or(1, |all| (all.get() / 2).clamp(1, 4));
        Self {
            turns: Arc::new(Semaphore::new(turns)),
            room: Arc::new(Semaphore::new(most_held_kib)),
            recent: Mutex::default(),
        }
    }

    /// The answer about `subject`, as `write` makes it unless somebody has just asked for the same.
    ///
    /// # Errors
    /// [`Overloaded`] where its turn does not come within ten seconds, or clients hold too many answers.
    pub(crate) async fn answer(
        &self,
        subject: K,
        write: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<Bytes, Overloaded> {
        let answer = self.place_of(subject);
        let written = answer.get_or_try_init(|| async {
            let turn = timeout(PATIENCE, Arc::clone(&self.turns).acquire_owned()).await;
            let turn = turn.map_err(|_| Overloaded)?.map_err(|_| Overloaded)?;
            // The turn lasts as long as the writing, also where the client that asked has gone meanwhile.
            let write = move || (write(), drop(turn)).0;
            let bytes = spawn_blocking(write).await.map_err(|_| Overloaded)?;
            let kib = u32::try_from(bytes.len() / 1024 + 1).map_err(|_| Overloaded)?;
            let room = Arc::clone(&self.room).try_acquire_many_owned(kib).map_err(|_| Overloaded)?;
            Ok(Bytes::from_owner(Held { bytes, _room: room }))
        });
        written.await.cloned()
    }

    /// Where the answer is, or will be. What is no longer fresh is let go of.
    fn place_of(&self, subject: K) -> Arc<OnceCell<Bytes>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|_, recent| recent.is_wanted());
        let new = || Recent { at: Instant::now(), answer: Arc::default() };
        Arc::clone(&recent.entry(subject).or_insert_with(new).answer)
    }

    /// Lets go of what is no longer fresh, and says how many KiB that was.
    pub(crate) fn tidy(&self) -> usize {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let kib = |recent: &HashMap<K, Recent>| {
            recent.values().filter_map(|recent| recent.answer.get()).map(|bytes| bytes.len() / 1024).sum::<usize>()
        };
        let before = kib(&recent);
        recent.retain(|_, recent| recent.is_wanted());
        before - kib(&recent)
    }
}

/// An answer, which takes up room until the last client has it.
struct Held {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The same, compressed.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), COMPRESSION);
    // A vector takes everything.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn who_asks_for_the_same_shares_one_answer() {
        let encoder = Encoder::<&str>::new(100);
        let written = Arc::new(AtomicUsize::new(0));
        let ask = |subject| {
            let written = Arc::clone(&written);
            encoder.answer(subject, move || {
                written.fetch_add(1, Ordering::Relaxed);
                subject.as_bytes().to_vec()
            })
        };
        let (first, same, other) = tokio::join!(ask("a"), ask("a"), ask("b"));
        let (first, same) = (first.unwrap(), same.unwrap());
        assert_eq!((&*first, first.as_ptr(), &*other.unwrap()), (&b"a"[..], same.as_ptr(), &b"b"[..]));
        assert_eq!(written.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn answers_that_nobody_takes_leave_no_room_and_come_back_with_them() {
        let encoder = Encoder::<u32>::new(100);
        let large = || vec![0; 60 * 1024];
        let held = encoder.answer(1, large).await.unwrap();
        assert!(encoder.answer(2, large).await.is_err());
        drop(held);
        tokio::time::sleep(FRESH).await;
        encoder.tidy();
        assert!(encoder.answer(3, large).await.is_ok());
    }
}
