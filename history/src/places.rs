//! Where the wanted fields stand in their catalogues.

use gpumon_probe::model::fields::{GPU_FIELDS, HOST_FIELDS};

use crate::{
    grid::Whose,
    wanted::{Wanted, places},
};

#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) gpus: Vec<usize>,
    pub(crate) mig_devices: Vec<usize>,
    pub(crate) host: Vec<usize>,
}

impl Places {
    pub(crate) fn of(wanted: &Wanted) -> Self {
        Self {
            gpus: places(GPU_FIELDS, &wanted.metrics),
            mig_devices: places(GPU_FIELDS, &wanted.mig),
            host: places(HOST_FIELDS, &wanted.host),
        }
    }

    pub(crate) fn of_device<'a>(&self, uuid: &'a str, is_mig: bool) -> (Whose<'a>, &[usize]) {
        if is_mig {
            (Whose::Mig(uuid), &self.mig_devices)
        } else {
            (Whose::Gpu(uuid), &self.gpus)
        }
    }
}
