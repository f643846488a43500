//! The data that this process keeps about one GPU: its handle, the handles of its MIG devices, and
//! constant responses.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{gpm::GpmSamples, raw};
use crate::vendor::nvml::query::{Answer, Code, Query};

/// The key of a remembered response: the MIG device, or `None` for the whole GPU, and the query.
type AnswerKey = (Option<u32>, Query);

/// A GPU that is opened by the first query about it.
pub(super) struct OpenedGpu {
    index: u32,
    /// The device handles, by MIG device index. `None` stands for the whole GPU.
    handles: Mutex<HashMap<Option<u32>, Result<raw::Device, Code>>>,
    remembered: Mutex<HashMap<AnswerKey, Answer>>,
    /// For each query whose newest function the driver lacks, the position of the newest function
    /// that the driver has.
    only_older: Mutex<HashMap<AnswerKey, usize>>,
    pub(super) counted: GpmSamples,
}

impl OpenedGpu {
    pub(super) fn new(index: u32) -> Self {
        Self {
            index,
            handles: Mutex::default(),
            remembered: Mutex::default(),
            only_older: Mutex::default(),
            counted: GpmSamples::default(),
        }
    }

    /// Returns the handle of the GPU or of one of its MIG devices. If another thread is already
    /// opening the GPU, waits for that thread.
    pub(super) fn open_device(
        &self,
        library: &raw::Library,
        mig: Option<u32>,
    ) -> Result<raw::Device, Code> {
        let mut handles = lock(&self.handles);
        let gpu = *handles
            .entry(None)
            .or_insert_with(|| library.find_device(self.index));
        match mig {
            None => gpu,
            Some(index) => *handles
                .entry(mig)
                .or_insert_with(|| library.find_mig_device(gpu?, index)),
        }
    }

    /// Returns the remembered response for `key`, or calls `ask` and remembers its result. Errors
    /// are not remembered, except for unsupported queries.
    pub(super) fn get_or_query(&self, key: AnswerKey, ask: impl FnOnce() -> Answer) -> Answer {
        if let Some(known) = lock(&self.remembered).get(&key) {
            return known.clone();
        }
        let answer = ask();
        if matches!(
            answer,
            Ok(_) | Err(Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND | Code::DEPRECATED)
        ) {
            lock(&self.remembered).insert(key, answer.clone());
        }
        answer
    }

    /// Calls `functions` in turn, the newest first, until one exists in the driver's version, and
    /// returns its response. Later calls skip the missing functions.
    pub(super) fn call_newest_function(
        &self,
        key: AnswerKey,
        functions: &[&dyn Fn() -> Answer],
    ) -> Answer {
        let first = lock(&self.only_older).get(&key).copied().unwrap_or(0);
        let mut answer = Err(Code::FUNCTION_NOT_FOUND);
        for (place, ask) in functions.iter().enumerate().skip(first) {
            answer = ask();
            if !matches!(
                answer,
                Err(Code::FUNCTION_NOT_FOUND | Code::ARGUMENT_VERSION_MISMATCH)
            ) {
                if place > first {
                    lock(&self.only_older).insert(key, place);
                }
                break;
            }
        }
        answer
    }

    /// Forgets the handles of MIG devices, and the responses about them.
    pub(super) fn forget_mig_devices(&self) {
        lock(&self.handles).retain(|mig, _| mig.is_none());
        lock(&self.remembered).retain(|(mig, _), _| mig.is_none());
    }

    pub(super) fn forget_answers(&self) {
        lock(&self.remembered).clear();
    }

    /// Forgets all handles, and the responses about MIG devices. While the GPU is being opened, its
    /// handles are kept, because waiting for the opening could hang.
    pub(super) fn forget_handles(&self) {
        if let Ok(mut handles) = self.handles.try_lock() {
            handles.clear();
        }
        lock(&self.remembered).retain(|(mig, _), _| mig.is_none());
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::nvml::query::Value;

    #[test]
    fn failures_and_mig_answers_are_not_cached() {
        let gpu = OpenedGpu::new(0);
        let ask = |mig, answer: Answer| gpu.get_or_query((mig, Query::Name), || answer);
        let named = |name: &str| Ok(Value::Text(name.to_owned()));
        assert_eq!(ask(None, Err(Code::GPU_IS_LOST)), Err(Code::GPU_IS_LOST));
        assert_eq!(ask(None, named("first")), named("first"));
        assert_eq!(ask(Some(0), named("part")), named("part"));
        assert_eq!(
            (ask(None, named("second")), ask(Some(0), named("other"))),
            (named("first"), named("part"))
        );
        gpu.forget_handles();
        assert_eq!(
            (ask(None, named("second")), ask(Some(0), named("other"))),
            (named("first"), named("other"))
        );
    }

    #[test]
    fn unsupported_query_is_sent_once() {
        let gpu = OpenedGpu::new(0);
        for _ in 0..2 {
            let answer = gpu.get_or_query((None, Query::Serial), || Err(Code::NOT_SUPPORTED));
            assert_eq!(answer, Err(Code::NOT_SUPPORTED));
        }
        let later = gpu.get_or_query((None, Query::Serial), || unreachable!());
        assert_eq!(later, Err(Code::NOT_SUPPORTED));
    }

    #[test]
    fn missing_function_is_called_once() {
        let gpu = OpenedGpu::new(0);
        let ask = |newer: &dyn Fn() -> Answer| {
            gpu.call_newest_function(
                (None, Query::Temperature),
                &[newer, &|| Ok(Value::from_number(40))],
            )
        };
        assert_eq!(
            ask(&|| Err(Code::GPU_IS_LOST)),
            Err(Code::GPU_IS_LOST),
            "which is no reason to call the older"
        );
        assert_eq!(
            ask(&|| Err(Code::FUNCTION_NOT_FOUND)),
            Ok(Value::from_number(40))
        );
        assert_eq!(ask(&|| unreachable!()), Ok(Value::from_number(40)));
    }
}
