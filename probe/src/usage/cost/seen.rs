//! What else happens on a GPU while something holds it: how busy its parts are, what crosses its links, what is the matter.

use crate::{
    model::{Activity, CostCondition, GpuCost, GpuSample, Reading},
    stat::Window,
};

#[derive(Debug, Default)]
pub(super) struct Seen {
    sm: Window,
    tensor: Window,
    dram: Window,
    pcie_rx: Sum,
    pcie_tx: Sum,
    nvlink_rx: Sum,
    nvlink_tx: Sum,
    conditions: Vec<CostCondition>,
}

/// Bytes, from how many there were a second.
#[derive(Debug, Default)]
struct Sum(Option<f64>);

impl Seen {
    /// Takes in a sample that tells of the time from then to then.
    pub(super) fn push(&mut self, gpu: &GpuSample, from_ms: f64, to_ms: f64) {
        let seconds = (to_ms - from_ms) / 1000.0;
        let percent: [fn(&Activity) -> &Reading<f64>; 3] = [
            |all| &all.sm_percent,
            |all| &all.tensor_percent,
            |all| &all.dram_bandwidth_percent,
        ];
        let windows = [&mut self.sm, &mut self.tensor, &mut self.dram];
        for (window, read) in windows.into_iter().zip(percent) {
            if let Some(percent) = gpu.activity.value().and_then(|all| read(all).value()) {
                window.add(*percent, seconds);
            }
        }
        self.pcie_rx.push(&gpu.pcie.rx_bytes_per_second, seconds);
        self.pcie_tx.push(&gpu.pcie.tx_bytes_per_second, seconds);
        self.nvlink_rx
            .push(&gpu.nvlink.rx_bytes_per_second, seconds);
        self.nvlink_tx
            .push(&gpu.nvlink.tx_bytes_per_second, seconds);
        // A sample behind the end may tell of what has begun since.
        for condition in gpu
            .conditions
            .iter()
            .filter(|condition| (condition.since_ms as f64) < to_ms)
        {
            let (kind, to_ms) = (condition.kind.tag().unwrap_or_default(), to_ms as u64);
            let from_ms = condition.since_ms.max(from_ms as u64);
            match self.conditions.iter_mut().rfind(|known| known.kind == kind) {
                // Since then it has not been over.
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

    /// The rest of a cost is what it is by default.
    pub(super) fn cost(&self) -> GpuCost {
        GpuCost {
            sm_percent: self.sm.stat(),
            tensor_percent: self.tensor.stat(),
            dram_percent: self.dram.stat(),
            pcie_rx_bytes: self.pcie_rx.bytes(),
            pcie_tx_bytes: self.pcie_tx.bytes(),
            nvlink_rx_bytes: self.nvlink_rx.bytes(),
            nvlink_tx_bytes: self.nvlink_tx.bytes(),
            conditions: self.conditions.clone(),
            ..GpuCost::default()
        }
    }
}

impl Sum {
    fn push(&mut self, rate: &Reading<f64>, seconds: f64) {
        if let Some(rate) = rate.value() {
            *self.0.get_or_insert_default() += rate * seconds;
        }
    }

    fn bytes(&self) -> Option<u64> {
        self.0.map(|bytes| bytes.round() as u64)
    }
}
