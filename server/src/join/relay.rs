//! Processing of the frames of a joined server.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use gpumon_probe::{
    model::{FiringAlert, Object, Record, type_of},
    own_processes::OwnProcesses,
};
use tokio::task::spawn_blocking;

use super::{
    Join, Left, ask,
    client::{Connection, Frames},
};
use crate::{
    frame::{ClientFrame, CollectorState, CollectorStatus, Hello, INTERVAL_MS},
    history::DEPTH_MS,
    hub::Hub,
};

/// The time limit for adding details of processes to a sample. A slow sample is passed on without
/// them.
const PATIENCE: Duration = Duration::from_millis(200);

impl Join {
    /// Passes frames on until the connection is lost or the readings cannot be used.
    pub(super) async fn relay(&mut self, connection: Connection, hub: &Arc<Hub>) -> Left {
        let Connection { hello, mut frames } = connection;
        match self.pass_on(hello, &mut frames, hub).await {
            Ok(never) => match never {},
            Err(left) => left,
        }
    }

    async fn pass_on(
        &mut self,
        hello: Hello,
        frames: &mut Frames,
        hub: &Arc<Hub>,
    ) -> Result<Infallible, Left> {
        self.adopt(hello, hub).await?;
        let (mut asked, mut has_traces, mut is_watched) = (None, false, true);
        loop {
            let wanted = interval_frame(*self.interval.borrow_and_update());
            if asked.as_ref() != Some(&wanted) {
                frames.send(&wanted).await.map_err(Left::Lost)?;
                asked = Some(wanted);
            }
            if has_traces != hub.wants_traces() {
                has_traces = !has_traces;
                frames
                    .send(&ClientFrame::Traces { on: has_traces })
                    .await
                    .map_err(Left::Lost)?;
            }
            if is_watched != (*self.watchers.borrow_and_update() > 0) {
                is_watched = !is_watched;
                frames
                    .send(&ClientFrame::Watching { on: is_watched })
                    .await
                    .map_err(Left::Lost)?;
            }
            let text = tokio::select! {
                text = frames.next() => text.map_err(Left::Lost)?,
                Ok(()) = self.interval.changed() => continue,
                Ok(()) = self.watchers.changed() => continue,
            };
            self.take_in(&text, hub).await?;
        }
    }

    /// Processes the hello, and requests the last minutes of history.
    async fn adopt(&mut self, mut hello: Hello, hub: &Arc<Hub>) -> Result<(), Left> {
        if let Some(sample) = hello.sample.take()
            && let (Record::Sample(described), _) = self.described(Record::Sample(sample)).await?
        {
            hello.sample = Some(described);
        }
        let (socket, at_ms) = (self.settings.socket.clone(), hello.at_ms);
        let past = spawn_blocking(move || ask::recent(&socket, at_ms, DEPTH_MS)).await;
        let past = past.map_err(io::Error::other).flatten();
        if let Err(error) = &past {
            tracing::debug!("cannot read the history of the joined server: {error}");
        }
        hub.adopt(hello, past.ok());
        Ok(())
    }

    async fn take_in(&mut self, text: &str, hub: &Hub) -> Result<(), Left> {
        let bad = |error: serde_json::Error| {
            Left::Unfit(format!(
                "it is of another version, install the same ({error})"
            ))
        };
        let kind = type_of(text).map_err(bad)?.into_owned();
        match &*kind {
            "inventory" | "sample" | "details" | "event" | "trace" => {
                let record = Record::decode(text).map_err(bad)?;
                let is_changed = matches!(record, Record::Sample(_) | Record::Event(_));
                let (record, changed) = if is_changed {
                    self.described(record).await?
                } else {
                    (record, None)
                };
                hub.relay(changed.as_deref().unwrap_or(text), record);
            }
            "alerts" => {
                let firing: Vec<FiringAlert> = Object::parse(text)
                    .and_then(|mut frame| frame.take("firing"))
                    .map_err(bad)?;
                hub.set_firing_there(firing);
            }
            "collector" => {
                let status: CollectorStatus = serde_json::from_str(text).map_err(bad)?;
                if status.state == CollectorState::Unavailable {
                    return Err(Left::Unfit(
                        status
                            .message
                            .unwrap_or_else(|| "it reads no GPUs".to_owned()),
                    ));
                }
                hub.collector_status(status.state, status.message, status.resumes_ms);
            }
            // Other frames, including those of newer servers, are not needed.
            _ => {}
        }
        Ok(())
    }

    /// Adds details of the user's own processes to a record. Returns the record, and its text if it
    /// has changed. This runs outside the event loop, because reading processes can be slow.
    async fn described(&mut self, record: Record) -> Result<(Record, Option<String>), Left> {
        let is_about_processes = match &record {
            Record::Sample(sample) => sample.gpus.iter().any(|gpu| {
                gpu.processes
                    .value()
                    .is_some_and(|processes| !processes.is_empty())
            }),
            _ => true,
        };
        if !is_about_processes {
            return Ok((record, None));
        }
        let (own, proc_root) = (self.own.take(), self.settings.proc_root.clone());
        let patience = PATIENCE.min(*self.interval.borrow() / 4);
        let described = spawn_blocking(move || {
            let mut own = own.unwrap_or_else(|| OwnProcesses::new(proc_root));
            let (record, text) = describe(record, &mut own, patience);
            (own, record, text)
        });
        let (own, record, text) = described
            .await
            .map_err(|error| Left::Unfit(error.to_string()))?;
        self.own = Some(own);
        Ok((record, text))
    }
}

fn describe(
    mut record: Record,
    own: &mut OwnProcesses,
    patience: Duration,
) -> (Record, Option<String>) {
    let is_changed = match &mut record {
        Record::Sample(sample) => own.fill(&mut sample.gpus, patience),
        Record::Event(event) => own.name(event, patience),
        _ => false,
    };
    let text = is_changed.then(|| {
        serde_json::to_string(&record).expect("records have string keys and no failing parts")
    });
    (record, text)
}

fn interval_frame(interval: Duration) -> ClientFrame {
    let (shortest, longest) = INTERVAL_MS.into_inner();
    ClientFrame::Interval {
        ms: u32::try_from(interval.as_millis())
            .unwrap_or(longest)
            .clamp(shortest, longest),
    }
}
