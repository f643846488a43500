//! A process's data about one GPU: its handle, the handles of its MIG devices, and constant
//! answers.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{gpm::Counted, raw};
use crate::vendor::nvml::query::{Answer, Code, Query};

/// The MIG device, or `None` for the whole GPU, and the query of an answer.
type Key = (Option<u32>, Query);

/// A GPU, which is opened by the first query.
pub(super) struct Gpu {
    index: u32,
    /// The handles by the index of the MIG device. `None` is the whole GPU.
    handles: Mutex<HashMap<Option<u32>, Result<raw::Device, Code>>>,
    remembered: Mutex<HashMap<Key, Answer>>,
    /// The position of the newest function that the driver has, if it is not the first.
    only_older: Mutex<HashMap<Key, usize>>,
    pub(super) counted: Counted,
}

impl Gpu {
    pub(super) fn new(index: u32) -> Self {
        Self {
            index,
            handles: Mutex::default(),
            remembered: Mutex::default(),
            only_older: Mutex::default(),
            counted: Counted::default(),
        }
    }

    /// Returns the handle of the GPU or of one of its MIG devices. If another thread is opening the
    /// same GPU, this waits for that thread.
    pub(super) fn device(
        &self,
        library: &raw::Library,
        mig: Option<u32>,
    ) -> Result<raw::Device, Code> {
        let mut handles = lock(&self.handles);
        let gpu = *handles
            .entry(None)
            .or_insert_with(|| library.device(self.index));
        match mig {
            None => gpu,
            Some(index) => *handles
                .entry(mig)
                .or_insert_with(|| library.mig_device(gpu?, index)),
        }
    }

    /// Returns the remembered answer, or asks and remembers. Errors are not remembered, except that
    /// a query is unsupported.
    pub(super) fn remember(&self, key: Key, ask: impl FnOnce() -> Answer) -> Answer {
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

    /// Calls these functions, the newest first, until one exists in the driver's version, and
    /// returns its answer. Later calls skip the missing functions.
    pub(super) fn ask_newest(&self, key: Key, functions: &[&dyn Fn() -> Answer]) -> Answer {
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

    /// Forgets the handles and answers of MIG devices.
    pub(super) fn forget_mig_devices(&self) {
        lock(&self.handles).retain(|mig, _| mig.is_none());
        lock(&self.remembered).retain(|(mig, _), _| mig.is_none());
    }

    pub(super) fn forget_answers(&self) {
        lock(&self.remembered).clear();
    }

    /// Forgets all handles, and the answers of MIG devices. The handles are left alone while the
    /// GPU is being opened, because that may hang.
    pub(super) fn forget(&self) {
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
    fn what_failed_is_asked_again_and_what_a_mig_device_said_is_forgotten() {
        let gpu = Gpu::new(0);
        let ask = |mig, answer: Answer| gpu.remember((mig, Query::Name), || answer);
        let named = |name: &str| Ok(Value::Text(name.to_owned()));
        assert_eq!(ask(None, Err(Code::GPU_IS_LOST)), Err(Code::GPU_IS_LOST));
        assert_eq!(ask(None, named("first")), named("first"));
        assert_eq!(ask(Some(0), named("part")), named("part"));
        assert_eq!(
            (ask(None, named("second")), ask(Some(0), named("other"))),
            (named("first"), named("part"))
        );
        gpu.forget();
        assert_eq!(
            (ask(None, named("second")), ask(Some(0), named("other"))),
            (named("first"), named("other"))
        );
    }

    #[test]
    fn what_there_is_not_is_not_asked_for_twice() {
        let gpu = Gpu::new(0);
        for _ in 0..2 {
            let answer = gpu.remember((None, Query::Serial), || Err(Code::NOT_SUPPORTED));
            assert_eq!(answer, Err(Code::NOT_SUPPORTED));
        }
        let later = gpu.remember((None, Query::Serial), || unreachable!());
        assert_eq!(later, Err(Code::NOT_SUPPORTED));
    }

    #[test]
    fn a_function_that_the_driver_lacks_is_called_once() {
        let gpu = Gpu::new(0);
        let ask = |newer: &dyn Fn() -> Answer| {
            gpu.ask_newest(
                (None, Query::Temperature),
                &[newer, &|| Ok(Value::number(40))],
            )
        };
        assert_eq!(
            ask(&|| Err(Code::GPU_IS_LOST)),
            Err(Code::GPU_IS_LOST),
            "which is no reason to call the older"
        );
        assert_eq!(
            ask(&|| Err(Code::FUNCTION_NOT_FOUND)),
            Ok(Value::number(40))
        );
        assert_eq!(ask(&|| unreachable!()), Ok(Value::number(40)));
    }
}
