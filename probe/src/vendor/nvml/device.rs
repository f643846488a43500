//! A GPU that is read through NVML.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError},
};

use super::{
    backend::Backend,
    cached::Answers,
    devfreq::Devfreq,
    error::device_error,
    gpm::{GpmReader, Rates},
    lanes::{IDENTITY, Lane, Reader, shared_queries},
    link_rates::{LinkRateReader, LinkRates},
    mig::MigReader,
    need::Need,
    pcie::{self, PcieWatch},
    processes::ProcessReader,
    querier::Querier,
    to_model,
    traces::TraceReader,
};
use crate::{
    model::{Absence, Absent, Gpu, GpuDetails, GpuSample, MemoryKind, Reading, Trace, now_ms},
    vendor::nvml::query::{CachedAnswers, Query as Q, Subject, SystemQuery, Value},
    vendor::{AnswersReader, Device as ProbeDevice, DeviceError, ReadDepth, VendorAnswers},
};

/// An open NVIDIA GPU.
pub(super) struct NvmlDevice {
    answers: Arc<dyn Backend>,
    querier: Querier,
    identity: Gpu,
    /// Whether the board has been read into the identity.
    board_is_read: bool,
    sys_root: PathBuf,
    gpm: GpmReader,
    pcie: Option<PcieWatch>,
    mig: MigReader,
    processes: ProcessReader,
    link_rates: LinkRateReader,
    traces: TraceReader,
    devfreq: Devfreq,
    need: Need,
    /// The latest rates, and the time when they were read.
    rates: Option<(u64, Rates)>,
}

impl NvmlDevice {
    /// Opens the GPU with `nvmlDeviceGetHandleByIndex_v2`. The first call of any process
    /// initializes the GPU.
    pub(super) fn open(answers: Arc<dyn Backend>, index: u32) -> Result<Self, DeviceError> {
        answers.open_gpu(index).map_err(device_error)?;
        let mut querier = Querier::new(Arc::clone(&answers), index);
        querier.ask(None, &IDENTITY);
        let mut mig = MigReader::new();
        mig.look(&mut querier);
        let identity = to_model::identity(Answers::new(&querier.cached(), 0), index);
        let identity = Gpu {
            mig_devices: mig.identities(),
            ..identity
        };
        let mut device = Self {
            sys_root: answers.sys_root().to_owned(),
            answers,
            querier,
            identity,
            board_is_read: false,
            gpm: GpmReader::default(),
            pcie: None,
            mig,
            processes: ProcessReader::new(),
            link_rates: LinkRateReader::new(),
            traces: TraceReader::new(),
            devfreq: Devfreq::default(),
            need: Need::default(),
            rates: None,
        };
        if device.querier.is_quick() {
            device
                .querier
                .ask_lanes(Reader::Model, |lane| lane == Lane::Once);
            device.read_board();
        }
        Ok(device)
    }

    fn read_board(&mut self) {
        if !std::mem::replace(&mut self.board_is_read, true) {
            self.identity.board =
                to_model::board(Answers::new(&self.querier.cached(), 0), &self.sys_root);
        }
    }

    /// Returns the depth of this reading. A backend that answers from memory is read completely,
    /// after the GPU and its MIG devices have been looked up again.
    fn begin(&mut self, depth: ReadDepth) -> Result<ReadDepth, DeviceError> {
        if !self.querier.is_quick() {
            return Ok(depth);
        }
        self.querier.open()?;
        self.look_for_mig_devices();
        Ok(ReadDepth::Full)
    }

    /// Looks up the MIG devices again. If they changed, unsupported queries are asked again,
    /// because the GPU may support other queries.
    fn look_for_mig_devices(&mut self) {
        if self.mig.look(&mut self.querier) {
            self.identity.mig_devices = self.mig.identities();
            self.querier.forget_what_is_missing();
        }
    }

    /// Returns GPM's rates, or those of the links' own counters if the GPU lacks GPM.
    fn read_nvlink(&mut self, counted: LinkRates) -> LinkRates {
        if counted.tx == Reading::Absent(Absence::NotSupported) {
            self.link_rates.read(&mut self.querier)
        } else {
            counted
        }
    }

    /// Returns GPM's rates, or those that a separate thread measures if the GPU lacks GPM.
    fn read_pcie(&mut self, counted: LinkRates) -> LinkRates {
        if counted.tx != Reading::Absent(Absence::NotSupported) {
            self.pcie = None;
            return counted;
        }
        if self.querier.is_quick() {
            return pcie::read(&*self.answers, self.identity.index);
        }
        if self.pcie.is_none() {
            self.pcie = PcieWatch::start(Arc::clone(&self.answers), self.identity.index);
        }
        self.pcie.as_ref().map_or(counted, PcieWatch::latest)
    }

    fn rates(&mut self) -> Rates {
        let counted = self.gpm.read(&mut self.querier, None);
        let nvlink = self.read_nvlink(counted.nvlink);
        let pcie = self.read_pcie(counted.pcie);
        for (counter, rate) in [&pcie.tx, &pcie.rx].into_iter().enumerate() {
            if let Some(rate) = rate.value() {
                let kilobytes = (rate / pcie::UNIT_BYTES).round() as i128;
                self.querier.keep(
                    Q::PcieThroughput(counter as u32),
                    Ok(Value::number(kilobytes)),
                );
            }
        }
        Rates {
            activity: counted.activity,
            nvlink,
            pcie,
        }
    }
}

impl ProbeDevice for NvmlDevice {
    fn identity(&mut self) -> Gpu {
        // Opening can fail to read the identity because of a temporary error, so that it is read
        // again here.
        if self.identity.uuid.is_none() {
            self.querier.ask(None, &IDENTITY);
            let read =
                to_model::identity(Answers::new(&self.querier.cached(), 0), self.identity.index);
            let Gpu {
                uuid,
                name,
                pci_bus_id,
                ..
            } = read;
            self.identity = Gpu {
                uuid,
                name,
                pci_bus_id,
                ..self.identity.clone()
            };
        }
        self.identity.clone()
    }

    fn stays_open(&mut self) -> bool {
        self.querier.ask(None, &[Q::PersistenceMode]);
        Answers::new(&self.querier.cached(), 0)
            .flag(Q::PersistenceMode)
            .value()
            != Some(&false)
    }

    fn read(&mut self, sample: &mut GpuSample, depth: ReadDepth) -> Result<(), DeviceError> {
        let depth = self.begin(depth)?;
        let begun_ms = now_ms();
        self.querier.is_watched = !matches!(depth, ReadDepth::Unwatched { .. });
        let with_paced = matches!(
            depth,
            ReadDepth::Full | ReadDepth::Unwatched { closes_step: true }
        );
        self.querier.ask_lanes(Reader::Model, |lane| match lane {
            Lane::Tick => true,
            Lane::Paced(_) => with_paced,
            Lane::Once | Lane::Slow | Lane::Slower(_) => false,
        });
        if depth == ReadDepth::Metered {
            self.querier.ask(None, &[Q::TotalEnergyConsumption]);
        }
        to_model::sample(Answers::new(&self.querier.cached(), begun_ms), sample);
        let is_due = self.need.is_due(sample, depth);
        let is_wanted = is_due || self.querier.is_watched;
        sample.processes = self.processes.read(&mut self.querier, begun_ms, is_wanted);
        if let Reading::Now(processes) = &mut sample.processes {
            self.answers.describe(self.identity.index, processes);
        }
        if is_due {
            self.rates = Some((now_ms(), self.rates()));
        }
        match &self.rates {
            Some((_, rates)) if is_due => rates.clone().fill(sample),
            Some((at_ms, rates)) => rates.clone().with_time(*at_ms).fill(sample),
            // A single reading has no rates.
            None => Rates::absent(&Absence::WarmingUp).fill(sample),
        }
        if to_model::has_no_links(Answers::new(&self.querier.cached(), begun_ms)) {
            // GPM reports 0 for GPUs without links.
            sample.nvlink = Absent::absent(&Absence::NotSupported);
        }
        if sample.memory_kind == MemoryKind::Unified {
            sample.share_memory(self.answers.machine_memory(self.identity.index));
            self.devfreq.fill_in(&self.sys_root, sample);
            // For a GPU without a PCIe link, the driver reports generation 1 and one lane.
            sample.pcie = Absent::absent(&Absence::NotSupported);
        }
        let (samples, gone) = self.mig.read(&mut self.querier, depth);
        sample.mig_devices = samples;
        if gone {
            self.look_for_mig_devices();
        }
        self.querier.verdict_of_tick()
    }

    fn details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError> {
        self.begin(ReadDepth::Full)?;
        let begun_ms = now_ms();
        self.look_for_mig_devices();
        self.querier
            .forget(|query| matches!(query, Q::AccountingStats(_)));
        self.querier.ask_lanes(Reader::Model, |lane| {
            matches!(lane, Lane::Once | Lane::Slow | Lane::Slower(_))
        });
        self.read_board();
        let confidential = self.querier.system(SystemQuery::ConfComputeState);
        to_model::details(
            Answers::new(&self.querier.cached(), begun_ms),
            &confidential,
            details,
        );
        self.querier.verdict_of_details()
    }

    fn query_for_tools(&mut self, all: bool) {
        self.querier.ask_lanes(Reader::Smi, |lane| {
            lane == Lane::Slow || (all && lane == Lane::Once)
        });
    }

    fn answers(&self) -> Option<AnswersReader> {
        if self.querier.is_quick() {
            let (backend, index) = (Arc::clone(&self.answers), self.identity.index);
            return Some(Box::new(move || ask_everything(&*backend, index)));
        }
        let cached = self.querier.shared();
        Some(Box::new(move || {
            let cached = cached.read().unwrap_or_else(PoisonError::into_inner);
            VendorAnswers::from(cached.clone())
        }))
    }

    fn traces(&mut self) -> Vec<Trace> {
        let Gpu { index, uuid, .. } = &self.identity;
        let mut traces = self.traces.read(&mut self.querier);
        for trace in &mut traces {
            (trace.index, trace.uuid) = (*index, uuid.clone());
        }
        traces
    }
}

/// Asks all queries that a collector asks. The backend answers from memory.
fn ask_everything(backend: &dyn Backend, index: u32) -> VendorAnswers {
    let queries: Vec<_> = shared_queries().map(|(query, _)| query).collect();
    let answers = backend.ask_each(Subject::gpu(index), &queries);
    let (mut cached, at_ms) = (CachedAnswers::default(), now_ms());
    for (query, answer) in queries.into_iter().zip(answers) {
        cached.keep(None, query, at_ms, answer);
    }
    cached.into()
}
