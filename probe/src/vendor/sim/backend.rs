//! The backend of `--source sim`, which answers NVML queries for simulated GPUs.

use std::{collections::HashMap, sync::Arc};

use super::{
    Machine, ProcessState, Scenario,
    answers::{SimulatedGpu, answer_query, gpm_metric},
    presence,
    reporter::SimReporter,
};
use crate::{
    model::{Absence, MigInstance, Process, Reading},
    vendor::{
        MachineMemory, Reporter,
        nvml::{
            Activity, Backend, NvmlSource,
            query::{Answer, Code, Query, Subject, SystemQuery, Value},
        },
    },
};

/// Starts a scenario, and returns a source that is read like NVIDIA's driver.
///
/// The scenario's `init_error` and all settings of GPUs apply. `latency`, `hidden`, `returns` and
/// `crash` do not, because they concern NVML functions, and none is called.
pub fn start(scenario: Scenario) -> NvmlSource {
    NvmlSource::new(SimulatedBackend(Arc::new(Machine::start(scenario))))
}

struct SimulatedBackend(Arc<Machine>);

/// A GPU or MIG device that answers queries.
struct Gpu<'a> {
    machine: &'a Machine,
    index: u32,
    instance: Option<MigInstance>,
    elapsed_ms: u64,
}

impl SimulatedGpu for Gpu<'_> {
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
    /// Finds a GPU or MIG device by the driver's indices. If the GPU hangs, this waits until it no
    /// longer does.
    fn find(&self, subject: Subject) -> Result<Gpu<'_>, Code> {
        let machine = &*self.0;
        let found = machine.found.get(subject.gpu as usize);
        let index = *found.ok_or(Code::INVALID_ARGUMENT)?;
        presence::check(machine, index)?;
        let mut gpu = Gpu {
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

    fn is_quick(&self) -> bool {
        true
    }

    fn ask_system(&self, query: SystemQuery) -> Answer {
        let seconds = self.0.timeline.elapsed_s();
        let scenario = self.0.world.scenario();
        if scenario.is_mismatched(seconds) {
            return Err(Code::VERSION_MISMATCH);
        }
        if let Some(code) = scenario.init_error(seconds) {
            return Err(Code(code));
        }
        match query {
            SystemQuery::DeviceCount => Ok(Value::number(self.0.found.len() as u32)),
            SystemQuery::ConfComputeState => Ok(Value::Numbers(vec![0; 3])),
            // A simulation has no driver, and thus no versions.
            SystemQuery::DriverVersion | SystemQuery::NvmlVersion | SystemQuery::CudaVersion => {
                Err(Code::NO_DATA)
            }
            _ => Err(Code::NOT_SUPPORTED),
        }
    }

    /// Answers queries, all for the same moment.
    fn ask_each(&self, subject: Subject, queries: &[Query]) -> Vec<Answer> {
        let found = self.find(subject);
        let answer = |query: &Query| {
            let gpu = found.as_ref().map_err(|code| *code)?;
            answer_query(gpu, *query).unwrap_or(Err(Code::NOT_SUPPORTED))
        };
        queries.iter().map(answer).collect()
    }

    fn open_gpu(&self, index: u32) -> Result<(), Code> {
        self.find(Subject::gpu(index)).map(drop)
    }

    fn read_activity(&self, subject: Subject, metrics: &[u32]) -> Result<Activity, Code> {
        let gpu = self.find(subject)?;
        let identity = self.0.world.identity(gpu.index);
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
        let value = |id: &u32| gpm_metric(counters, *id, has_links).ok_or(Code::NOT_SUPPORTED);
        Ok(Activity::Counted(metrics.iter().map(value).collect()))
    }

    /// Returns the memory that the scenario gives to the GPU, which is the machine's memory for a
    /// GPU that shares it.
    fn machine_memory(&self, index: u32) -> Option<MachineMemory> {
        let state = self.find(Subject::gpu(index)).ok()?.state();
        Some(MachineMemory {
            total_bytes: state.memory_total_bytes,
            available_bytes: state.memory_free_bytes,
        })
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        Some(Box::new(SimReporter::new(Arc::clone(&self.0))))
    }

    /// Describes simulated processes from the scenario, because they do not exist in the system.
    fn describe(&self, index: u32, processes: &mut [Process]) {
        let machine = &*self.0;
        let state = machine.state(machine.found[index as usize], machine.timeline.elapsed_ms());
        let place = |own: &ProcessState| (own.pid, own.mig);
        let known: HashMap<_, _> = state
            .processes
            .iter()
            .map(|own| (place(own), own))
            .collect();
        for process in processes {
            if let Some(own) = known.get(&(process.pid, process.mig)) {
                describe(process, own, machine);
            }
        }
    }
}

fn describe(process: &mut Process, own: &ProcessState, machine: &Machine) {
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

    fn source(toml: &str) -> NvmlSource {
        start(Scenario::from_toml(toml, "test.toml").unwrap())
    }

    fn blank(index: u32) -> GpuSample {
        GpuSample::absent(index, None, 0, Health::Ok, &Absence::WarmingUp)
    }

    fn absent(read: &impl serde::Serialize) -> usize {
        serde_json::to_string(read)
            .unwrap()
            .matches("absent")
            .count()
    }

    #[test]
    fn everything_of_a_simulated_gpu_is_read_and_labeled() {
        let source = start(Scenario::simple(2, 1));
        assert!(source.platform().is_simulated);
        assert_eq!(source.device_count(), Ok(2));
        let mut device = source.open(0).unwrap();
        assert!(device.identity().uuid.unwrap().starts_with("GPU-"));
        let mut sample = blank(0);
        device.read(&mut sample, ReadDepth::Full).unwrap();
        // The only absent reading is the fan, which an H200 lacks.
        assert_eq!(absent(&sample), 1);
        let Board { numa_node, .. } = device.identity().board;
        assert_eq!(
            (absent(&device.identity()), numa_node),
            (0, Reading::Now(0))
        );
        let mut details = GpuDetails::absent(0, None, 0, &Absence::WarmingUp);
        device.details(&mut details).unwrap();
        // The absent readings are retired pages and fans, which an H200 lacks.
        assert_eq!(absent(&details), 2, "{details:?}");
        assert_eq!(details.nvlinks.value().map(Vec::len), Some(18));
    }

    #[test]
    fn tools_have_answers_without_details() {
        let source = start(Scenario::simple(1, 1));
        let answers = source.open(0).unwrap().answers().unwrap()().0;
        for query in [Query::EccMode, Query::DisplayActive, Query::PowerUsage] {
            let known = answers.get(None, query).unwrap();
            assert!(known.answer.is_ok(), "{query:?}: {known:?}");
        }
    }

    #[test]
    fn a_geforce_has_fans_and_none_of_what_data_centers_want() {
        let source = source(
            "[[gpu]]\nindex = 0\nname = \"NVIDIA GeForce RTX 4090\"\narchitecture = \"ada\"",
        );
        let mut device = source.open(0).unwrap();
        let (mut sample, mut details) = (
            blank(0),
            GpuDetails::absent(0, None, 0, &Absence::WarmingUp),
        );
        device.read(&mut sample, ReadDepth::Full).unwrap();
        device.details(&mut details).unwrap();
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
        lacks(device.identity().board.serial == Reading::Absent(Absence::NotSupported));
    }

    #[test]
    fn every_pair_of_gpus_is_linked() {
        let links = start(Scenario::simple(5, 1)).links(&[0, 1, 4]);
        let pairs: Vec<_> = links
            .iter()
            .map(|link| (link.a, link.b, link.path.value().copied()))
            .collect();
        let (node, system) = (Some(PciPath::Node), Some(PciPath::System));
        assert_eq!(pairs, [(0, 1, node), (0, 4, system), (1, 4, system)]);
        assert!(links.iter().all(|link| link.nvlinks == Reading::Now(18)));
    }

    #[test]
    fn what_the_scenario_does_not_say_of_a_process_is_unknown() {
        let source = source("[[process]]\ngpu = 0\npid = 77\nuser = \"ana\"");
        let mut sample = blank(0);
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
    fn a_process_holds_the_host_memory_of_the_scenario_or_of_a_program_of_its_kind() {
        let held = |source: NvmlSource| {
            let mut sample = blank(0);
            source
                .open(0)
                .unwrap()
                .read(&mut sample, ReadDepth::Full)
                .unwrap();
            sample.processes.value().unwrap()[0]
                .host_memory_bytes
                .clone()
        };
        let given = source("[[process]]\ngpu = 0\npid = 77\nhost_memory = \"3 GiB\"");
        assert_eq!(held(given), Reading::Now(3 << 30));
        let invented = held(start(Scenario::simple(1, 1)));
        assert!(
            invented
                .value()
                .is_some_and(|bytes| (1 << 29..24 << 30).contains(bytes)),
            "{invented:?}"
        );
    }

    #[test]
    fn a_lost_gpu_is_lost_and_its_neighbor_is_not() {
        let source = source("gpus = 2\n[[fault]]\ngpu = 0\nkind = \"lost\"\nfrom_s = 0");
        assert!(matches!(source.open(0), Err(DeviceError::Lost)));
        assert!(
            source
                .open(1)
                .unwrap()
                .read(&mut blank(1), ReadDepth::Full)
                .is_ok()
        );
    }

    #[test]
    fn failing_gpu_does_not_affect_its_neighbor() {
        let source = source("gpus = 2\n[[fault]]\ngpu = 0\nkind = \"returns\"\ncode = 16\n");
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
                "needs a reset (NVML error 16); end the programs on it, then `gpumon pause`"
            ),
            "{error}"
        );
        assert!(
            source
                .open(1)
                .unwrap()
                .read(&mut blank(1), ReadDepth::Full)
                .is_ok()
        );
    }

    #[test]
    fn driver_counts_gpus_at_its_start() {
        let source =
            source("gpus = 3\n[[gpu]]\nindex = 0\nfrom_s = 900\n[[gpu]]\nindex = 1\nto_s = 0.3\n");
        assert_eq!(source.device_count(), Ok(2));
        let mut device = source.open(0).unwrap();
        assert_eq!(
            (device.identity().index, device.identity().pci_bus_id),
            (0, Reading::Now("00000000:11:00.0".into()))
        );
        thread::sleep(Duration::from_millis(350));
        assert_eq!(
            device.read(&mut blank(0), ReadDepth::Full),
            Err(DeviceError::Lost),
            "it was taken out"
        );
        assert_eq!(
            (
                source.device_count(),
                source.open(1).unwrap().identity().index
            ),
            (Ok(2), 1)
        );
    }

    #[test]
    fn a_driver_that_was_replaced_fails_until_it_is_right_again() {
        let source = source("[[fault]]\nkind = \"mismatch\"\nto_s = 0.2");
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
    fn a_divided_gpu_says_what_its_parts_do() {
        let source = source(
            "start_ms = 1_700_000_000_000\n[[gpu]]\nindex = 0\n\
             mig = [{ profile = \"1g.18gb\", gpu_instance = 7 }, { profile = \"3g.71gb\", gpu_instance = 2 }]\n\
             [[process]]\ngpu = 0\npid = 5\nmemory = \"1 GiB\"\nsm_percent = 70\ngpu_instance = 2\n",
        );
        let mut device = source.open(0).unwrap();
        let mut sample = blank(0);
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
        let devices = device.identity().mig_devices;
        assert_eq!(
            (devices[1].uuid.as_str(), &devices[1].multiprocessors),
            (&*instances[1].uuid, &Reading::Now(60))
        );
        assert_eq!(device.traces().len(), 1);
    }

    #[test]
    fn a_hung_gpu_answers_when_its_fault_is_over() {
        let begun = Instant::now();
        let source = source("[[fault]]\ngpu = 0\nkind = \"hang\"\nto_s = 0.3");
        source.open(0).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(300));
    }

    #[test]
    fn what_is_missing_is_told_apart() {
        assert!(matches!(
            source("gpus = 0").device_count(),
            Err(SourceError::NoDevice(_))
        ));
        assert!(matches!(
            source("init_error = { code = 9 }").device_count(),
            Err(SourceError::NoDriver(_))
        ));
        assert!(matches!(
            source("init_error = { code = 999 }").device_count(),
            Err(SourceError::Driver(_))
        ));
        assert!(matches!(
            source("").open(1),
            Err(DeviceError::Failed { .. })
        ));
    }
}
