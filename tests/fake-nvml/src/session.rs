//! The state of one process: the simulated machine, and the users of the library.

use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
};

use gpumon_probe::vendor::sim::{Machine, Scenario};

use crate::{
    code::{Code, Outcome},
    counts::CallCounts,
    notes::ActivityHistory,
};

const SCENARIO_VARIABLE: &str = "GPUMON_FAKE_NVML_SCENARIO";
const COUNTS_VARIABLE: &str = "GPUMON_FAKE_NVML_COUNTS";

pub(crate) struct Session {
    pub(crate) machine: Machine,
    pub(crate) counts: CallCounts,
    /// The folder with memory and activity of real processes; `None` if all processes are
    /// simulated.
    pub(crate) state_folder: Option<PathBuf>,
    /// The recorded activity of real processes; `None` if all processes are simulated.
    pub(crate) notes: Option<Arc<ActivityHistory>>,
    /// The number of initializing calls for which no shutdown call has been made yet.
    users: AtomicU32,
}

/// Returns the state of this process. The first call loads the scenario.
pub(crate) fn current_session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| match load_scenario() {
        Ok(scenario) => Session::new(scenario),
        Err(message) => {
            // A test must not run with another scenario than the one that it specifies. NVML has no
            // return code for this error, so the process ends.
            eprintln!("fake NVML: {message}");
            process::exit(2)
        }
    })
}

fn load_scenario() -> Result<Scenario, String> {
    let Some(path) = env::var_os(SCENARIO_VARIABLE) else {
        return Ok(Scenario::with_gpus(1, 1));
    };
    let name = path.to_string_lossy();
    let text = fs::read_to_string(&path).map_err(|error| {
        format!("cannot read {name}: {error}; set {SCENARIO_VARIABLE} to a scenario file")
    })?;
    Scenario::from_toml(&text, &name).map_err(|error| error.to_string())
}

impl Session {
    fn new(scenario: Scenario) -> Self {
        let (machine, state_folder) = (Machine::start(scenario), fake_gpu_state::find_folder());
        Self {
            counts: CallCounts::new(env::var_os(COUNTS_VARIABLE)),
            notes: state_folder
                .clone()
                .map(|folder| ActivityHistory::start(folder, &machine)),
            machine,
            state_folder,
            users: AtomicU32::new(0),
        }
    }

    /// Counts one more user, unless the scenario makes the initialization fail.
    pub(crate) fn initialize(&self) -> Outcome {
        if let Some(code) = self
            .machine
            .world
            .scenario()
            .init_error_code(self.machine.timeline.elapsed_s())
        {
            return Err(Code(code));
        }
        self.users.fetch_add(1, SeqCst);
        Ok(())
    }

    pub(crate) fn check_initialized(&self) -> Outcome {
        if self.users.load(SeqCst) == 0 {
            Err(Code::UNINITIALIZED)
        } else {
            Ok(())
        }
    }

    pub(crate) fn shut_down(&self) -> Outcome {
        let left = self
            .users
            .try_update(SeqCst, SeqCst, |users| users.checked_sub(1));
        self.counts.write();
        left.map(|_| ()).map_err(|_| Code::UNINITIALIZED)
    }
}
