//! The WebSocket of one client at `/api/v1/stream`.

mod socket;

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Query, Request, State},
    http::Uri,
    response::{IntoResponse, Response},
};
use gpumon_history::span::MetricSelection;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    sync::{
        broadcast::{
            self,
            error::{RecvError, TryRecvError},
        },
        watch,
    },
    time::{Instant, sleep_until},
};
use tokio_tungstenite::tungstenite::Message;

use self::socket::Disconnected;
pub(crate) use self::socket::{ClientSocket, Encoding, TextFrame, accept_upgrade};
use crate::{
    app::AppState,
    auth::{Client as Asker, ReadPermission},
    connections::{BusyGuard, ConnectionSlot},
    frame::{ClientFrame, INTERVAL_LIMITS_MS, ServerFrame},
    hub::{Hub, Notice, SampleFrame, encode},
    peer::PeerKey,
    query::check_query,
    responses::Encoder,
    runs::RunFollower,
    sampling::{IntervalRequest, RateLimiter, ViewerGuard},
    view::View,
};

/// The maximum time without a frame, after which a heartbeat is sent.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// The cache key of frames that are expensive to encode and can be shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum StreamCacheKey {
    /// The hello frame for clients with this view, at the hub's change number `change`.
    Hello {
        change: u64,
        view: View,
        encoding: Encoding,
    },
    /// The history of these metrics, at the hub's change number `change`. Each user has a separate
    /// copy, so that slow clients do not use other users' quotas.
    History {
        who: PeerKey,
        change: u64,
        metrics: Vec<String>,
        view: View,
        encoding: Encoding,
    },
}

pub(crate) type StreamEncoder = Encoder<StreamCacheKey>;

/// The query of `/api/v1/stream`. Other keys are ignored, because proxies can add some.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct StreamQuery {
    /// The encoding of the stream's frames.
    #[serde(default)]
    pub(crate) encoding: Encoding,
}

/// Parses the query. If it is not valid, the returned response lists the valid values.
pub(crate) fn parse_query(uri: &Uri) -> Result<StreamQuery, Box<Response>> {
    let hint = "encoding=text or encoding=deflate-raw";
    check_query(Query::try_from_uri(uri), hint).map_err(|refusal| Box::new(refusal.into_response()))
}

pub(crate) async fn upgrade_connection(
    State(app): State<AppState>,
    Extension(asker): Extension<Asker>,
    Extension(slot): Extension<Arc<ConnectionSlot>>,
    request: Request,
) -> Response {
    let leave = ReadPermission::new(&asker, &app.policy, &app.live);
    let encoding = match parse_query(request.uri()) {
        Ok(query) => query.encoding,
        Err(refusal) => return *refusal,
    };
    let (response, on_upgrade) = match accept_upgrade(request) {
        Ok(accepted) => accepted,
        Err(refusal) => return *refusal,
    };
    // The connection is marked as in use before the upgrade. Otherwise, it could be closed as idle
    // during the upgrade.
    let busy = slot.mark_busy();
    slot.spawn(async move {
        let Ok(upgraded) = on_upgrade.await else {
            return;
        };
        let socket = ClientSocket::new(upgraded, encoding).await;
        // `serve` only ends when the client disconnects or the server stops. Neither is an error.
        let view = View::for_client(&asker, app.show_processes).await;
        let _ = StreamClient::new(socket, app, &asker, leave, view, busy)
            .serve()
            .await;
    });
    response
}

struct StreamClient {
    socket: ClientSocket,
    app: AppState,
    who: PeerKey,
    /// The client's permission to read, which can be revoked.
    leave: ReadPermission,
    view: View,
    samples: watch::Receiver<SampleFrame>,
    paused: bool,
    rate_limiter: RateLimiter,
    interval_request: IntervalRequest,
    /// Whether the client reports that somebody is watching. If so, `watcher` counts the client as
    /// a viewer, unless the client has paused the stream.
    watches: bool,
    watcher: Option<ViewerGuard>,
    /// The channel of traces, if the client has requested them.
    traces: Option<broadcast::Receiver<TextFrame>>,
    /// The changes of runs, if the client has requested them.
    runs: Option<RunFollower>,
    /// The metrics of the history that the client receives.
    history: MetricSelection,
    last_sent: Instant,
    _busy: BusyGuard,
}

impl StreamClient {
    fn new(
        socket: ClientSocket,
        app: AppState,
        asker: &Asker,
        leave: ReadPermission,
        view: View,
        busy: BusyGuard,
    ) -> Self {
        let mut samples = app.hub.subscribe_samples();
        let seen = samples.borrow_and_update().number;
        Self {
            socket,
            who: asker.peer_key(),
            leave,
            view,
            samples,
            paused: false,
            rate_limiter: RateLimiter::new(app.sampling_interval.base_interval(), seen),
            interval_request: app.sampling_interval.new_request(),
            watches: true,
            watcher: Some(app.watching.add_viewer()),
            traces: None,
            runs: None,
            history: MetricSelection::select_overview(),
            last_sent: Instant::now(),
            _busy: busy,
            app,
        }
    }

    async fn serve(mut self) -> Result<(), Disconnected> {
        // The subscriptions begin before the hello frame is created. No change is therefore lost.
        let mut updates = self.app.hub.subscribe_changes();
        let mut notices = self.app.hub.subscribe_notices();
        let mut stopped = self.app.stopped.clone();
        self.send_hello().await?;
        let mut heartbeat = pin!(sleep_until(self.last_sent + HEARTBEAT_INTERVAL));
        loop {
            tokio::select! {
                biased;
                changed = updates.changed() => {
                    changed?;
                    self.forward_changes(&mut notices).await?;
                }
                _ = stopped.changed() => return self.socket.send_close("gpumon is shutting down").await,
                why = self.leave.wait_for_end() => return self.socket.send_close(why).await,
                changed = next_changed_runs(&mut self.runs), if !self.paused => {
                    for frame in changed {
                        self.send(&frame).await?;
                    }
                }
                trace = next_trace(&mut self.traces), if !self.paused => self.forward_frame(trace).await?,
                message = self.socket.receive() => self.handle_message(message).await?,
                () = heartbeat.as_mut() => {
                    if self.last_sent.elapsed() >= HEARTBEAT_INTERVAL {
                        self.send_heartbeat().await?;
                    }
                    heartbeat.as_mut().reset(self.last_sent + HEARTBEAT_INTERVAL);
                }
            }
        }
    }

    /// Sends notices, and then the newest sample, so that a sample never overtakes an earlier
    /// inventory or event.
    async fn forward_changes(
        &mut self,
        notices: &mut broadcast::Receiver<Notice>,
    ) -> Result<(), Disconnected> {
        let has_sample = self.samples.has_changed()?;
        let sample = has_sample.then(|| self.samples.borrow_and_update().clone());
        for frame in take_queued_notices(notices, &self.app.hub, &self.view)? {
            self.send(&frame).await?;
        }
        match sample {
            Some(sample) => self.send_sample(sample).await,
            None => Ok(()),
        }
    }

    /// Sends the hello frame and then the time. Hello frames are shared with other clients, so the
    /// time in them can be slightly old.
    async fn send_hello(&mut self) -> Result<(), Disconnected> {
        let (hub, view) = (Arc::clone(&self.app.hub), self.view.clone());
        let encoding = self.socket.encoding;
        let key = StreamCacheKey::Hello {
            change: hub.change_count(),
            view: view.clone(),
            encoding,
        };
        let write = move || encoding.encode_payload(hub.encode_hello(&view));
        let encoder = &self.app.encoders.hellos;
        // If the hello frame cannot be sent, the connection is closed and the client must connect
        // again.
        let hello = encoder.get_or_encode(self.who, key, write).await?;
        self.socket.send_payload(&hello).await?;
        self.send_heartbeat().await
    }

    async fn send_heartbeat(&mut self) -> Result<(), Disconnected> {
        self.send(&encode(&ServerFrame::Heartbeat {
            at_ms: self.app.hub.now_ms(),
        }))
        .await
    }

    async fn send_history(&mut self) -> Result<(), Disconnected> {
        let (hub, wanted) = (Arc::clone(&self.app.hub), self.history.clone());
        let (view, encoding) = (self.view.clone(), self.socket.encoding);
        let key = StreamCacheKey::History {
            who: self.who,
            change: hub.change_count(),
            metrics: wanted.ids(),
            view: view.clone(),
            encoding,
        };
        let write = move || encoding.encode_payload(hub.encode_history(&wanted, &view));
        let encoder = &self.app.encoders.histories;
        let history = encoder.get_or_encode(self.who, key, write).await?;
        self.socket.send_payload(&history).await?;
        self.last_sent = Instant::now();
        Ok(())
    }

    async fn send_sample(&mut self, frame: SampleFrame) -> Result<(), Disconnected> {
        if self.paused {
            self.rate_limiter.record_skipped_sample(frame.number);
            return Ok(());
        }
        let Some(missed) = self
            .rate_limiter
            .admit_sample(frame.number, frame.at, frame.interval)
        else {
            return Ok(());
        };
        if missed > 0 {
            self.send(&encode(&ServerFrame::Lagged { missed })).await?;
        }
        self.send(&frame.text_for_view(&self.view).await?).await
    }

    /// Sends a frame, or the number of frames that the client missed.
    async fn forward_frame(
        &mut self,
        received: Result<TextFrame, RecvError>,
    ) -> Result<(), Disconnected> {
        match received {
            Ok(frame) => self.send(&frame).await,
            Err(RecvError::Lagged(missed)) => {
                self.send(&encode(&ServerFrame::Lagged { missed })).await
            }
            Err(RecvError::Closed) => Err(Disconnected),
        }
    }

    async fn handle_message(&mut self, message: Option<Message>) -> Result<(), Disconnected> {
        match message {
            None | Some(Message::Close(_)) => Err(Disconnected),
            Some(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => Ok(()),
            Some(Message::Binary(_)) => {
                self.send_error("binary frames are not supported: send JSON text")
                    .await
            }
            Some(Message::Text(text)) => match serde_json::from_str(&text) {
                Ok(frame) => self.handle_frame(frame).await,
                Err(error) => {
                    let hint = r#"send {"type":"pause"}, {"type":"resume"}, {"type":"interval","ms":1000}, {"type":"traces","on":true}, {"type":"watching","on":false}, {"type":"runs","on":true} or {"type":"history","metrics":["power.draw_watts"]}"#;
                    self.send_error(&format!("not a client frame: {error}; {hint}"))
                        .await
                }
            },
        }
    }

    async fn handle_frame(&mut self, frame: ClientFrame) -> Result<(), Disconnected> {
        match frame {
            ClientFrame::Pause {} => {
                self.paused = true;
                self.watcher = None;
                self.interval_request.set_interval(None);
                Ok(())
            }
            ClientFrame::Resume {} => {
                self.paused = false;
                self.update_viewer();
                self.interval_request
                    .set_interval(Some(self.rate_limiter.interval()));
                // Traces from the time of the pause are dropped, because the samples of that time
                // were not sent either.
                self.traces = self.traces.take().map(|_| self.app.hub.subscribe_traces());
                self.send_history().await
            }
            ClientFrame::Interval { ms } if INTERVAL_LIMITS_MS.contains(&ms) => {
                let interval = Duration::from_millis(ms.into());
                self.rate_limiter.set_interval(interval);
                if !self.paused {
                    self.interval_request.set_interval(Some(interval));
                }
                Ok(())
            }
            ClientFrame::Interval { ms } => {
                let (shortest, longest) = INTERVAL_LIMITS_MS.into_inner();
                self.send_error(&format!(
                    "an interval of {ms} ms is not supported: use {shortest} to {longest} ms"
                ))
                .await
            }
            ClientFrame::Traces { on } => {
                self.traces = on.then(|| self.app.hub.subscribe_traces());
                Ok(())
            }
            ClientFrame::Watching { on } => {
                self.watches = on;
                self.update_viewer();
                Ok(())
            }
            ClientFrame::Runs { on } => {
                self.runs = on.then(|| RunFollower::new(&self.app.runs));
                Ok(())
            }
            ClientFrame::History { metrics } => {
                let (wanted, reported) =
                    MetricSelection::parse_names(metrics.iter().map(String::as_str));
                self.history = wanted;
                if let Err(why) = reported {
                    self.send_error(&why).await?;
                }
                self.send_history().await
            }
        }
    }

    fn update_viewer(&mut self) {
        let counts = self.watches && !self.paused;
        self.watcher = counts.then(|| {
            self.watcher
                .take()
                .unwrap_or_else(|| self.app.watching.add_viewer())
        });
    }

    async fn send_error(&mut self, message: &str) -> Result<(), Disconnected> {
        self.send(&encode(&ServerFrame::Error {
            message: message.to_owned(),
        }))
        .await
    }

    async fn send(&mut self, frame: &TextFrame) -> Result<(), Disconnected> {
        self.socket.send(frame).await?;
        self.last_sent = Instant::now();
        Ok(())
    }
}

/// Returns the queued notices. If the client has missed some, they are followed by the current
/// state.
fn take_queued_notices(
    notices: &mut broadcast::Receiver<Notice>,
    hub: &Hub,
    view: &View,
) -> Result<Vec<TextFrame>, Disconnected> {
    let (mut frames, mut has_missed) = (Vec::new(), false);
    loop {
        match notices.try_recv() {
            Ok(notice) => frames.extend(notice.text_for_view(view, hub)),
            Err(TryRecvError::Lagged(missed)) => {
                frames.push(encode(&ServerFrame::Lagged { missed }));
                has_missed = true;
            }
            Err(TryRecvError::Closed) => return Err(Disconnected),
            Err(TryRecvError::Empty) => break,
        }
    }
    if has_missed {
        frames.append(&mut hub.encode_current_state(view));
    }
    Ok(frames)
}

/// Waits for the next trace, or forever if the client has not requested any.
async fn next_trace(
    traces: &mut Option<broadcast::Receiver<TextFrame>>,
) -> Result<TextFrame, RecvError> {
    match traces {
        Some(traces) => traces.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for changed runs, or forever if the client has not requested any.
async fn next_changed_runs(runs: &mut Option<RunFollower>) -> Vec<TextFrame> {
    match runs {
        Some(runs) => runs.wait_for_changed_runs().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Event, EventKind};

    use super::*;
    use crate::frame::CollectorState;

    #[test]
    fn client_that_missed_notices_gets_current_state() {
        let hub = Hub::new();
        let mut notices = hub.subscribe_notices();
        hub.set_collector_status(CollectorState::Paused, Some("paused".to_owned()), None);
        for at_ms in 0..1000 {
            hub.add_event(Event {
                at_ms,
                gpu: None,
                what: EventKind::MigChanged,
            });
        }
        let Ok(frames) = take_queued_notices(&mut notices, &hub, &View::Whole) else {
            panic!("the hub is there")
        };
        assert!(frames[0].text().contains("lagged"));
        let last = frames.last().unwrap().text();
        assert!(
            last.contains(r#""type":"collector","state":"paused""#),
            "{last}"
        );
        hub.set_collector_state(CollectorState::Starting, None);
        assert_eq!(
            take_queued_notices(&mut notices, &hub, &View::Whole).map_or(0, |frames| frames.len()),
            1,
            "nothing was missed"
        );
    }
}
