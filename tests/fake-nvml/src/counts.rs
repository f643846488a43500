//! How often each function was called for each GPU, for tests that check how much is asked of the
//! driver.

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

/// While calls are made, the file is at most this old.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Counters, and the file that gets them; without a file nothing is counted.
pub(crate) struct Counts {
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: BTreeMap<&'static str, BTreeMap<Option<u32>, u64>>,
    written: Option<Instant>,
}

impl Counts {
    pub(crate) fn new(path: Option<OsString>) -> Self {
        Self {
            path: path.map(PathBuf::from),
            state: Mutex::default(),
        }
    }

    /// Counts a call; `None` where it is about no GPU that there is.
    pub(crate) fn add(&self, function: &'static str, gpu: Option<u32>) {
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
        if state.written.is_none_or(|at| at.elapsed() >= WRITE_EVERY) {
            self.write_locked(&mut state);
        }
    }

    pub(crate) fn write(&self) {
        self.write_locked(&mut self.lock());
    }

    fn write_locked(&self, state: &mut State) {
        let Some(path) = &self.path else { return };
        state.written = Some(Instant::now());
        // By way of another file, so that nobody reads half of it.
        let partial = path.with_extension(format!("{}.partial", process::id()));
        let written =
            fs::write(&partial, json(&state.calls)).and_then(|()| fs::rename(&partial, path));
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

/// Function names are plain words, so that nothing needs escaping.
fn json(calls: &BTreeMap<&'static str, BTreeMap<Option<u32>, u64>>) -> String {
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
