//! The WebSocket of one client at `/api/v1/stream`.

mod encoding;
mod socket;
mod text_frame;

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Query, Request, State, rejection::QueryRejection},
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use gpumon_history::wanted::Wanted;
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
pub(crate) use self::{
    encoding::Encoding,
    socket::{ClientSocket, accept},
    text_frame::TextFrame,
};
use crate::{
    app::AppState,
    auth::{Client as Asker, Leave},
    connections::{Busy, ConnectionSlot},
    encoder::Encoder,
    frame::{ClientFrame, INTERVAL_MS, ServerFrame},
    hub::{Hub, Notice, SampleFrame, encode},
    peer::Who,
    rate_limiter::RateLimiter,
    runs::Follower,
    sampling_interval::IntervalRequest,
    view::View,
    watching::Watcher,
};

/// The longest time without a frame.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The key of responses that are expensive to encode and can be shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum CacheKey {
    /// The first frame for clients with this view, after this change.
    Hello {
        change: u64,
        view: View,
        encoding: Encoding,
    },
    /// The history of these metrics after this change. Each user has a separate copy, so that slow
    /// clients do not use the quota of other users.
    History {
        who: Who,
        change: u64,
        metrics: Vec<String>,
        view: View,
        encoding: Encoding,
    },
}

pub(crate) type StreamEncoder = Encoder<CacheKey>;

/// The query of `/api/v1/stream`. Other keys, which proxies can add, are ignored.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct StreamQuery {
    /// The encoding of the frames.
    #[serde(default)]
    pub(crate) encoding: Encoding,
}

/// Parses the query. The error response lists the valid values.
pub(crate) fn query(uri: &Uri) -> Result<StreamQuery, Box<Response>> {
    Query::try_from_uri(uri)
        .map(|Query(query)| query)
        .map_err(|error: QueryRejection| {
            let message = format!(
                "{}; ask for encoding=text or encoding=deflate-raw\n",
                error.body_text()
            );
            Box::new((StatusCode::BAD_REQUEST, message).into_response())
        })
}

pub(crate) async fn upgrade(
    State(app): State<AppState>,
    Extension(asker): Extension<Asker>,
    Extension(slot): Extension<Arc<ConnectionSlot>>,
    request: Request,
) -> Response {
    let leave = Leave::new(&asker, &app.doors, &app.live);
    let encoding = match query(request.uri()) {
        Ok(query) => query.encoding,
        Err(refusal) => return *refusal,
    };
    let (response, on_upgrade) = match accept(request) {
        Ok(accepted) => accepted,
        Err(refusal) => return *refusal,
    };
    // The connection is marked as in use before the upgrade, so that it is not closed in between.
    let busy = slot.busy();
    slot.spawn(async move {
        let Ok(upgraded) = on_upgrade.await else {
            return;
        };
        let socket = ClientSocket::new(upgraded, encoding).await;
        // Serving ends only when the client disconnects or the server stops, which are not errors.
        let view = View::of(&asker, app.show_processes).await;
        let _ = Client::new(socket, app, &asker, leave, view, busy)
            .serve()
            .await;
    });
    response
}

struct Client {
    socket: ClientSocket,
    app: AppState,
    who: Who,
    /// The permission to read, which can end.
    leave: Leave,
    view: View,
    samples: watch::Receiver<SampleFrame>,
    paused: bool,
    rate_limiter: RateLimiter,
    interval_request: IntervalRequest,
    /// Whether somebody watches the client. `watcher` counts it as a viewer unless it is paused.
    watches: bool,
    watcher: Option<Watcher>,
    /// The traces, if the client has requested them.
    traces: Option<broadcast::Receiver<TextFrame>>,
    /// The changes of runs, if the client has requested them.
    runs: Option<Follower>,
    /// The metrics of the client's history.
    history: Wanted,
    last_sent: Instant,
    _busy: Busy,
}

impl Client {
    fn new(
        socket: ClientSocket,
        app: AppState,
        asker: &Asker,
        leave: Leave,
        view: View,
        busy: Busy,
    ) -> Self {
        let mut samples = app.hub.samples();
        let seen = samples.borrow_and_update().number;
        Self {
            socket,
            who: asker.who(),
            leave,
            view,
            samples,
            paused: false,
            rate_limiter: RateLimiter::new(app.sampling_interval.base(), seen),
            interval_request: app.sampling_interval.request(),
            watches: true,
            watcher: Some(app.watching.begin()),
            traces: None,
            runs: None,
            history: Wanted::overview(),
            last_sent: Instant::now(),
            _busy: busy,
            app,
        }
    }

    async fn serve(mut self) -> Result<(), Disconnected> {
        // The subscriptions begin before the hello is created, so that no change is lost.
        let mut updates = self.app.hub.changes();
        let mut notices = self.app.hub.notices();
        let mut stopped = self.app.stopped.clone();
        self.send_hello().await?;
        let mut heartbeat = pin!(sleep_until(self.last_sent + HEARTBEAT));
        loop {
            tokio::select! {
                biased;
                changed = updates.changed() => {
                    changed.map_err(|_| Disconnected)?;
                    self.forward_changes(&mut notices).await?;
                }
                _ = stopped.changed() => return self.socket.send_close("gpumon is shutting down").await,
                why = self.leave.taken() => return self.socket.send_close(why).await,
                changed = next_runs(&mut self.runs), if !self.paused => {
                    for frame in changed {
                        self.send(&frame).await?;
                    }
                }
                trace = next_of(&mut self.traces), if !self.paused => self.forward(trace).await?,
                message = self.socket.receive() => self.handle_message(message).await?,
                () = heartbeat.as_mut() => {
                    if self.last_sent.elapsed() >= HEARTBEAT {
                        self.send_heartbeat().await?;
                    }
                    heartbeat.as_mut().reset(self.last_sent + HEARTBEAT);
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
        let has_sample = self.samples.has_changed().map_err(|_| Disconnected)?;
        let sample = has_sample.then(|| self.samples.borrow_and_update().clone());
        for frame in queued_notices(notices, &self.app.hub, &self.view)? {
            self.send(&frame).await?;
        }
        match sample {
            Some(sample) => self.send_sample(sample).await,
            None => Ok(()),
        }
    }

    /// Sends the hello, and then the clock, because a hello that is shared with other clients can
    /// be slightly old.
    async fn send_hello(&mut self) -> Result<(), Disconnected> {
        let (hub, view, encoding) = (
            Arc::clone(&self.app.hub),
            self.view.clone(),
            self.socket.encoding,
        );
        let key = CacheKey::Hello {
            change: hub.change(),
            view: view.clone(),
            encoding,
        };
        let write = move || encoding.payload(hub.hello(&view));
        let hello = self.app.encoders.hellos.answer(self.who, key, write).await;
        // A client that cannot receive a hello must connect again.
        self.socket
            .send_payload(&hello.map_err(|_| Disconnected)?)
            .await?;
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
        let key = CacheKey::History {
            who: self.who,
            change: hub.change(),
            metrics: wanted.ids(),
            view: view.clone(),
            encoding,
        };
        let write = move || encoding.payload(hub.history(&wanted, &view));
        let history = self
            .app
            .encoders
            .histories
            .answer(self.who, key, write)
            .await;
        self.socket
            .send_payload(&history.map_err(|_| Disconnected)?)
            .await?;
        self.last_sent = Instant::now();
        Ok(())
    }

    async fn send_sample(&mut self, frame: SampleFrame) -> Result<(), Disconnected> {
        if self.paused {
            self.rate_limiter.skip(frame.number);
            return Ok(());
        }
        let Some(missed) = self
            .rate_limiter
            .admit(frame.number, frame.at, frame.interval)
        else {
            return Ok(());
        };
        if missed > 0 {
            self.send(&encode(&ServerFrame::Lagged { missed })).await?;
        }
        self.send(&frame.text(&self.view).await.map_err(|_| Disconnected)?)
            .await
    }

    /// Sends a frame, or the number of missed ones.
    async fn forward(
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
                self.send_error("binary frames are not understood: send JSON text")
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
                self.interval_request.set(None);
                Ok(())
            }
            ClientFrame::Resume {} => {
                self.paused = false;
                self.watch();
                self.interval_request
                    .set(Some(self.rate_limiter.interval()));
                // Traces from the time of the pause are dropped, because they are as old as the
                // samples that were not sent.
                self.traces = self.traces.take().map(|_| self.app.hub.traces());
                self.send_history().await
            }
            ClientFrame::Interval { ms } if INTERVAL_MS.contains(&ms) => {
                let interval = Duration::from_millis(ms.into());
                self.rate_limiter.set(interval);
                if !self.paused {
                    self.interval_request.set(Some(interval));
                }
                Ok(())
            }
            ClientFrame::Interval { ms } => {
                let (shortest, longest) = INTERVAL_MS.into_inner();
                self.send_error(&format!(
                    "an interval of {ms} ms is not served: ask for {shortest} to {longest}"
                ))
                .await
            }
            ClientFrame::Traces { on } => {
                self.traces = on.then(|| self.app.hub.traces());
                Ok(())
            }
            ClientFrame::Watching { on } => {
                self.watches = on;
                self.watch();
                Ok(())
            }
            ClientFrame::Runs { on } => {
                self.runs = on.then(|| Follower::new(&self.app.runs));
                Ok(())
            }
            ClientFrame::History { metrics } => {
                let (wanted, told) = Wanted::named(metrics.iter().map(String::as_str));
                self.history = wanted;
                if let Err(why) = told {
                    self.send_error(&why).await?;
                }
                self.send_history().await
            }
        }
    }

    fn watch(&mut self) {
        let counts = self.watches && !self.paused;
        self.watcher = counts.then(|| {
            self.watcher
                .take()
                .unwrap_or_else(|| self.app.watching.begin())
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

/// Returns the waiting notices. If the client has missed some, the current state follows after
/// them.
fn queued_notices(
    notices: &mut broadcast::Receiver<Notice>,
    hub: &Hub,
    view: &View,
) -> Result<Vec<TextFrame>, Disconnected> {
    let (mut frames, mut has_missed) = (Vec::new(), false);
    loop {
        match notices.try_recv() {
            Ok(notice) => frames.extend(notice.text(view, hub)),
            Err(TryRecvError::Lagged(missed)) => {
                frames.push(encode(&ServerFrame::Lagged { missed }));
                has_missed = true;
            }
            Err(TryRecvError::Closed) => return Err(Disconnected),
            Err(TryRecvError::Empty) => break,
        }
    }
    if has_missed {
        frames.append(&mut hub.current_state(view));
    }
    Ok(frames)
}

/// Waits for the next trace, or forever if the client has not requested any.
async fn next_of(
    traces: &mut Option<broadcast::Receiver<TextFrame>>,
) -> Result<TextFrame, RecvError> {
    match traces {
        Some(traces) => traces.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for changed runs, or forever if the client has not requested any.
async fn next_runs(runs: &mut Option<Follower>) -> Vec<TextFrame> {
    match runs {
        Some(runs) => runs.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Event, EventKind};

    use super::*;
    use crate::frame::CollectorState;

    #[test]
    fn a_client_that_missed_notices_is_told_what_holds_now() {
        let hub = Hub::new();
        let mut notices = hub.notices();
        hub.set_collector_paused("paused".to_owned(), None);
        for at_ms in 0..1000 {
            hub.add_event(Event {
                at_ms,
                gpu: None,
                what: EventKind::MigChanged,
            });
        }
        let Ok(frames) = queued_notices(&mut notices, &hub, &View::Whole) else {
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
            queued_notices(&mut notices, &hub, &View::Whole).map_or(0, |frames| frames.len()),
            1,
            "nothing was missed"
        );
    }
}
