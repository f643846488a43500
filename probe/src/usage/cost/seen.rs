//! Activity, link traffic and conditions of a GPU during a measurement.

use crate::{
    model::{CostCondition, GpuCost, GpuSample},
    stat::Window,
    usage::steps::Span,
};

#[derive(Debug, Default)]
pub(super) struct ObservedReadings {
    /// The statistics of each reading in [`READINGS`], in the same order.
    windows: [Window; READINGS.len()],
    conditions: Vec<CostCondition>,
}

/// The readings of activity and link rates that are averaged.
const READINGS: [fn(&GpuSample) -> Option<&f64>; 7] = [
    |gpu| gpu.activity.value()?.sm_percent.value(),
    |gpu| gpu.activity.value()?.tensor_percent.value(),
    |gpu| gpu.activity.value()?.dram_bandwidth_percent.value(),
    |gpu| gpu.pcie.rx_bytes_per_second.value(),
    |gpu| gpu.pcie.tx_bytes_per_second.value(),
    |gpu| gpu.nvlink.rx_bytes_per_second.value(),
    |gpu| gpu.nvlink.tx_bytes_per_second.value(),
];

impl ObservedReadings {
    /// Adds a sample that covers the given span.
    pub(super) fn push(&mut self, gpu: &GpuSample, span: Span) {
        for (window, read) in self.windows.iter_mut().zip(READINGS) {
            if let Some(value) = read(gpu) {
                window.add(*value, span.seconds());
            }
        }
        // Conditions that began after the span are skipped, because the sample can be later than
        // the span's end.
        for condition in gpu
            .conditions
            .iter()
            .filter(|condition| (condition.since_ms as f64) < span.to_ms)
        {
            let (kind, to_ms) = (condition.kind.tag().unwrap_or_default(), span.to_ms as u64);
            let from_ms = condition.since_ms.max(span.from_ms as u64);
            match self.conditions.iter_mut().rfind(|known| known.kind == kind) {
                // The same condition was already active in the previous sample.
                Some(known) if known.to_ms >= condition.since_ms => {
                    known.to_ms = to_ms;
                    known.text.clone_from(&condition.text);
                }
                _ => {
                    let (kind, text) = (kind.to_owned(), condition.text.clone());
                    self.conditions.push(CostCondition {
                        kind,
                        text,
                        from_ms,
                        to_ms,
                    });
                }
            }
        }
    }

    /// Returns a cost with only the observed values. All other fields have their default values.
    pub(super) fn to_cost(&self) -> GpuCost {
        let [sm, tensor, dram, links @ ..] = &self.windows;
        let [pcie_to_gpu, pcie_from_gpu, nvlink_to_gpu, nvlink_from_gpu] =
            links.map(|rate| rate.integral().map(|bytes| bytes.round() as u64));
        GpuCost {
            sm_percent: sm.stat().map(Into::into),
            tensor_percent: tensor.stat().map(Into::into),
            dram_percent: dram.stat().map(Into::into),
            pcie_rx_bytes: pcie_to_gpu,
            pcie_tx_bytes: pcie_from_gpu,
            nvlink_rx_bytes: nvlink_to_gpu,
            nvlink_tx_bytes: nvlink_from_gpu,
            conditions: self.conditions.clone(),
            ..GpuCost::default()
        }
    }
}
