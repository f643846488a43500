//! Checks whether the parts of a scenario fit together. Single values are checked while they are
//! parsed.

use std::{collections::BTreeSet, ops::Range};

use toml::Spanned;

use super::{
    GpuSettings, MigSettings, Scenario,
    event::EventSort,
    fault::{FaultKind, FaultSettings},
    quantity::Seconds,
};

/// The byte range of an invalid part, and the error message.
type Complaint = (Range<usize>, String);

impl Scenario {
    /// The maximum number of processes in a table. No machine runs more on a GPU.
    const MAX_COUNT: u32 = 10_000;

    pub(super) fn check(&self) -> Result<(), Complaint> {
        self.check_gpus()?;
        self.check_processes()?;
        self.check_accounted()?;
        self.check_events()?;
        self.check_faults()
    }

    fn check_gpus(&self) -> Result<(), Complaint> {
        if let Some(gpus) = self
            .gpus
            .as_ref()
            .filter(|gpus| *gpus.get_ref() > Self::MAX_GPUS)
        {
            return Err((
                gpus.span(),
                format!(
                    "{} GPUs are too many; use 0 to {}",
                    gpus.get_ref(),
                    Self::MAX_GPUS
                ),
            ));
        }
        let mut seen = BTreeSet::new();
        for gpu in &self.gpu {
            self.check_index(&gpu.index)?;
            if !seen.insert(*gpu.index.get_ref()) {
                let message = format!(
                    "GPU {} is described twice; put all of it into one table",
                    gpu.index.get_ref()
                );
                return Err((gpu.index.span(), message));
            }
            check_order(gpu.from_s.as_ref(), gpu.to_s.as_ref())?;
            check_mig(gpu)?;
            let links = gpu.nvlinks.map_or(0, |links| links.0 as u32);
            if let Some(link) = gpu
                .nvlinks_down
                .iter()
                .find(|link| *link.get_ref() >= links)
            {
                let cure = format!(
                    "raise `nvlinks` to at least {}",
                    link.get_ref().saturating_add(1)
                );
                let message = format!(
                    "there is no NVLink {}: this GPU has {links}; {cure}",
                    link.get_ref()
                );
                return Err((link.span(), message));
            }
        }
        Ok(())
    }

    fn check_processes(&self) -> Result<(), Complaint> {
        for process in &self.process {
            self.check_index(&process.gpu)?;
            let count = &process.count;
            if !(1..=Self::MAX_COUNT).contains(count.get_ref()) {
                let message = format!(
                    "a count of {}; use 1 to {}",
                    count.get_ref(),
                    Self::MAX_COUNT
                );
                return Err((count.span(), message));
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
                return Err((
                    lifetime.span(),
                    "a lifetime of 0 s; use more than 0, or remove it".to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn check_accounted(&self) -> Result<(), Complaint> {
        for process in &self.accounted {
            self.check_index(&process.gpu)?;
            let gpu = *process.gpu.get_ref();
            if !self.settings(gpu).is_some_and(|own| own.accounting) {
                let message = format!(
                    "GPU {gpu} accounts for no process; add `accounting = true` to its [[gpu]] table"
                );
                return Err((process.gpu.span(), message));
            }
        }
        Ok(())
    }

    fn check_instance(&self, gpu: u32, instance: &Spanned<u32>) -> Result<(), Complaint> {
        let mig = self.settings(gpu).and_then(|own| own.mig.as_ref());
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
        Err((instance.span(), message))
    }

    fn check_events(&self) -> Result<(), Complaint> {
        for event in &self.event {
            self.check_index(&event.gpu)?;
            let is_xid = *event.kind.get_ref() == EventSort::Xid;
            if is_xid && event.code.is_none() {
                return Err((
                    event.kind.span(),
                    "which Xid? add NVIDIA's number, as `code = 79`".to_owned(),
                ));
            }
            let extra = event
                .code
                .as_ref()
                .or(event.pid.as_ref())
                .filter(|_| !is_xid);
            if let Some(extra) = extra {
                let message =
                    "only kind = \"xid\" has a code and a pid; remove it, or change `kind`";
                return Err((extra.span(), message.to_owned()));
            }
        }
        Ok(())
    }

    fn check_faults(&self) -> Result<(), Complaint> {
        for fault in &self.fault {
            if let Some(gpu) = &fault.gpu {
                self.check_index(gpu)?;
            }
            check_order(fault.from_s.as_ref(), fault.to_s.as_ref())?;
            check_needs(fault)?;
            check_extras(fault)?;
        }
        Ok(())
    }

    fn check_index(&self, index: &Spanned<u32>) -> Result<(), Complaint> {
        let (index, span, count) = (*index.get_ref(), index.span(), self.gpu_count());
        if index >= Self::MAX_GPUS {
            return Err((
                span,
                format!(
                    "GPU {index} is beyond the last; use an index from 0 to {}",
                    Self::MAX_GPUS - 1
                ),
            ));
        }
        if index >= count {
            let cure = format!(
                "use an index below {count}, or raise `gpus` to at least {}",
                index + 1
            );
            return Err((
                span,
                format!("there is no GPU {index}: this scenario has {count}; {cure}"),
            ));
        }
        Ok(())
    }
}

fn check_mig(gpu: &GpuSettings) -> Result<(), Complaint> {
    let Some(mig) = &gpu.mig else { return Ok(()) };
    if gpu
        .architecture
        .is_some_and(|architecture| !architecture.has_mig())
    {
        return Err((
            mig.span(),
            "this architecture has no MIG; remove `mig`, or use ampere or hopper".to_owned(),
        ));
    }
    if gpu
        .name
        .as_ref()
        .is_some_and(|name| name.contains("GeForce"))
    {
        return Err((
            mig.span(),
            "a GeForce has no MIG; remove `mig`, or give it another name".to_owned(),
        ));
    }
    let complaint = mig
        .get_ref()
        .values()
        .find_map(|devices| MigSettings::complaint(devices));
    complaint.map_or(Ok(()), |message| Err((mig.span(), message)))
}

fn check_order(
    from: Option<&Spanned<Seconds>>,
    to: Option<&Spanned<Seconds>>,
) -> Result<(), Complaint> {
    let begin = from.map_or(0.0, |from| from.get_ref().0);
    match to.filter(|to| to.get_ref().0 <= begin) {
        Some(to) => Err((
            to.span(),
            format!(
                "it ends at {} s, but begins at {begin} s; end it later",
                to.get_ref().0
            ),
        )),
        None => Ok(()),
    }
}

/// Returns an error if a fault lacks a required key.
fn check_needs(fault: &FaultSettings) -> Result<(), Complaint> {
    let (gpu, call) = (fault.gpu.is_some(), fault.call.is_some());
    let query = match fault.kind.get_ref() {
        FaultKind::Lost if !gpu => "which GPU is lost? add its index, as `gpu = 0`",
        FaultKind::Hang if !gpu && !call => {
            "what hangs? add `gpu = 0`, or `call = \"nvmlInit_v2\"`, or both"
        }
        FaultKind::Crash if !call => {
            "which call crashes? add it, as `call = \"nvmlDeviceGetName\"`"
        }
        FaultKind::Returns if !gpu && !call => {
            "which calls return it? add `gpu = 0`, or `call = \"nvmlDeviceGetName\"`, or both"
        }
        FaultKind::Returns if fault.code.is_none() => {
            "what does it return? add an nvmlReturn_t, as `code = 999`"
        }
        FaultKind::ClockSkew if fault.by_s.is_none() => {
            "by how much? add seconds, as `by_s = 3600` or `by_s = -5`"
        }
        _ => return Ok(()),
    };
    Err((fault.kind.span(), query.to_owned()))
}

/// Returns an error if a fault has a key that does not apply to it.
fn check_extras(fault: &FaultSettings) -> Result<(), Complaint> {
    let kind = *fault.kind.get_ref();
    let named = matches!(
        kind,
        FaultKind::Hang | FaultKind::Crash | FaultKind::Returns
    );
    let refuse = |span: Range<usize>, message: &str| Err((span, message.to_owned()));
    match fault {
        FaultSettings {
            call: Some(call), ..
        } if kind == FaultKind::Lost => refuse(
            call.span(),
            "a lost GPU fails every call; remove `call`, or use kind = \"hang\"",
        ),
        FaultSettings {
            call: Some(call), ..
        } if !named => refuse(
            call.span(),
            "this fault is of no single call; remove `call`, or use kind = \"returns\"",
        ),
        FaultSettings { gpu: Some(gpu), .. } if kind == FaultKind::Mismatch => refuse(
            gpu.span(),
            "a driver that was replaced fails every GPU; remove `gpu`, or use kind = \"returns\"",
        ),
        FaultSettings {
            code: Some(code), ..
        } if kind != FaultKind::Returns => refuse(
            code.span(),
            "only kind = \"returns\" has a code; remove `code`, or change `kind`",
        ),
        FaultSettings {
            by_s: Some(by_s), ..
        } if kind != FaultKind::ClockSkew => refuse(
            by_s.span(),
            "only kind = \"clock_skew\" is by a time; remove `by_s`, or change `kind`",
        ),
        _ => Ok(()),
    }
}
