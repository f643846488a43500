//! Processing of the frames of a joined server.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use gpumon_probe::{
    model::{FiringAlert, Object, Record, read_type},
    own_processes::OwnProcessReader,
};
use tokio::task::spawn_blocking;

use super::{
    LeaveReason, ServerJoin, ask,
    client::{Frames, ServerConnection},
};
use crate::{
    frame::{ClientFrame, CollectorState, CollectorStatus, Hello, INTERVAL_LIMITS_MS},
    history::RETENTION_MS,
    hub::Hub,
};

/// The time limit for adding process details to a sample. If this takes longer, the sample is
/// passed on without details.
const DETAILS_TIMEOUT: Duration = Duration::from_millis(200);

impl ServerJoin {
    /// Passes frames on until the connection is lost or the readings cannot be used.
    pub(super) async fn relay_frames(
        &mut self,
        connection: ServerConnection,
        hub: &Arc<Hub>,
    ) -> LeaveReason {
        let ServerConnection { hello, mut frames } = connection;
        match self.relay_until_lost(hello, &mut frames, hub).await {
            Ok(never) => match never {},
            Err(left) => left,
        }
    }

    async fn relay_until_lost(
        &mut self,
        hello: Hello,
        frames: &mut Frames,
        hub: &Arc<Hub>,
    ) -> Result<Infallible, LeaveReason> {
        self.adopt_hello(hello, hub).await?;
        let (mut asked, mut has_traces, mut is_watched) = (None, false, true);
        loop {
            let wanted = interval_frame(*self.interval.borrow_and_update());
            if asked.as_ref() != Some(&wanted) {
                frames.send(&wanted).await.map_err(LeaveReason::Lost)?;
                asked = Some(wanted);
            }
            if has_traces != hub.has_trace_requests() {
                has_traces = !has_traces;
                frames
                    .send(&ClientFrame::Traces { on: has_traces })
                    .await
                    .map_err(LeaveReason::Lost)?;
            }
            if is_watched != (*self.watchers.borrow_and_update() > 0) {
                is_watched = !is_watched;
                frames
                    .send(&ClientFrame::Watching { on: is_watched })
                    .await
                    .map_err(LeaveReason::Lost)?;
            }
            let text = tokio::select! {
                text = frames.next() => text.map_err(LeaveReason::Lost)?,
                Ok(()) = self.interval.changed() => continue,
                Ok(()) = self.watchers.changed() => continue,
            };
            self.process_frame(&text, hub).await?;
        }
    }

    /// Processes the hello frame, and requests the history of the last few minutes.
    async fn adopt_hello(&mut self, mut hello: Hello, hub: &Arc<Hub>) -> Result<(), LeaveReason> {
        if let Some(sample) = hello.sample.take()
            && let (Record::Sample(described), _) = self.add_details(Record::Sample(sample)).await?
        {
            hello.sample = Some(described);
        }
        let (socket, at_ms) = (self.settings.socket.clone(), hello.at_ms);
        let past =
            spawn_blocking(move || ask::request_recent_history(&socket, at_ms, RETENTION_MS)).await;
        let past = past.map_err(io::Error::other).flatten();
        if let Err(error) = &past {
            tracing::debug!("cannot read the history of the joined server: {error}");
        }
        hub.adopt_server_data(hello, past.ok());
        Ok(())
    }

    async fn process_frame(&mut self, text: &str, hub: &Hub) -> Result<(), LeaveReason> {
        let bad = |error: serde_json::Error| {
            LeaveReason::Unfit(format!(
                "the server runs another version of gpumon; install the same version for both \
                 servers ({error})"
            ))
        };
        let kind = read_type(text).map_err(bad)?.into_owned();
        match &*kind {
            "inventory" | "sample" | "details" | "event" | "trace" => {
                let record = Record::decode(text).map_err(bad)?;
                let is_changed = matches!(record, Record::Sample(_) | Record::Event(_));
                let (record, changed) = if is_changed {
                    self.add_details(record).await?
                } else {
                    (record, None)
                };
                hub.process_joined_record(changed.as_deref().unwrap_or(text), record);
            }
            "alerts" => {
                let firing: Vec<FiringAlert> = Object::parse(text)
                    .and_then(|mut frame| frame.take("firing"))
                    .map_err(bad)?;
                hub.set_joined_firing_alerts(firing);
            }
            "collector" => {
                let status: CollectorStatus = serde_json::from_str(text).map_err(bad)?;
                if status.state == CollectorState::Unavailable {
                    return Err(LeaveReason::Unfit(
                        status
                            .message
                            .unwrap_or_else(|| "the server reads no GPUs".to_owned()),
                    ));
                }
                hub.set_collector_status(status.state, status.message, status.resumes_ms);
            }
            // Other frames, including new kinds from newer servers, are not needed.
            _ => {}
        }
        Ok(())
    }

    /// Adds details of the user's own processes to a record. Returns the record and, if it was
    /// changed, its text. The details are read outside the event loop, because reading processes
    /// can be slow.
    async fn add_details(
        &mut self,
        record: Record,
    ) -> Result<(Record, Option<String>), LeaveReason> {
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
        let patience = DETAILS_TIMEOUT.min(*self.interval.borrow() / 4);
        let described = spawn_blocking(move || {
            let mut own = own.unwrap_or_else(|| OwnProcessReader::new(proc_root));
            let (record, text) = add_process_details(record, &mut own, patience);
            (own, record, text)
        });
        let (own, record, text) = described
            .await
            .map_err(|error| LeaveReason::Unfit(error.to_string()))?;
        self.own = Some(own);
        Ok((record, text))
    }
}

fn add_process_details(
    mut record: Record,
    own: &mut OwnProcessReader,
    patience: Duration,
) -> (Record, Option<String>) {
    let is_changed = match &mut record {
        Record::Sample(sample) => own.fill(&mut sample.gpus, patience),
        Record::Event(event) => own.name_event_process(event, patience),
        _ => false,
    };
    let text = is_changed
        .then(|| serde_json::to_string(&record).expect("records can always be serialized"));
    (record, text)
}

fn interval_frame(interval: Duration) -> ClientFrame {
    let (shortest, longest) = INTERVAL_LIMITS_MS.into_inner();
    ClientFrame::Interval {
        ms: u32::try_from(interval.as_millis())
            .unwrap_or(longest)
            .clamp(shortest, longest),
    }
}
