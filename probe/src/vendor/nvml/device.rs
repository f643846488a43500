//! A GPU that is read through NVML.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError},
};

use super::{
    backend::Backend,
    error::to_device_error,
    gpm::{GpmReader, Rates},
    link_rates::{self, LinkRateReader, LinkRates, PcieMeter},
    mig::MigReader,
    processes::ProcessReader,
    querier::Querier,
    query::{CachedAnswers, Query as Q, Subject, SystemQuery, Value},
    schedule::{CounterSchedule, IDENTITY_QUERIES, Lane, Reader, shared_queries_with_costs},
    sysfs::Devfreq,
    to_model::{self, TimedAnswers},
    traces::TraceReader,
};
use crate::{
    cpu_use::ProcessUse,
    model::{Absence, Absent, Gpu, GpuDetails, GpuSample, MemoryKind, Reading, Trace, now_ms},
    vendor::{AnswersReader, Device as ProbeDevice, DeviceError, ReadDepth, VendorAnswers},
};

/// An open NVIDIA GPU.
pub(super) struct NvmlDevice {
    answers: Arc<dyn Backend>,
    querier: Querier,
    identity: Gpu,
    /// Whether the board information has been added to the identity.
    board_is_read: bool,
    sys_root: PathBuf,
    gpm: GpmReader,
    pcie: Option<PcieMeter>,
    mig: MigReader,
    processes: ProcessReader,
    link_rates: LinkRateReader,
    traces: TraceReader,
    devfreq: Devfreq,
    need: CounterSchedule,
    /// The latest rates, and the time at which they were read, in milliseconds since 1970.
    rates: Option<(u64, Rates)>,
}

impl NvmlDevice {
    /// Opens a GPU with `nvmlDeviceGetHandleByIndex_v2`. The first call from any process
    /// initializes the GPU.
    pub(super) fn open(answers: Arc<dyn Backend>, index: u32) -> Result<Self, DeviceError> {
        answers.open_gpu(index).map_err(to_device_error)?;
        let mut querier = Querier::new(Arc::clone(&answers), index);
        querier.run_queries(None, &IDENTITY_QUERIES);
        let mut mig = MigReader::new();
        mig.update(&mut querier);
        let identity = to_model::make_identity(TimedAnswers::new(&querier.read_cache(), 0), index);
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
            need: CounterSchedule::default(),
            rates: None,
        };
        if device.querier.answers_from_memory() {
            device
                .querier
                .run_due_queries(Reader::Model, |lane| lane == Lane::Once);
            device.read_board();
        }
        Ok(device)
    }

    fn read_board(&mut self) {
        if !std::mem::replace(&mut self.board_is_read, true) {
            self.identity.board = to_model::make_board(
                TimedAnswers::new(&self.querier.read_cache(), 0),
                &self.sys_root,
            );
        }
    }

    /// Prepares to read the GPU, and returns the depth of the reading. If the backend answers from
    /// memory, the GPU and its MIG devices are looked up again, and the reading is always complete.
    fn prepare_read(&mut self, depth: ReadDepth) -> Result<ReadDepth, DeviceError> {
        if !self.querier.answers_from_memory() {
            return Ok(depth);
        }
        self.querier.reopen_gpu()?;
        self.update_mig_devices();
        Ok(ReadDepth::Full)
    }

    /// Looks up the MIG devices again. If the devices have changed, unsupported queries may run
    /// again, because the GPU may support other queries now.
    fn update_mig_devices(&mut self) {
        if self.mig.update(&mut self.querier) {
            self.identity.mig_devices = self.mig.identities();
            self.querier.forget_unsupported();
        }
    }

    /// Returns `counted`, which are the `NVLink` rates from GPM. If the GPU lacks GPM, returns the
    /// rates from the links' own counters.
    fn read_nvlink(&mut self, counted: LinkRates) -> LinkRates {
        if counted.tx.is_not_supported() {
            self.link_rates.read(&mut self.querier)
        } else {
            counted
        }
    }

    /// Returns `counted`, which are the PCIe rates from GPM. If the GPU lacks GPM, returns the
    /// rates that a separate thread measures.
    fn read_pcie(&mut self, counted: LinkRates) -> LinkRates {
        if !counted.tx.is_not_supported() {
            self.pcie = None;
            return counted;
        }
        if self.querier.answers_from_memory() {
            return link_rates::measure_pcie_rates(&*self.answers, self.identity.index);
        }
        if self.pcie.is_none() {
            self.pcie = PcieMeter::start(Arc::clone(&self.answers), self.identity.index);
        }
        self.pcie.as_ref().map_or(counted, PcieMeter::latest)
    }

    fn read_rates(&mut self) -> Rates {
        let counted = self.gpm.read(&mut self.querier, None);
        let nvlink = self.read_nvlink(counted.nvlink);
        let pcie = self.read_pcie(counted.pcie);
        for (counter, rate) in [&pcie.tx, &pcie.rx].into_iter().enumerate() {
            if let Some(rate) = rate.value() {
                let kilobytes = (rate / link_rates::PCIE_UNIT_BYTES).round() as i128;
                self.querier.cache_answer(
                    Q::PcieThroughput(counter as u32),
                    Ok(Value::from_number(kilobytes)),
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
    fn simulated_cpu_use(&self) -> Vec<ProcessUse> {
        self.answers.simulated_cpu_use(self.identity.index)
    }

    fn identify(&mut self) -> Gpu {
        // If a temporary error prevented the identity from being read when the GPU was opened, it
        // is read now.
        if self.identity.uuid.is_none() {
            self.querier.run_queries(None, &IDENTITY_QUERIES);
            let read = to_model::make_identity(
                TimedAnswers::new(&self.querier.read_cache(), 0),
                self.identity.index,
            );
            self.identity.uuid = read.uuid;
            self.identity.name = read.name;
            self.identity.pci_bus_id = read.pci_bus_id;
        }
        self.identity.clone()
    }

    fn stays_open(&mut self) -> bool {
        self.querier.run_queries(None, &[Q::PersistenceMode]);
        TimedAnswers::new(&self.querier.read_cache(), 0)
            .read_flag(Q::PersistenceMode)
            .value()
            != Some(&false)
    }

    fn read(&mut self, sample: &mut GpuSample, depth: ReadDepth) -> Result<(), DeviceError> {
        let depth = self.prepare_read(depth)?;
        let begun_ms = now_ms();
        self.querier.is_watched = !matches!(depth, ReadDepth::Unwatched { .. });
        let with_paced = matches!(
            depth,
            ReadDepth::Full | ReadDepth::Unwatched { closes_step: true }
        );
        self.querier
            .run_due_queries(Reader::Model, |lane| match lane {
                Lane::Tick => true,
                Lane::Paced(_) => with_paced,
                Lane::Once | Lane::Slow | Lane::Slower(_) => false,
            });
        if depth == ReadDepth::Metered {
            self.querier.run_queries(None, &[Q::TotalEnergyConsumption]);
        }
        to_model::fill_sample(
            TimedAnswers::new(&self.querier.read_cache(), begun_ms),
            sample,
        );
        let is_due = self.need.is_due(sample, depth);
        let is_wanted = is_due || self.querier.is_watched;
        sample.processes = self.processes.read(&mut self.querier, begun_ms, is_wanted);
        if let Reading::Now(processes) = &mut sample.processes {
            self.answers
                .fill_simulated_process_details(self.identity.index, processes);
        }
        if is_due {
            self.rates = Some((now_ms(), self.read_rates()));
        }
        match &self.rates {
            Some((_, rates)) if is_due => rates.clone().copy_to_sample(sample),
            Some((at_ms, rates)) => rates.clone().with_time(*at_ms).copy_to_sample(sample),
            // Rates require two readings.
            None => Rates::new_absent(&Absence::WarmingUp).copy_to_sample(sample),
        }
        if to_model::has_no_links(TimedAnswers::new(&self.querier.read_cache(), begun_ms)) {
            // On GPUs without links, GPM reports rates of 0.
            sample.nvlink = Absent::new_absent(&Absence::NotSupported);
        }
        if sample.memory_kind == MemoryKind::Unified {
            sample.set_memory_from_machine(self.answers.read_machine_memory(self.identity.index));
            self.devfreq.fill_missing_readings(&self.sys_root, sample);
            // For a GPU without a PCIe link, the driver reports generation 1 with one lane.
            sample.pcie = Absent::new_absent(&Absence::NotSupported);
        }
        let (samples, gone) = self.mig.read(&mut self.querier, depth);
        sample.mig_devices = samples;
        if gone {
            self.update_mig_devices();
        }
        self.querier.check_gpu_after_tick()
    }

    fn read_details(&mut self, details: &mut GpuDetails) -> Result<(), DeviceError> {
        self.prepare_read(ReadDepth::Full)?;
        let begun_ms = now_ms();
        self.update_mig_devices();
        self.querier
            .forget_answers(|query| matches!(query, Q::AccountingStats(_)));
        self.querier.run_due_queries(Reader::Model, |lane| {
            matches!(lane, Lane::Once | Lane::Slow | Lane::Slower(_))
        });
        self.read_board();
        let confidential = self.querier.query_system(SystemQuery::ConfComputeState);
        to_model::fill_details(
            TimedAnswers::new(&self.querier.read_cache(), begun_ms),
            &confidential,
            details,
        );
        self.querier.check_gpu_after_details()
    }

    fn run_tool_queries(&mut self, all: bool) {
        self.querier.run_due_queries(Reader::Smi, |lane| {
            lane == Lane::Slow || (all && lane == Lane::Once)
        });
    }

    fn answers_reader(&self) -> Option<AnswersReader> {
        if self.querier.answers_from_memory() {
            let (backend, index) = (Arc::clone(&self.answers), self.identity.index);
            return Some(Box::new(move || run_shared_queries(&*backend, index)));
        }
        let cached = self.querier.share_cache();
        Some(Box::new(move || {
            let cached = cached.read().unwrap_or_else(PoisonError::into_inner);
            VendorAnswers::from(cached.clone())
        }))
    }

    fn take_traces(&mut self) -> Vec<Trace> {
        let Gpu { index, uuid, .. } = &self.identity;
        let mut traces = self.traces.read(&mut self.querier);
        for trace in &mut traces {
            (trace.index, trace.uuid) = (*index, uuid.clone());
        }
        traces
    }
}

/// Runs all queries that a collector runs. The backend must answer from memory.
fn run_shared_queries(backend: &dyn Backend, index: u32) -> VendorAnswers {
    let queries: Vec<_> = shared_queries_with_costs()
        .map(|(query, _)| query)
        .collect();
    let answers = backend.run_queries(Subject::from_gpu(index), &queries);
    let (mut cached, at_ms) = (CachedAnswers::default(), now_ms());
    for (query, answer) in queries.into_iter().zip(answers) {
        cached.store_answer(None, query, at_ms, answer);
    }
    cached.into()
}
