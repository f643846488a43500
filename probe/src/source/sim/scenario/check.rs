//! What no single value shows: that a scenario's parts fit together.

use std::{collections::BTreeSet, ops::Range};

use toml::Spanned;

use super::{Scenario, fault::FaultKind, quantity::Seconds};

/// Where something is wrong, as a byte range, and what.
type Complaint = (Range<usize>, String);

impl Scenario {
    /// More processes than any machine runs on a GPU.
    const MAX_COUNT: u32 = 10_000;

    pub(super) fn check(&self) -> Result<(), Complaint> {
        self.check_gpus()?;
        self.check_processes()?;
        self.check_faults()
    }

    fn check_gpus(&self) -> Result<(), Complaint> {
        if let Some(gpus) = self.gpus.as_ref().filter(|gpus| *gpus.get_ref() > Self::MAX_GPUS) {
            return Err((gpus.span(), format!("{} GPUs are too many; use 0 to {}", gpus.get_ref(), Self::MAX_GPUS)));
        }
        let mut seen = BTreeSet::new();
        for gpu in &self.gpu {
            self.check_index(&gpu.index)?;
            if !seen.insert(*gpu.index.get_ref()) {
                let message = format!("GPU {} is described twice; put all of it into one table", gpu.index.get_ref());
                return Err((gpu.index.span(), message));
            }
            let links = gpu.nvlinks.map_or(0, |links| links.0 as u32);
            if let Some(link) = gpu.nvlinks_down.iter().find(|link| *link.get_ref() >= links) {
                let cure = format!("raise `nvlinks` to at least {}", link.get_ref().saturating_add(1));
                let message = format!("there is no NVLink {}: this GPU has {links}; {cure}", link.get_ref());
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
                let message = format!("a count of {}; use 1 to {}", count.get_ref(), Self::MAX_COUNT);
                return Err((count.span(), message));
            }
            check_order(process.from_s.as_ref(), process.to_s.as_ref())?;
        }
        Ok(())
    }

    fn check_faults(&self) -> Result<(), Complaint> {
        for fault in &self.fault {
            if let Some(gpu) = &fault.gpu {
                self.check_index(gpu)?;
            }
            check_order(fault.from_s.as_ref(), fault.to_s.as_ref())?;
            match (fault.kind.get_ref(), &fault.gpu, &fault.call) {
                (FaultKind::Lost, None, _) => {
                    return Err((fault.kind.span(), "which GPU is lost? add its index, as `gpu = 0`".to_owned()));
                }
                (FaultKind::Lost, _, Some(call)) => {
                    let message = "a lost GPU fails every call; remove `call`, or use kind = \"hang\"".to_owned();
                    return Err((call.span(), message));
                }
                (FaultKind::Hang, None, None) => {
                    let message = "what hangs? add `gpu = 0`, or `call = \"nvmlInit_v2\"`, or both".to_owned();
                    return Err((fault.kind.span(), message));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_index(&self, index: &Spanned<u32>) -> Result<(), Complaint> {
        let (index, span, count) = (*index.get_ref(), index.span(), self.gpu_count());
        if index >= Self::MAX_GPUS {
            return Err((
                span,
                format!("GPU {index} is beyond the last; use an index from 0 to {}", Self::MAX_GPUS - 1),
            ));
        }
        if index >= count {
            let cure = format!("use an index below {count}, or raise `gpus` to at least {}", index + 1);
            return Err((span, format!("there is no GPU {index}: this scenario has {count}; {cure}")));
        }
        Ok(())
    }
}

/// What begins must end later.
fn check_order(from: Option<&Spanned<Seconds>>, to: Option<&Spanned<Seconds>>) -> Result<(), Complaint> {
    let begin = from.map_or(0.0, |from| from.get_ref().0);
    match to.filter(|to| to.get_ref().0 <= begin) {
        Some(to) => Err((to.span(), format!("it ends at {} s, but begins at {begin} s; end it later", to.get_ref().0))),
        None => Ok(()),
    }
}
