//! The backend of `--source sim`, which answers NVML queries for simulated GPUs and reports their
//! events.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::{
    GpuState, Machine, ProcessState, Scenario, ScheduledEvent,
    answers::{SimulatedGpu, answer_query, get_gpm_metric},
};
use crate::{
    cpu_use::ProcessUse,
    model::{Absence, MigInstance, Process, Reading},
    vendor::{
        MachineMemory, Notice, Reporter,
        nvml::{
            Backend, GpmResult, NvmlSource,
            query::{Answer, Code, Query, Subject, SystemQuery, Value},
        },
    },
};

/// Starts simulating a scenario, and returns a source that is read in the same way as NVIDIA's
/// driver.
///
/// The scenario's `init_error` and all GPU settings apply. `latency`, `hidden`, `returns` and
/// `crash` do not apply, because they concern NVML functions, which are not called.
pub fn start_simulation(scenario: Scenario) -> NvmlSource {
    NvmlSource::new(SimulatedBackend(Arc::new(Machine::start(scenario))))
}

struct SimulatedBackend(Arc<Machine>);

/// A simulated GPU or MIG device that can answer queries.
struct QueriedGpu<'a> {
    machine: &'a Machine,
    index: u32,
    instance: Option<MigInstance>,
    elapsed_ms: u64,
}

impl SimulatedGpu for QueriedGpu<'_> {
    fn machine(&self) -> &Machine {
        self.machine
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn instance(&self) -> Option<MigInstance> {
        self.instance
    }

    fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms
    }
}

impl SimulatedBackend {
    /// Returns the current state of the GPU with the driver's index `index`, even if it is hung.
    fn current_state(&self, index: u32) -> Arc<GpuState> {
        let machine = &*self.0;
        machine.state(machine.found[index as usize], machine.timeline.elapsed_ms())
    }

    /// Finds a GPU or MIG device by the driver's indices. If the GPU is hung, blocks until the hang
    /// ends.
    fn find(&self, subject: Subject) -> Result<QueriedGpu<'_>, Code> {
        let machine = &*self.0;
        let found = machine.found.get(subject.gpu as usize);
        let index = *found.ok_or(Code::INVALID_ARGUMENT)?;
        wait_while_hung(machine, index)?;
        let mut gpu = QueriedGpu {
            machine,
            index,
            instance: None,
            elapsed_ms: machine.timeline.elapsed_ms(),
        };
        if let Some(device) = subject.mig {
            let state = gpu.state();
            let device = state.mig.get(device as usize).ok_or(Code::NOT_FOUND)?;
            gpu.instance = Some(device.instance);
        }
        Ok(gpu)
    }
}

impl Backend for SimulatedBackend {
    fn is_simulated(&self) -> bool {
        true
    }

    fn answers_from_memory(&self) -> bool {
        true
    }

    fn query_system(&self, query: SystemQuery) -> Answer {
        let seconds = self.0.timeline.elapsed_s();
        let scenario = self.0.world.scenario();
        if scenario.has_version_mismatch(seconds) {
            return Err(Code::VERSION_MISMATCH);
        }
        if let Some(code) = scenario.init_error_code(seconds) {
            return Err(Code(code));
        }
        match query {
            SystemQuery::DeviceCount => Ok(Value::from_number(self.0.found.len() as u32)),
            SystemQuery::ConfComputeState => Ok(Value::Numbers(vec![0; 3])),
            // In a simulation, there is no driver, so there are no version numbers.
            SystemQuery::DriverVersion | SystemQuery::NvmlVersion | SystemQuery::CudaVersion => {
                Err(Code::NO_DATA)
            }
            _ => Err(Code::NOT_SUPPORTED),
        }
    }

    /// Runs all queries for the same point in simulated time.
    fn run_queries(&self, subject: Subject, queries: &[Query]) -> Vec<Answer> {
        let found = self.find(subject);
        let answer = |query: &Query| {
            let gpu = found.as_ref().map_err(|code| *code)?;
            answer_query(gpu, *query).unwrap_or(Err(Code::NOT_SUPPORTED))
        };
        queries.iter().map(answer).collect()
    }

    fn open_gpu(&self, index: u32) -> Result<(), Code> {
        self.find(Subject::from_gpu(index)).map(drop)
    }

    fn read_gpm_metrics(&self, subject: Subject, metrics: &[u32]) -> Result<GpmResult, Code> {
        let gpu = self.find(subject)?;
        let identity = self.0.world.gpu_identity(gpu.index);
        if !identity.counts_activity {
            return Err(Code::NOT_SUPPORTED);
        }
        let state = gpu.state();
        let counters = match gpu.instance {
            None => &state.counters,
            Some(instance) => {
                let device = state.mig_device(instance);
                &device.ok_or(Code::NOT_FOUND)?.counters
            }
        };
        let has_links = !identity.nvlinks.is_empty();
        let value = |id: &u32| get_gpm_metric(counters, *id, has_links).ok_or(Code::NOT_SUPPORTED);
        Ok(GpmResult::Counted(metrics.iter().map(value).collect()))
    }

    /// Returns the memory that the scenario assigns to the GPU. If the GPU shares the machine's
    /// memory, this is the machine's memory.
    fn read_machine_memory(&self, index: u32) -> Option<MachineMemory> {
        let state = self.find(Subject::from_gpu(index)).ok()?.state();
        Some(MachineMemory {
            total_bytes: state.memory_total_bytes,
            available_bytes: state.memory_free_bytes,
        })
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        Some(Box::new(SimReporter::new(Arc::clone(&self.0))))
    }

    fn simulated_cpu_use(&self, index: u32) -> Vec<ProcessUse> {
        self.current_state(index).cpu_use()
    }

    /// Fills in data about simulated processes from the scenario, because the operating system does
    /// not know them.
    fn fill_simulated_process_details(&self, index: u32, processes: &mut [Process]) {
        let state = self.current_state(index);
        let place = |own: &ProcessState| (own.pid, own.mig);
        let known: HashMap<_, _> = state
            .processes
            .iter()
            .map(|own| (place(own), own))
            .collect();
        for process in processes {
            if let Some(own) = known.get(&(process.pid, process.mig)) {
                add_process_details(process, own, &self.0);
            }
        }
    }
}

fn add_process_details(process: &mut Process, own: &ProcessState, machine: &Machine) {
    let text = |text: &Option<Arc<str>>| {
        Reading::from(
            text.as_ref()
                .map(ToString::to_string)
                .ok_or(Absence::Unknown),
        )
    };
    process.name = text(&own.name);
    process.command = text(&own.command);
    process.user = text(&own.user);
    process.host_memory_bytes = own.host_memory_bytes.ok_or(Absence::Unknown).into();
    process.traced = Reading::Now(own.traced);
    process.started_ms = Reading::Now(machine.timeline.unix_ms(own.started_s));
    process.owner = Reading::Now(own.owner.clone());
}

/// Blocks while the GPU is hung.
///
/// # Errors
/// Returns the `nvmlReturn_t` if all calls about the GPU fail.
fn wait_while_hung(machine: &Machine, index: u32) -> Result<(), Code> {
    let scenario = machine.world.scenario();
    while let Some(left) = scenario.remaining_hang(Some(index), None, machine.timeline.elapsed_s())
    {
        thread::sleep(left);
    }
    let seconds = machine.timeline.elapsed_s();
    if scenario.has_version_mismatch(seconds) {
        Err(Code::VERSION_MISMATCH)
    } else if scenario.is_lost(index, seconds) {
        Err(Code::GPU_IS_LOST)
    } else if let Some(code) = scenario.find_gpu_failure_code(index, seconds) {
        Err(Code(code))
    } else {
        Ok(())
    }
}

/// The maximum time of a single wait for events.
const MAX_EVENT_WAIT: Duration = Duration::from_secs(1);

/// A reporter for the events of all GPUs that have been added.
struct SimReporter {
    machine: Arc<Machine>,
    /// The upcoming events, sorted by time. Each comes with the driver's index of its GPU.
    to_come: VecDeque<(u32, ScheduledEvent)>,
}

impl SimReporter {
    fn new(machine: Arc<Machine>) -> Self {
        Self {
            machine,
            to_come: VecDeque::new(),
        }
    }
}

impl Reporter for SimReporter {
    fn add(&mut self, gpu: u32) {
        let now_s = self.machine.timeline.elapsed_s();
        // Events that are already due are kept. The GPU's future events are replaced by those that
        // the scenario contains.
        self.to_come
            .retain(|(of, report)| *of != gpu || report.at_s <= now_s);
        let reports = self
            .machine
            .world
            .scenario()
            .list_events(self.machine.found[gpu as usize], now_s);
        self.to_come
            .extend(reports.into_iter().map(|report| (gpu, report)));
        self.to_come
            .make_contiguous()
            .sort_by(|(_, one), (_, other)| one.at_s.total_cmp(&other.at_s));
    }

    fn wait_for_event(&mut self) -> Option<(u32, Notice)> {
        let begun = Instant::now();
        loop {
            let now_s = self.machine.timeline.elapsed_s();
            if let Some((gpu, report)) = self
                .to_come
                .pop_front_if(|(_, report)| report.at_s <= now_s)
            {
                return Some((gpu, report.notice));
            }
            let left = MAX_EVENT_WAIT
                .checked_sub(begun.elapsed())
                .filter(|left| !left.is_zero())?;
            self.machine.sleep_until_event(left);
        }
    }
}

impl Machine {
    /// Sleeps until the next event is reported or a fault starts or ends, but at most for
    /// `longest`.
    pub fn sleep_until_event(&self, longest: Duration) {
        let now_s = self.timeline.elapsed_s();
        let next_s = self.world.scenario().next_change_s(now_s);
        // Sleeping slightly longer ensures that the event's time has passed.
        let until = next_s
            .map(|next_s| Duration::from_secs_f64(next_s - now_s) + Duration::from_micros(100));
        thread::sleep(until.map_or(longest, |until| longest.min(until)));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::{
        model::{Board, GpuDetails, GpuSample, Health, PciPath},
        vendor::{DeviceError, ReadDepth, Source, SourceError},
    };

    fn start_source(toml: &str) -> NvmlSource {
        start_simulation(Scenario::from_toml(toml, "test.toml").unwrap())
    }

    fn make_blank_sample(index: u32) -> GpuSample {
        GpuSample::new_absent(index, None, 0, Health::Ok, &Absence::WarmingUp)
    }

    fn count_absent(read: &impl serde::Serialize) -> usize {
        serde_json::to_string(read)
            .unwrap()
            .matches("absent")
            .count()
    }

    #[test]
    fn simulated_gpu_has_all_readings_and_label() {
        let source = start_simulation(Scenario::with_gpus(2, 1));
        assert!(source.platform().is_simulated);
        assert_eq!(source.device_count(), Ok(2));
        let mut device = source.open(0).unwrap();
        assert!(device.identify().uuid.unwrap().starts_with("GPU-"));
        let mut sample = make_blank_sample(0);
        device.read(&mut sample, ReadDepth::Full).unwrap();
        // An H200 has no fan, so the fan speed is the only absent reading.
        assert_eq!(count_absent(&sample), 1);
        let Board { numa_node, .. } = device.identify().board;
        assert_eq!(
            (count_absent(&device.identify()), numa_node),
            (0, Reading::Now(0))
        );
        let mut details = GpuDetails::new_absent(0, None, 0, &Absence::WarmingUp);
        device.read_details(&mut details).unwrap();
        // Two readings are absent because an H200 has neither retired pages nor fans.
        assert_eq!(count_absent(&details), 2, "{details:?}");
        assert_eq!(details.nvlinks.value().map(Vec::len), Some(18));
    }

    #[test]
    fn driver_answers_are_available_before_details() {
        let source = start_simulation(Scenario::with_gpus(1, 1));
        let answers = source.open(0).unwrap().answers_reader().unwrap()().0;
        for query in [Query::EccMode, Query::DisplayActive, Query::PowerUsage] {
            let known = answers.get(None, query).unwrap();
            assert!(known.answer.is_ok(), "{query:?}: {known:?}");
        }
    }

    #[test]
    fn geforce_has_fans_but_no_ecc() {
        let source = start_source(
            "[[gpu]]\nindex = 0\nname = \"NVIDIA GeForce RTX 4090\"\narchitecture = \"ada\"",
        );
        let mut device = source.open(0).unwrap();
        let (mut sample, mut details) = (
            make_blank_sample(0),
            GpuDetails::new_absent(0, None, 0, &Absence::WarmingUp),
        );
        device.read(&mut sample, ReadDepth::Full).unwrap();
        device.read_details(&mut details).unwrap();
        assert!(
            sample.fan_percent.value().is_some()
                && details.fans.value().is_some_and(|fans| fans.len() == 2)
        );
        let lacks = |absent: bool| assert!(absent, "{sample:?} {details:?}");
        lacks(sample.temperature.margin_celsius == Reading::Absent(Absence::NotSupported));
        lacks(sample.mig_devices == Reading::Absent(Absence::NotSupported));
        lacks(sample.activity == Reading::Absent(Absence::NotSupported));
        lacks(details.ecc.volatile.corrected_total == Reading::Absent(Absence::NotSupported));
        lacks(details.remapped_rows == Reading::Absent(Absence::NotSupported));
        lacks(details.retired_pages == Reading::Absent(Absence::NotSupported));
        lacks(device.identify().board.serial == Reading::Absent(Absence::NotSupported));
    }

    #[test]
    fn every_pair_of_gpus_is_linked() {
        let links = start_simulation(Scenario::with_gpus(5, 1)).find_links(&[0, 1, 4]);
        let pairs: Vec<_> = links
            .iter()
            .map(|link| (link.a, link.b, link.path.value().copied()))
            .collect();
        let (node, system) = (Some(PciPath::Node), Some(PciPath::System));
        assert_eq!(pairs, [(0, 1, node), (0, 4, system), (1, 4, system)]);
        assert!(links.iter().all(|link| link.nvlinks == Reading::Now(18)));
    }

    #[test]
    fn process_values_missing_in_scenario_are_unknown() {
        let source = start_source("[[process]]\ngpu = 0\npid = 77\nuser = \"ana\"");
        let mut sample = make_blank_sample(0);
        source
            .open(0)
            .unwrap()
            .read(&mut sample, ReadDepth::Full)
            .unwrap();
        let process = &sample.processes.value().unwrap()[0];
        assert_eq!(process.pid, 77);
        assert_eq!(process.memory_bytes, Reading::Absent(Absence::Unknown));
        assert_eq!(process.name, Reading::Absent(Absence::Unknown));
        assert_eq!(process.host_memory_bytes, Reading::Absent(Absence::Unknown));
        assert_eq!(process.user, Reading::Now("ana".to_owned()));
    }

    #[test]
    fn host_memory_comes_from_scenario_or_program() {
        let held = |source: NvmlSource| {
            let mut sample = make_blank_sample(0);
            source
                .open(0)
                .unwrap()
                .read(&mut sample, ReadDepth::Full)
                .unwrap();
            sample.processes.value().unwrap()[0]
                .host_memory_bytes
                .clone()
        };
        let given = start_source("[[process]]\ngpu = 0\npid = 77\nhost_memory = \"3 GiB\"");
        assert_eq!(held(given), Reading::Now(3 << 30));
        let invented = held(start_simulation(Scenario::with_gpus(1, 1)));
        assert!(
            invented
                .value()
                .is_some_and(|bytes| (1 << 29..24 << 30).contains(bytes)),
            "{invented:?}"
        );
    }

    #[test]
    fn lost_gpu_does_not_affect_its_neighbor() {
        let source = start_source("gpus = 2\n[[fault]]\ngpu = 0\nkind = \"lost\"\nfrom_s = 0");
        assert!(matches!(source.open(0), Err(DeviceError::Lost)));
        assert!(
            source
                .open(1)
                .unwrap()
                .read(&mut make_blank_sample(1), ReadDepth::Full)
                .is_ok()
        );
    }

    #[test]
    fn failing_gpu_does_not_affect_its_neighbor() {
        let source = start_source("gpus = 2\n[[fault]]\ngpu = 0\nkind = \"returns\"\ncode = 16\n");
        let error = source.open(0).err().unwrap();
        assert!(
            matches!(
                error,
                DeviceError::Failed {
                    reason: Absence::DriverError { code: 16 },
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(
            error.to_string().contains(
                "needs a reset (NVML error 16); stop the programs on the GPU, then run `gpumon \
                 pause`"
            ),
            "{error}"
        );
        assert!(
            source
                .open(1)
                .unwrap()
                .read(&mut make_blank_sample(1), ReadDepth::Full)
                .is_ok()
        );
    }

    #[test]
    fn driver_counts_gpus_only_at_startup() {
        let source = start_source(
            "gpus = 3\n[[gpu]]\nindex = 0\nfrom_s = 900\n[[gpu]]\nindex = 1\nto_s = 0.3\n",
        );
        assert_eq!(source.device_count(), Ok(2));
        let mut device = source.open(0).unwrap();
        assert_eq!(
            (device.identify().index, device.identify().pci_bus_id),
            (0, Reading::Now("00000000:11:00.0".into()))
        );
        thread::sleep(Duration::from_millis(350));
        assert_eq!(
            device.read(&mut make_blank_sample(0), ReadDepth::Full),
            Err(DeviceError::Lost),
            "it was taken out"
        );
        assert_eq!(
            (
                source.device_count(),
                source.open(1).unwrap().identify().index
            ),
            (Ok(2), 1)
        );
    }

    #[test]
    fn mismatched_driver_fails_until_fault_ends() {
        let source = start_source("[[fault]]\nkind = \"mismatch\"\nto_s = 0.2");
        assert!(matches!(
            source.device_count(),
            Err(SourceError::VersionMismatch(_))
        ));
        assert!(matches!(
            source.open(0),
            Err(DeviceError::DriverReplaced { code: 18, .. })
        ));
        thread::sleep(Duration::from_millis(250));
        assert!(source.open(0).is_ok());
    }

    #[test]
    fn mig_devices_report_their_own_activity() {
        let source = start_source(
            "start_ms = 1_700_000_000_000\n[[gpu]]\nindex = 0\nmig = [{ profile = \"1g.18gb\", \
             gpu_instance = 7 }, { profile = \"3g.71gb\", gpu_instance = 2 }]\n[[process]]\ngpu = \
             0\npid = 5\nmemory = \"1 GiB\"\nsm_percent = 70\ngpu_instance = 2\n",
        );
        let mut device = source.open(0).unwrap();
        let mut sample = make_blank_sample(0);
        device.read(&mut sample, ReadDepth::Full).unwrap();
        assert_eq!(
            sample.utilization.gpu_percent,
            Reading::Absent(Absence::NotSupported)
        );
        let instances = sample.mig_devices.value().unwrap();
        let used = instances.iter().map(|own| {
            (
                own.instance.gpu_instance,
                own.memory.used_bytes.value().copied(),
            )
        });
        assert_eq!(used.collect::<Vec<_>>(), [(7, Some(0)), (2, Some(1 << 30))]);
        let sm = instances[1]
            .activity
            .value()
            .unwrap()
            .sm_percent
            .value()
            .copied();
        assert!(
            sm.is_some_and(|percent| (60.0..70.0).contains(&percent)),
            "{sm:?}"
        );
        let whole = sample.activity.value().unwrap().sm_percent.value().copied();
        assert!(
            whole.is_some_and(|percent| (25.0..30.0).contains(&percent)),
            "{whole:?}"
        );
        let process = &sample.processes.value().unwrap()[0];
        assert_eq!(process.sm_percent, Reading::Absent(Absence::NotSupported));
        assert_eq!(process.mig, Some(instances[1].instance));
        let devices = device.identify().mig_devices;
        assert_eq!(
            (devices[1].uuid.as_str(), &devices[1].multiprocessors),
            (&*instances[1].uuid, &Reading::Now(60))
        );
        assert_eq!(device.take_traces().len(), 1);
    }

    #[test]
    fn hung_gpu_responds_after_fault_ends() {
        let begun = Instant::now();
        let source = start_source("[[fault]]\ngpu = 0\nkind = \"hang\"\nto_s = 0.3");
        source.open(0).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(300));
    }

    #[test]
    fn missing_gpus_and_failed_driver_have_distinct_errors() {
        assert!(matches!(
            start_source("gpus = 0").device_count(),
            Err(SourceError::NoDevice(_))
        ));
        assert!(matches!(
            start_source("init_error = { code = 9 }").device_count(),
            Err(SourceError::NoDriver(_))
        ));
        assert!(matches!(
            start_source("init_error = { code = 999 }").device_count(),
            Err(SourceError::Driver(_))
        ));
        assert!(matches!(
            start_source("").open(1),
            Err(DeviceError::Failed { .. })
        ));
    }
}

#[cfg(test)]
mod reporter_tests {
    use super::*;
    use crate::vendor::sim::Scenario;

    fn make_reporter(toml: &str) -> SimReporter {
        SimReporter::new(Arc::new(Machine::start(
            Scenario::from_toml(toml, "test").unwrap(),
        )))
    }

    #[test]
    fn events_of_added_gpus_arrive_in_order() {
        let mut reporter = make_reporter(
            "gpus = 3\n[[event]]\ngpu = 0\nat_s = 0.3\nkind = \"ecc_uncorrected\"\n[[event]]\ngpu \
             = 2\nat_s = 0.2\nkind = \"mig\"\n[[event]]\ngpu = 1\nat_s = 0.1\nkind = \
             \"mig\"\n[[event]]\ngpu = 0\nat_s = 0.1\nkind = \"xid\"\ncode = 79\n",
        );
        reporter.add(2);
        reporter.add(0);
        // Adding the GPU again, as when it is reopened, must not duplicate events.
        reporter.add(0);
        let seen = [
            reporter.wait_for_event(),
            reporter.wait_for_event(),
            reporter.wait_for_event(),
        ]
        .map(Option::unwrap);
        assert_eq!(
            seen,
            [
                (0, Notice::Error { code: 79 }),
                (2, Notice::Partitions),
                (0, Notice::EccUncorrected)
            ]
        );
        let when_s = reporter.machine.timeline.elapsed_s();
        assert!((0.3..0.9).contains(&when_s), "it came at {when_s} s");
        assert_eq!(reporter.wait_for_event(), None);
        assert!(
            reporter.machine.timeline.elapsed_s() > when_s + 0.9,
            "it did not wait"
        );
    }

    #[test]
    fn simulated_events_in_the_past_are_skipped() {
        let mut reporter = make_reporter(
            "start_ms = 1_700_000_000_000\n[[event]]\ngpu = 0\nat_s = 5\nkind = \"power_source\"\n\
             [[event]]\ngpu = 0\nat_s = 900000000\nkind = \"power_source\"\n",
        );
        reporter.add(0);
        assert_eq!(reporter.to_come.len(), 1);
    }
}
