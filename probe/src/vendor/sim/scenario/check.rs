//! Checks of whether the parts of a scenario are consistent. Individual values are checked while
//! they are parsed.

use std::{collections::BTreeSet, ops::Range};

use toml::Spanned;

use super::{
    GpuSettings, MigSettings, Scenario,
    fault::{EventKind, FaultKind, FaultSettings},
    values::Seconds,
};

/// The invalid part's byte range, and the error message.
type InvalidPart = (Range<usize>, String);

/// Returns an error that points to `part` in the scenario file.
fn reject<T>(part: &Spanned<T>, message: impl Into<String>) -> Result<(), InvalidPart> {
    Err((part.span(), message.into()))
}

impl Scenario {
    /// The maximum number of processes in a `[[process]]` table. No machine runs more on a GPU.
    const MAX_PROCESS_COUNT: u32 = 10_000;

    pub(super) fn check(&self) -> Result<(), InvalidPart> {
        self.check_gpus()?;
        self.check_processes()?;
        self.check_accounted()?;
        self.check_events()?;
        self.check_faults()
    }

    fn check_gpus(&self) -> Result<(), InvalidPart> {
        if let Some(gpus) = self
            .gpus
            .as_ref()
            .filter(|gpus| *gpus.get_ref() > Self::MAX_GPUS)
        {
            let message = format!(
                "{} GPUs are too many; use 0 to {}",
                gpus.get_ref(),
                Self::MAX_GPUS
            );
            return reject(gpus, message);
        }
        let mut seen = BTreeSet::new();
        for gpu in &self.gpu {
            self.check_index(&gpu.index.0)?;
            if !seen.insert(*gpu.index.0.get_ref()) {
                let message = format!(
                    "GPU {} has two tables; merge them into one",
                    gpu.index.0.get_ref()
                );
                return reject(&gpu.index.0, message);
            }
            check_order(gpu.from_s.as_ref(), gpu.to_s.as_ref())?;
            check_mig(gpu)?;
            let links = gpu.nvlinks.map_or(0, |links| links.0 as u32);
            if let Some(link) = gpu
                .nvlinks_down
                .iter()
                .find(|link| *link.get_ref() >= links)
            {
                let message = format!(
                    "there is no NVLink {}: this GPU has {links}; raise `nvlinks` to at least {}",
                    link.get_ref(),
                    link.get_ref().saturating_add(1)
                );
                return reject(link, message);
            }
        }
        Ok(())
    }

    fn check_processes(&self) -> Result<(), InvalidPart> {
        for process in &self.process {
            self.check_index(&process.gpu)?;
            let count = &process.count;
            if !(1..=Self::MAX_PROCESS_COUNT).contains(count.get_ref()) {
                let message = format!(
                    "the count is {}; use 1 to {}",
                    count.get_ref(),
                    Self::MAX_PROCESS_COUNT
                );
                return reject(count, message);
            }
            if let Some(instance) = &process.gpu_instance {
                self.check_instance(*process.gpu.get_ref(), instance)?;
            }
            check_order(process.from_s.as_ref(), process.to_s.as_ref())?;
            if let Some(lifetime) = process
                .lifetime_s
                .as_ref()
                .filter(|lifetime| lifetime.get_ref().0 <= 0.0)
            {
                return reject(
                    lifetime,
                    "the lifetime is 0 s; use more than 0, or remove it",
                );
            }
        }
        Ok(())
    }

    fn check_accounted(&self) -> Result<(), InvalidPart> {
        for process in &self.accounted {
            self.check_index(&process.gpu)?;
            let gpu = *process.gpu.get_ref();
            if !self.find_settings(gpu).is_some_and(|own| own.accounting) {
                let message = format!(
                    "accounting is disabled on GPU {gpu}; add `accounting = true` to its [[gpu]] \
                     table"
                );
                return reject(&process.gpu, message);
            }
        }
        Ok(())
    }

    fn check_instance(&self, gpu: u32, instance: &Spanned<u32>) -> Result<(), InvalidPart> {
        let mig = self.find_settings(gpu).and_then(|own| own.mig.as_ref());
        let mut devices = mig
            .into_iter()
            .flat_map(|steps| steps.get_ref().values())
            .flatten();
        if devices.any(|device| device.instance().gpu_instance == *instance.get_ref()) {
            return Ok(());
        }
        let message = format!(
            "GPU {gpu} has no GPU instance {}; add it to the GPU's `mig`",
            instance.get_ref()
        );
        reject(instance, message)
    }

    fn check_events(&self) -> Result<(), InvalidPart> {
        for event in &self.event {
            self.check_index(&event.gpu)?;
            let is_xid = *event.kind.get_ref() == EventKind::Xid;
            if is_xid && event.code.is_none() {
                return reject(
                    &event.kind,
                    "the Xid has no code; add NVIDIA's number, such as `code = 79`",
                );
            }
            let extra = event
                .code
                .as_ref()
                .or(event.pid.as_ref())
                .filter(|_| !is_xid);
            if let Some(extra) = extra {
                let message = "`code` and `pid` are only valid with kind = \"xid\"; remove them, \
                               or change `kind`";
                return reject(extra, message);
            }
        }
        Ok(())
    }

    fn check_faults(&self) -> Result<(), InvalidPart> {
        for fault in &self.fault {
            if let Some(gpu) = &fault.gpu {
                self.check_index(gpu)?;
            }
            check_order(fault.from_s.as_ref(), fault.to_s.as_ref())?;
            check_required_keys(fault)?;
            check_extra_keys(fault)?;
        }
        Ok(())
    }

    fn check_index(&self, index: &Spanned<u32>) -> Result<(), InvalidPart> {
        let (gpu, count) = (*index.get_ref(), self.gpu_count());
        if gpu >= Self::MAX_GPUS {
            let message = format!(
                "GPU {gpu} is out of range; use an index from 0 to {}",
                Self::MAX_GPUS - 1
            );
            return reject(index, message);
        }
        if gpu >= count {
            let message = format!(
                "there is no GPU {gpu}: this scenario has {count}; use an index below {count}, or \
                 raise `gpus` to at least {}",
                gpu + 1
            );
            return reject(index, message);
        }
        Ok(())
    }
}

fn check_mig(gpu: &GpuSettings) -> Result<(), InvalidPart> {
    let Some(mig) = &gpu.mig else { return Ok(()) };
    if gpu
        .architecture
        .is_some_and(|architecture| !architecture.has_mig())
    {
        return reject(
            mig,
            "this architecture does not support MIG; remove `mig`, or use ampere or hopper",
        );
    }
    if gpu
        .name
        .as_ref()
        .is_some_and(|name| name.contains("GeForce"))
    {
        return reject(
            mig,
            "a GeForce does not support MIG; remove `mig`, or change the name",
        );
    }
    let complaint = mig
        .get_ref()
        .values()
        .find_map(|devices| MigSettings::find_device_error(devices));
    complaint.map_or(Ok(()), |message| reject(mig, message))
}

fn check_order(
    from: Option<&Spanned<Seconds>>,
    to: Option<&Spanned<Seconds>>,
) -> Result<(), InvalidPart> {
    let begin = from.map_or(0.0, |from| from.get_ref().0);
    match to.filter(|to| to.get_ref().0 <= begin) {
        Some(to) => reject(
            to,
            format!(
                "the end at {} s is not after the start at {begin} s; use a later end",
                to.get_ref().0
            ),
        ),
        None => Ok(()),
    }
}

/// Returns an error if `fault` lacks a key that its kind requires.
fn check_required_keys(fault: &FaultSettings) -> Result<(), InvalidPart> {
    let (gpu, call) = (fault.gpu.is_some(), fault.call.is_some());
    let query = match fault.kind.get_ref() {
        FaultKind::Lost if !gpu => {
            "no GPU is specified; add the index of the lost GPU, such as `gpu = 0`"
        }
        FaultKind::Hang if !gpu && !call => {
            "neither a GPU nor a call is specified; add `gpu = 0`, or `call = \"nvmlInit_v2\"`, \
             or both"
        }
        FaultKind::Crash if !call => {
            "no call is specified; add the one that crashes, such as `call = \"nvmlDeviceGetName\"`"
        }
        FaultKind::Returns if !gpu && !call => {
            "neither a GPU nor a call is specified; add `gpu = 0`, or `call = \
             \"nvmlDeviceGetName\"`, or both"
        }
        FaultKind::Returns if fault.code.is_none() => {
            "no return code is specified; add an nvmlReturn_t, such as `code = 999`"
        }
        FaultKind::ClockSkew if fault.by_s.is_none() => {
            "no time difference is specified; add it in seconds, such as `by_s = 3600` or `by_s \
             = -5`"
        }
        _ => return Ok(()),
    };
    reject(&fault.kind, query)
}

/// Returns an error if `fault` has a key that does not apply to its kind.
fn check_extra_keys(fault: &FaultSettings) -> Result<(), InvalidPart> {
    let kind = *fault.kind.get_ref();
    let named = matches!(
        kind,
        FaultKind::Hang | FaultKind::Crash | FaultKind::Returns
    );
    match fault {
        FaultSettings {
            call: Some(call), ..
        } if kind == FaultKind::Lost => reject(
            call,
            "all calls fail on a lost GPU; remove `call`, or use kind = \"hang\"",
        ),
        FaultSettings {
            call: Some(call), ..
        } if !named => reject(
            call,
            "this fault does not apply to a single call; remove `call`, or use kind = \"returns\"",
        ),
        FaultSettings { gpu: Some(gpu), .. } if kind == FaultKind::Mismatch => reject(
            gpu,
            "a replaced driver affects all GPUs; remove `gpu`, or use kind = \"returns\"",
        ),
        FaultSettings {
            code: Some(code), ..
        } if kind != FaultKind::Returns => reject(
            code,
            "`code` is only valid with kind = \"returns\"; remove `code`, or change `kind`",
        ),
        FaultSettings {
            by_s: Some(by_s), ..
        } if kind != FaultKind::ClockSkew => reject(
            by_s,
            "`by_s` is only valid with kind = \"clock_skew\"; remove `by_s`, or change `kind`",
        ),
        _ => Ok(()),
    }
}
