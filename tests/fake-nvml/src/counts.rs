//! Counters of calls by function and GPU, for tests that check the load on the driver.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Write as _,
    fs,
    path::PathBuf,
    process,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The maximum age of the file with the counts while calls are made.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// The counters and their file. Without a file, calls are not counted.
pub(crate) struct CallCounts {
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: BTreeMap<&'static str, BTreeMap<Option<u32>, u64>>,
    written: Option<Instant>,
}

impl CallCounts {
    pub(crate) fn new(path: Option<OsString>) -> Self {
        Self {
            path: path.map(PathBuf::from),
            state: Mutex::default(),
        }
    }

    /// Counts a call. `gpu` is `None` if the call is not about an existing GPU.
    pub(crate) fn count_call(&self, function: &'static str, gpu: Option<u32>) {
        if self.path.is_none() {
            return;
        }
        let mut state = self.lock();
        *state
            .calls
            .entry(function)
            .or_default()
            .entry(gpu)
            .or_default() += 1;
        if state
            .written
            .is_none_or(|at| at.elapsed() >= WRITE_INTERVAL)
        {
            self.write_locked(&mut state);
        }
    }

    pub(crate) fn write(&self) {
        self.write_locked(&mut self.lock());
    }

    fn write_locked(&self, state: &mut State) {
        let Some(path) = &self.path else { return };
        state.written = Some(Instant::now());
        // The file is replaced atomically, so that no reader sees a part of it.
        let partial = path.with_extension(format!("{}.partial", process::id()));
        let written =
            fs::write(&partial, to_json(&state.calls)).and_then(|()| fs::rename(&partial, path));
        if let Err(error) = written {
            eprintln!(
                "fake NVML: cannot write the counts to {}: {error}",
                path.display()
            );
            process::exit(2)
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the counters as JSON. Function names need no escaping.
fn to_json(calls: &BTreeMap<&'static str, BTreeMap<Option<u32>, u64>>) -> String {
    let mut text = String::from("{");
    for (function, by_gpu) in calls {
        let separator = if text.len() > 1 { "," } else { "" };
        let numbers: Vec<String> = by_gpu
            .iter()
            .map(|(gpu, count)| match gpu {
                Some(gpu) => format!("\"{gpu}\":{count}"),
                None => format!("\"system\":{count}"),
            })
            .collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{separator}\n\"{function}\":{{{}}}",
            numbers.join(",")
        );
    }
    text + "\n}\n"
}
