//! The driver's answers, for programs that output the driver's own terms.

use std::time::Duration;

use gpumon_probe::vendor::GpuAnswers;
use tokio::{sync::watch, time::timeout};

use super::Hub;
use crate::{driver_answers::Answers, frame::CollectorState};

/// The time limit for the collector to send the driver's answers. The collector does this without
/// calling the driver.
const ANSWERS_TIMEOUT: Duration = Duration::from_millis(250);

impl Hub {
    /// Requests the driver's answers for the newest sample, and waits until they have arrived, with
    /// a time limit.
    pub(crate) async fn update_answers(&self) {
        let newest = self.samples.borrow().number;
        let mut known = self.known_answers.subscribe();
        if *known.borrow_and_update() < newest && self.collector().state == CollectorState::Running
        {
            self.wanted_answers
                .send_if_modified(|wanted| std::mem::replace(wanted, newest) != newest);
            let _ = timeout(ANSWERS_TIMEOUT, known.wait_for(|known| *known >= newest)).await;
        }
    }

    /// Returns a channel that changes whenever the collector should send the driver's answers.
    pub(crate) fn driver_answer_requests(&self) -> watch::Receiver<u64> {
        self.wanted_answers.subscribe()
    }

    /// Returns the driver's answers, and the state of the collector and of the GPUs.
    pub(crate) fn answers(&self) -> Answers {
        self.read_state(|state| {
            let of = |index| {
                state
                    .answers
                    .gpus
                    .iter()
                    .find(|(gpu, _)| *gpu == index)
                    .map(|(_, answers)| answers.clone())
            };
            let gpus = state
                .sample
                .iter()
                .flat_map(|sample| &sample.gpus)
                .map(|gpu| GpuAnswers {
                    index: gpu.index,
                    health: gpu.health.clone(),
                    answers: of(gpu.index).unwrap_or_default(),
                });
            // The vendors' tools address GPUs by the driver's indexes. While these have changed, no
            // platform is returned.
            let platform = state
                .inventory
                .as_ref()
                .filter(|_| !state.answers.renumbered);
            Answers {
                collector: state.collector.clone(),
                platform: platform.map(|inventory| inventory.platform.clone()),
                at_ms: state.sample.as_ref().map(|sample| sample.at_ms),
                interval_ms: state.sample.as_ref().map_or(0, |sample| sample.interval_ms),
                gpus: gpus.collect(),
            }
        })
    }
}
