//! HTTP responses: their bytes are encoded outside the event loop, compressed for clients that
//! accept it, and shared by equal requests.

use std::{
    collections::HashMap,
    hash::Hash,
    io::Write,
    ops::Range,
    sync::{Arc, Mutex},
    thread::available_parallelism,
    time::Duration,
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::{Instant, timeout},
};

use crate::{
    app::AppState,
    auth::Client,
    hub::Hub,
    lock,
    metrics::PageKey,
    peer::PeerKey,
    quota::{Quota, Reservation},
    view::View,
};

/// The compression level. Even the fastest level reduces JSON to a tenth of its size.
const GZIP_LEVEL: Compression = Compression::fast();

/// The data that a response contains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    Snapshot {
        history_ms: Option<u64>,
        metrics: Vec<String>,
        brief: bool,
    },
    History {
        from_ms: u64,
        to_ms: u64,
        points: u32,
        resolution_ms: Option<u64>,
        metrics: Vec<String>,
    },
    Answers,
    OpenApi,
    Usage {
        span: Option<Range<u64>>,
    },
    Jobs {
        id: Option<String>,
    },
    /// The page of `/metrics`, with its naming scheme and format.
    Metrics(PageKey),
    Page(String),
    Fleet(FleetResource),
}

/// The data of a fleet: the current state of the fleet or of one node, or the usage, events or
/// history of a time range. The range ends now, and its length is given in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FleetResource {
    Now { at_once: bool },
    Node(String),
    Usage(u32),
    Events(u32),
    History(u32, Option<String>),
}

/// A resource together with everything else that its response depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ResponseCacheKey {
    /// The user. Each user has separate responses, so that slow clients do not use other users'
    /// quotas.
    who: PeerKey,
    resource: Resource,
    change: u64,
    view: View,
    gzip: bool,
}

pub(crate) const JSON_TYPE: &str = "application/json";

pub(crate) type ResponseEncoder = Encoder<ResponseCacheKey>;

/// Returns a JSON response with the data that a client with this view may see.
pub(crate) async fn respond_with_json(
    app: &AppState,
    headers: &HeaderMap,
    client: &Client,
    view: View,
    resource: Resource,
    write: impl FnOnce(&Hub, &View) -> Vec<u8> + Send + 'static,
) -> Response {
    let (who, of_view) = (client.peer_key(), view.clone());
    let write = move |hub: &Hub| write(hub, &of_view);
    respond_with_resource(app, headers, who, view, resource, JSON_TYPE, write).await
}

/// Returns a response with the bytes that `write` creates from the hub's data.
pub(crate) async fn respond_with_resource(
    app: &AppState,
    headers: &HeaderMap,
    who: PeerKey,
    view: View,
    resource: Resource,
    content_type: &'static str,
    write: impl FnOnce(&Hub) -> Vec<u8> + Send + 'static,
) -> Response {
    let compress = accepts_gzip(headers);
    let write = move |hub: &Hub| {
        if compress {
            compress_gzip(&write(hub))
        } else {
            write(hub)
        }
    };
    respond_encoded(app, compress, who, view, resource, content_type, write).await
}

/// Returns a response with the bytes that `write` creates. If `is_gzip` is set, `write` has already
/// compressed them.
pub(crate) async fn respond_encoded(
    app: &AppState,
    is_gzip: bool,
    who: PeerKey,
    view: View,
    resource: Resource,
    content_type: &'static str,
    write: impl FnOnce(&Hub) -> Vec<u8> + Send + 'static,
) -> Response {
    let hub = Arc::clone(&app.hub);
    let key = ResponseCacheKey {
        who,
        resource,
        change: hub.change_count(),
        view,
        gzip: is_gzip,
    };
    let write = move || write(&hub);
    let is_long = matches!(
        key.resource,
        Resource::Snapshot {
            history_ms: Some(_),
            ..
        } | Resource::History { .. }
            | Resource::Usage { span: Some(_) }
            | Resource::Jobs { .. }
            | Resource::Fleet(_)
    );
    let encoder = if is_long {
        &app.encoders.long_responses
    } else {
        &app.encoders.responses
    };
    match encoder.get_or_encode(who, key, write).await {
        Ok(bytes) => encoded_response(bytes, content_type, is_gzip),
        Err(error) => (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::RETRY_AFTER, "5")],
            format!("{error}\n"),
        )
            .into_response(),
    }
}

/// Returns a response with bytes that are already encoded. `is_gzip` is whether they are also
/// compressed.
pub(crate) fn encoded_response(
    bytes: Bytes,
    content_type: &'static str,
    is_gzip: bool,
) -> Response {
    let mut response = Body::from(bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("responses have string keys and no failing parts")
}

/// Returns `true` if `Accept-Encoding` contains gzip with a weight above 0 (RFC 9110, section
/// 12.5.3).
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight =
            parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        is_gzip
            && weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0))
    })
}

/// Compresses bytes with gzip.
pub(crate) fn compress_gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), GZIP_LEVEL);
    // Writing to a vector cannot fail.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

// Encoding outside the event loop. The number of simultaneous encodings is limited.
//
// The history of 64 GPUs is 10 MB of JSON. Encoding this much in the event loop would delay the
// samples of all clients.
//
// Each user gets at most half of the simultaneous encodings. A response is refused if its user
// would then use more memory in total than was free before. A user with many requests or slow
// connections therefore does not delay other users.

/// The time for which a response is reused for equal requests.
const REUSE_DURATION: Duration = Duration::from_millis(500);

const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// The error that is returned if there are too many requests, or if clients read their responses
/// too slowly.
#[derive(Debug, thiserror::Error)]
#[error("too many large responses are being sent: try again in a few seconds")]
pub(crate) struct Overloaded;

/// An encoder of responses, which are identified by a key `K`.
pub(crate) struct Encoder<K> {
    permits: Arc<Semaphore>,
    permits_per_user: usize,
    /// The permits of each user with a request that is being encoded or is waiting.
    by_user: Mutex<HashMap<PeerKey, Arc<Semaphore>>>,
    /// The memory for the responses being sent, in KiB.
    quota: Arc<Quota>,
    /// The recent responses, including responses that are still being encoded.
    recent: Mutex<HashMap<K, RecentResponse>>,
}

struct RecentResponse {
    at: Instant,
    answer: Arc<OnceCell<Bytes>>,
}

impl RecentResponse {
    /// Returns `true` if the response is recent, or if a request waits for it.
    fn is_wanted(&self) -> bool {
        self.at.elapsed() < REUSE_DURATION
            || (!self.answer.initialized() && Arc::strong_count(&self.answer) > 1)
    }
}

impl<K: Clone + Eq + Hash> Encoder<K> {
    /// Creates an encoder that uses half of the processors, so that the other half can serve
    /// clients. The responses being sent use at most `most_held_kib` in total, so that slow clients
    /// do not fill the memory.
    pub(crate) fn new(most_held_kib: usize) -> Self {
        let permits = available_parallelism().map_or(1, |all| (all.get() / 2).clamp(1, 4));
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            permits_per_user: permits.div_ceil(2),
            by_user: Mutex::default(),
            quota: Quota::new(most_held_kib),
            recent: Mutex::default(),
        }
    }

    /// Returns the response for `key`: a recent response, or else the result of `write`.
    ///
    /// # Errors
    /// Returns [`Overloaded`] if no permit is free within ten seconds, or if the responses being
    /// sent exceed the quota.
    pub(crate) async fn get_or_encode(
        &self,
        who: PeerKey,
        key: K,
        write: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<Bytes, Overloaded> {
        let answer = self.find_or_add_entry(key);
        if let Some(written) = answer.get() {
            return Ok(written.clone());
        }
        // The permit is acquired before the response's cell is locked. Otherwise another user with
        // the same request might have to wait for this user's permit.
        let permit = timeout(QUEUE_TIMEOUT, self.acquire_permit(who))
            .await
            .map_err(|_| Overloaded)??;
        let written = answer.get_or_try_init(|| async {
            // The permit is held until the encoding ends, even if the client disconnects before.
            let write = move || (write(), drop(permit)).0;
            let bytes = spawn_blocking(write).await.map_err(|_| Overloaded)?;
            // A user's responses must not use more memory than is free.
            let is_fair = |of_user: usize, free: usize| of_user <= free;
            let reserved = self.quota.try_reserve(who, bytes.len() / 1024 + 1, is_fair);
            Ok(Bytes::from_owner(QuotaBytes {
                bytes,
                _reserved: reserved.ok_or(Overloaded)?,
            }))
        });
        written.await.cloned()
    }

    /// Waits for one of the user's permits first, and then for one of the permits shared by all
    /// users.
    async fn acquire_permit(&self, who: PeerKey) -> Result<[OwnedSemaphorePermit; 2], Overloaded> {
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

    /// Returns the cell for the response to `key`, and removes old responses.
    fn find_or_add_entry(&self, key: K) -> Arc<OnceCell<Bytes>> {
        let mut recent = lock::lock(&self.recent);
        recent.retain(|_, recent| recent.is_wanted());
        let new = || RecentResponse {
            at: Instant::now(),
            answer: Arc::default(),
        };
        Arc::clone(&recent.entry(key).or_insert_with(new).answer)
    }

    /// Removes old responses, and returns their size in KiB.
    pub(crate) fn remove_old_responses(&self) -> usize {
        let mut recent = lock::lock(&self.recent);
        let kib = |recent: &HashMap<K, RecentResponse>| {
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

/// A response. Its memory stays reserved until the last client has received it.
struct QuotaBytes {
    bytes: Vec<u8>,
    _reserved: Reservation,
}

impl AsRef<[u8]> for QuotaBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_depends_on_accept_encoding() {
        let accepts = |value: &'static str| {
            accepts_gzip(&HeaderMap::from_iter([(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static(value),
            )]))
        };
        assert!(accepts("gzip") && accepts("br, GZIP;q=0.5") && accepts("deflate,gzip ; q=1"));
        assert!(!accepts("gzip;q=0") && !accepts("br") && !accepts("") && !accepts("gzip;q=x"));
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}

#[cfg(test)]
mod encoder_tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    const FIRST_USER: PeerKey = PeerKey::User(1);
    const SECOND_USER: PeerKey = PeerKey::User(2);

    #[tokio::test]
    async fn equal_requests_share_one_response() {
        let encoder = Encoder::<&str>::new(100);
        let written = Arc::new(AtomicUsize::new(0));
        let ask = |key| {
            let written = Arc::clone(&written);
            encoder.get_or_encode(FIRST_USER, key, move || {
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
    async fn unsent_responses_count_toward_quota_until_dropped() {
        let encoder = Encoder::<u32>::new(100);
        let large = || vec![0; 60 * 1024];
        let held = encoder.get_or_encode(FIRST_USER, 1, large).await.unwrap();
        assert!(encoder.get_or_encode(FIRST_USER, 2, large).await.is_err());
        drop(held);
        tokio::time::sleep(REUSE_DURATION).await;
        encoder.remove_old_responses();
        assert!(encoder.get_or_encode(FIRST_USER, 3, large).await.is_ok());
    }

    #[tokio::test]
    async fn many_requests_of_user_do_not_delay_others() {
        const REQUEST_COUNT: usize = 40;
        let encoder = Encoder::<usize>::new(100_000);
        let written = Arc::new(AtomicUsize::new(0));
        let ask = |who, key| {
            let written = Arc::clone(&written);
            encoder.get_or_encode(who, key, move || {
                std::thread::sleep(Duration::from_millis(10));
                written.fetch_add(1, Ordering::Relaxed);
                Vec::new()
            })
        };
        let much = join_all((0..REQUEST_COUNT).map(|key| ask(FIRST_USER, key)));
        let one = async {
            // A user's response must not be delayed by another user who sends many requests.
            ask(SECOND_USER, REQUEST_COUNT - 1).await.unwrap();
            written.load(Ordering::Relaxed)
        };
        let (much, before_one) = tokio::join!(much, one);
        assert!(
            much.iter().all(Result::is_ok) && before_one < REQUEST_COUNT / 4,
            "{before_one}"
        );
    }

    #[tokio::test]
    async fn slow_client_leaves_quota_to_other_clients() {
        let encoder = Encoder::<u32>::new(100);
        let (mut held, mut key) = (Vec::new(), 0);
        while let Ok(answer) = encoder
            .get_or_encode(FIRST_USER, key, || vec![0; 9 * 1024])
            .await
        {
            (held, key) = ([held, vec![answer]].concat(), key + 1);
        }
        assert_eq!(held.len(), 5, "half of it");
        assert!(
            encoder
                .get_or_encode(SECOND_USER, key + 1, || vec![0; 40 * 1024])
                .await
                .is_ok()
        );
    }
}
