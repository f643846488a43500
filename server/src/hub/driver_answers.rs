//! Data for programs that use the driver's own vocabulary.

use std::time::Duration;

use gpumon_probe::vendor::GpuAnswers;
use tokio::{sync::watch, time::timeout};

use super::Hub;
use crate::{driver_answers::Answers, frame::CollectorState};

/// The time limit for the collector to send the driver's answers, which needs no driver call.
const ANSWERS_TIMEOUT: Duration = Duration::from_millis(250);

impl Hub {
    /// Waits until the driver's answers for the newest sample are known, with a time limit.
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

    /// Returns a channel that changes when the collector should send the driver's answers.
    pub(crate) fn answers_requests(&self) -> watch::Receiver<u64> {
        self.wanted_answers.subscribe()
    }

    /// Returns the driver's answers, and the state of the collector and GPUs.
    pub(crate) fn answers(&self) -> Answers {
        self.read(|state| {
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
            // Tools of the driver address GPUs by the driver's indexes, so there is no platform
            // while those differ.
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
