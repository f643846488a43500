//! `/api/v1/stream`: one client's WebSocket.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        State,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code},
    },
    response::Response,
};
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        watch,
    },
    time::{Instant, sleep_until, timeout},
};

use crate::{
    app::AppState,
    cadence::Cadence,
    frame::{ClientFrame, INTERVAL_MS, ServerFrame},
    history::Wanted,
    hub::{Hub, SampleFrame, encode},
    runs::{Follower, Runs},
    watchers::Watcher,
};

/// A client that takes nothing for so long has gone, or might as well.
const SEND_PATIENCE: Duration = Duration::from_secs(10);

/// A quiet connection carries at least one frame in this time.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Clients have little to say.
const LONGEST_CLIENT_FRAME: usize = 4096;

/// With the default buffers a connection costs 140 KB, with these 10 KB.
const READ_BUFFER: usize = 4096;

/// What a client may leave unread: a few large frames.
const WRITE_BUFFER_LIMIT: usize = 4 << 20;

pub(crate) async fn upgrade(State(app): State<AppState>, upgrade: WebSocketUpgrade) -> Response {
    upgrade
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER_LIMIT)
        .max_message_size(LONGEST_CLIENT_FRAME)
        .on_upgrade(move |socket| async move {
            let mut samples = app.hub.samples();
            let client = Client {
                socket,
                paused: false,
                cadence: Cadence::new(app.watchers.base(), samples.borrow_and_update().number),
                watcher: app.watchers.join(),
                traces: None,
                runs: None,
                history: Wanted::overview(),
                last_sent: Instant::now(),
            };
            // The one way to end is that the client has gone or the server stops; neither is an error to report.
            let _ = client.serve(&app.hub, &app.runs, samples, app.stopped).await;
        })
}

/// The connection is over.
struct Gone;

struct Client {
    socket: WebSocket,
    paused: bool,
    cadence: Cadence,
    watcher: Watcher,
    /// Those that asked for traces have this.
    traces: Option<broadcast::Receiver<Utf8Bytes>>,
    /// Those that asked for runs have this.
    runs: Option<Follower>,
    /// What it gets of the past.
    history: Wanted,
    last_sent: Instant,
}

impl Client {
    async fn serve(
        mut self,
        hub: &Arc<Hub>,
        runs: &Arc<Runs>,
        mut samples: watch::Receiver<SampleFrame>,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<(), Gone> {
        // Subscribed before the hello is made, so that nothing falls between the two.
        let mut notices = hub.notices();
        self.send(hub.hello()).await?;
        loop {
            tokio::select! {
                // In this order, so that a sample never overtakes the inventory or the event that came before it.
                biased;
                _ = stopped.changed() => return self.say_goodbye().await,
                notice = notices.recv() => self.pass_on(notice).await?,
                changed = samples.changed() => {
                    changed.map_err(|_| Gone)?;
                    let frame = samples.borrow_and_update().clone();
                    self.offer(frame).await?;
                }
                changed = next_runs(&mut self.runs), if !self.paused => {
                    for frame in changed {
                        self.send(frame).await?;
                    }
                }
                trace = next_of(&mut self.traces), if !self.paused => self.pass_on(trace).await?,
                message = self.socket.recv() => self.receive(message, hub, runs).await?,
                () = sleep_until(self.last_sent + HEARTBEAT) => {
                    self.send(encode(&ServerFrame::Heartbeat { at_ms: gpumon_probe::model::now_ms() })).await?;
                }
            }
        }
    }

    /// Sends a sample, if it is this client's turn.
    async fn offer(&mut self, frame: SampleFrame) -> Result<(), Gone> {
        if self.paused {
            self.cadence.pass(frame.number);
            return Ok(());
        }
        let Some(missed) = self.cadence.take(frame.number, frame.at, frame.apart) else { return Ok(()) };
        if missed > 0 {
            self.send(encode(&ServerFrame::Lagged { missed })).await?;
        }
        self.send(frame.text).await
    }

    /// Sends what counts one by one.
    async fn pass_on(&mut self, received: Result<Utf8Bytes, RecvError>) -> Result<(), Gone> {
        match received {
            Ok(text) => self.send(text).await,
            Err(RecvError::Lagged(missed)) => self.send(encode(&ServerFrame::Lagged { missed })).await,
            Err(RecvError::Closed) => Err(Gone),
        }
    }

    async fn receive(
        &mut self,
        message: Option<Result<Message, axum::Error>>,
        hub: &Hub,
        runs: &Arc<Runs>,
    ) -> Result<(), Gone> {
        match message {
            None | Some(Err(_) | Ok(Message::Close(_))) => Err(Gone),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
            Some(Ok(Message::Binary(_))) => self.complain("binary frames are not understood: send JSON text").await,
            Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                Ok(frame) => self.obey(frame, hub, runs).await,
                Err(error) => {
                    let hint = r#"send {"type":"pause"}, {"type":"resume"}, {"type":"interval","ms":1000}, {"type":"traces","on":true}, {"type":"runs","on":true} or {"type":"history","metrics":["power.draw_watts"]}"#;
                    self.complain(&format!("not a client frame: {error}; {hint}")).await
                }
            },
        }
    }

    async fn obey(&mut self, frame: ClientFrame, hub: &Hub, runs: &Arc<Runs>) -> Result<(), Gone> {
        match frame {
            ClientFrame::Pause {} => {
                self.paused = true;
                self.watcher.ask(None);
                Ok(())
            }
            ClientFrame::Resume {} => {
                self.paused = false;
                self.watcher.ask(Some(self.cadence.interval()));
                // What the driver recorded meanwhile is as much past as the samples are.
                self.traces = self.traces.take().map(|_| hub.traces());
                self.send(hub.history(&self.history)).await
            }
            ClientFrame::Interval { ms } if INTERVAL_MS.contains(&ms) => {
                let interval = Duration::from_millis(ms.into());
                self.cadence.set(interval);
                if !self.paused {
                    self.watcher.ask(Some(interval));
                }
                Ok(())
            }
            ClientFrame::Interval { ms } => {
                let (shortest, longest) = INTERVAL_MS.into_inner();
                self.complain(&format!("an interval of {ms} ms is not served: ask for {shortest} to {longest}")).await
            }
            ClientFrame::Traces { on } => {
                self.traces = on.then(|| hub.traces());
                Ok(())
            }
            ClientFrame::Runs { on } => {
                self.runs = on.then(|| Follower::new(runs));
                Ok(())
            }
            ClientFrame::History { metrics } => match Wanted::named(metrics.iter().map(String::as_str)) {
                Ok(wanted) => {
                    self.history = wanted;
                    self.send(hub.history(&self.history)).await
                }
                Err(why) => self.complain(&why).await,
            },
        }
    }

    async fn complain(&mut self, message: &str) -> Result<(), Gone> {
        self.send(encode(&ServerFrame::Error { message: message.to_owned() })).await
    }

    async fn send(&mut self, text: Utf8Bytes) -> Result<(), Gone> {
        let sending = self.socket.send(Message::Text(text));
        timeout(SEND_PATIENCE, sending).await.map_err(|_| Gone)?.map_err(|_| Gone)?;
        self.last_sent = Instant::now();
        Ok(())
    }

    async fn say_goodbye(&mut self) -> Result<(), Gone> {
        let reason = Utf8Bytes::from_static("gpumon is shutting down");
        let close = Message::Close(Some(CloseFrame { code: close_code::AWAY, reason }));
        self.socket.send(close).await.map_err(|_| Gone)
    }
}

/// The next trace; never one where there is nobody who asked.
async fn next_of(traces: &mut Option<broadcast::Receiver<Utf8Bytes>>) -> Result<Utf8Bytes, RecvError> {
    match traces {
        Some(traces) => traces.recv().await,
        None => std::future::pending().await,
    }
}

/// The runs that have changed; never any where there is nobody who asked.
async fn next_runs(runs: &mut Option<Follower>) -> Vec<Utf8Bytes> {
    match runs {
        Some(runs) => runs.next().await,
        None => std::future::pending().await,
    }
}
