//! Options that select the GPUs in a view: `-i` and `--only-visible`.

use std::collections::BTreeSet;

use gpumon_probe::model::Gpu;

use crate::{
    device_id::{self, GpuLookupError},
    visible::VisibilityVariables,
};

/// Options that limit a view to some GPUs.
#[derive(Debug, clap::Args)]
pub(crate) struct ShownGpusArgs {
    /// Show only these GPUs: indexes (3), indexes among the GPUs of a vendor (amd:0), UUIDs or PCI
    /// bus IDs, comma-separated
    #[arg(short = 'i', long = "id", value_name = "GPUS", value_delimiter = ',')]
    ids: Vec<String>,

    /// Show only the GPUs that `CUDA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES`,
    /// `HIP_VISIBLE_DEVICES` or `ZE_AFFINITY_MASK` allow; without these variables, all
    #[arg(long)]
    only_visible: bool,
}

impl ShownGpusArgs {
    /// Returns the first of these options that the user typed.
    pub(crate) fn find_typed_option(&self) -> Option<&'static str> {
        if self.ids.is_empty() {
            self.only_visible.then_some("--only-visible")
        } else {
            Some("-i")
        }
    }
}

/// The GPUs to which a view is limited; by default, all GPUs.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShownGpus {
    names: Vec<String>,
    visible: Option<VisibilityVariables>,
}

impl From<&ShownGpusArgs> for ShownGpus {
    fn from(args: &ShownGpusArgs) -> Self {
        Self {
            names: args.ids.clone(),
            visible: args
                .only_visible
                .then(VisibilityVariables::from_environment)
                .flatten(),
        }
    }
}

impl ShownGpus {
    /// Returns the indices of the selected GPUs, or `None` if all GPUs are shown.
    ///
    /// # Errors
    /// Returns an error if a name matches no GPU, or if a number in a variable may match more than
    /// one GPU.
    pub(crate) fn find_indices(
        &self,
        gpus: &[Gpu],
    ) -> Result<Option<BTreeSet<u32>>, GpuLookupError> {
        let named = if self.names.is_empty() {
            None
        } else {
            let find = |name: &String| device_id::find_device(name.trim(), gpus);
            let found = self.names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
            Some(found.into_iter().flatten().map(|id| id.gpu).collect())
        };
        let Some(visible) = &self.visible else {
            return Ok(named);
        };
        let allowed = visible
            .list_allowed_devices(gpus)
            .map_err(GpuLookupError::new_ambiguous)?
            .into_iter()
            .map(|id| id.gpu);
        let is_named = |gpu: &u32| named.as_ref().is_none_or(|named| named.contains(gpu));
        let shown: BTreeSet<u32> = allowed.filter(is_named).collect();
        // A GPU that has not yet reported its UUID may match one of the names later.
        let may_be_unread = gpus.iter().any(|gpu| gpu.uuid.is_none());
        if shown.is_empty() && !may_be_unread {
            return Err(GpuLookupError::new(if named.is_some() {
                format!("none of the GPUs selected with -i is visible: {visible}")
            } else {
                format!("no GPU is visible: {visible}")
            }));
        }
        Ok(Some(shown))
    }

    /// Returns `true` if some GPUs may be hidden.
    pub(crate) fn is_limited(&self) -> bool {
        !self.names.is_empty() || self.visible.is_some()
    }

    #[cfg(test)]
    pub(crate) fn with_names(names: &[&str]) -> Self {
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            visible: None,
        }
    }
}
