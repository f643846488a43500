//! Partitions of MI300 and later GPUs. Programs use each partition like a separate GPU.

use super::{
    kfd::KfdNode,
    metrics::{Field, Metrics},
};
use crate::model::{
    Absence, Absent, Activity, MemorySample, MigDevice, MigInstance, MigSample, Reading,
};

/// The partitions of a GPU package.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Partitions(Vec<KfdNode>);

impl Partitions {
    /// Returns those of `nodes` that are partitions of the package with this bus ID, or none if the
    /// package is not divided. A container may see only some of the partitions.
    pub(super) fn find(nodes: &[KfdNode], bus_id: &str, is_divided: bool) -> Self {
        let is_own = |node: &&KfdNode| node.bus_id().as_deref() == Some(bus_id);
        let mut own: Vec<_> = nodes.iter().filter(is_own).cloned().collect();
        own.sort_by_key(KfdNode::partition_number);
        let is_part = |node: &KfdNode| node.partition_number() > 0;
        if own.len() < 2 && !is_divided && !own.iter().any(is_part) {
            own.clear();
        }
        Self(own)
    }

    /// Returns the identities of the partitions. `profile` is, for example, `CPX/NPS1`.
    pub(super) fn identities(&self, package: &str, profile: &Reading<String>) -> Vec<MigDevice> {
        let identity = |node: &KfdNode| MigDevice {
            index: node.partition_number(),
            uuid: make_uuid(package, node),
            instance: make_instance(node.partition_number()),
            profile: profile.clone(),
            multiprocessors: node.compute_units().ok_or(Absence::NotSupported).into(),
            copy_engines: Reading::NOT_SUPPORTED,
            decoders: Reading::NOT_SUPPORTED,
            encoders: Reading::NOT_SUPPORTED,
        };
        self.0.iter().map(identity).collect()
    }

    /// Reads the memory and activity of each partition.
    pub(super) fn read_samples(&self, package: &str, metrics: Option<&Metrics>) -> Vec<MigSample> {
        let sample = |node: &KfdNode| MigSample {
            uuid: make_uuid(package, node),
            instance: make_instance(node.partition_number()),
            memory: read_memory(node),
            activity: Reading::Now(Activity {
                graphics_percent: metrics
                    .and_then(|metrics| {
                        mean_activity(metrics, node.partition_number() as usize, self.0.len())
                    })
                    .ok_or(Absence::NotSupported)
                    .into(),
                ..Activity::new_absent(&Absence::NotSupported)
            }),
            allocated_to: Vec::new(),
        };
        self.0.iter().map(sample).collect()
    }

    /// Returns the partition whose node in `/dev/dri` has this minor number.
    pub(super) fn find_by_render_minor(&self, minor: u32) -> Option<MigInstance> {
        self.find_instance(|node| node.render_minor() == Some(minor))
    }

    /// Returns the partition with the KFD ID `gpu_id`.
    pub(super) fn find_by_gpu_id(&self, gpu_id: u32) -> Option<MigInstance> {
        self.find_instance(|node| node.gpu_id == gpu_id)
    }

    fn find_instance(&self, is_wanted: impl Fn(&KfdNode) -> bool) -> Option<MigInstance> {
        let node = self.0.iter().find(|node| is_wanted(node))?;
        Some(make_instance(node.partition_number()))
    }
}

fn make_instance(partition: u32) -> MigInstance {
    MigInstance {
        gpu_instance: partition,
        compute_instance: 0,
    }
}

/// Returns a partition's UUID. It includes the partition number, because all partitions have the
/// unique ID of their package.
fn make_uuid(package: &str, node: &KfdNode) -> String {
    format!("{package}.{}", node.partition_number())
}

fn read_memory(node: &KfdNode) -> MemorySample {
    let (total, used) = node.read_memory();
    let free = match (&total, &used) {
        (Ok(total), Ok(used)) => Ok(total.saturating_sub(*used)),
        _ => Err(Absence::NotSupported),
    };
    MemorySample {
        total_bytes: total.into(),
        used_bytes: used.into(),
        free_bytes: free.into(),
        ..MemorySample::new_absent(&Absence::NotSupported)
    }
}

/// Returns the mean activity of a partition's dies, in percent. Older tables contain one block per
/// partition; newer tables contain a list of all dies.
fn mean_activity(metrics: &Metrics, place: usize, visible: usize) -> Option<f64> {
    let own = if metrics.partition_block_count() > 1 {
        metrics.get_partition(place, Field::DieActivity)
    } else {
        // The number of dies in each partition is calculated from the total number of partitions.
        // The number of visible partitions cannot be used, because a container may see only some of
        // them.
        let partitions = metrics
            .get_raw(Field::Partitions)
            .map_or(visible, |all| all as usize);
        let dies = metrics.get_partition(0, Field::DieActivity);
        let present = dies.iter().flatten().count();
        let each = present.checked_div(partitions).filter(|each| *each > 0)?;
        dies.into_iter()
            .skip(place.checked_mul(each)?)
            .take(each)
            .collect()
    };
    let present: Vec<_> = own.into_iter().flatten().collect();
    let count = u32::try_from(present.len())
        .ok()
        .filter(|count| *count > 0)?;
    Some(present.iter().sum::<f64>() / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::amd::kfd::{self, tests::write_recorded};

    #[test]
    fn recorded_cpx_package_has_four_partitions() {
        let root = tempfile::tempdir().unwrap();
        if !write_recorded(root.path(), "mi308x-cpx-32.txt") {
            return;
        }
        let nodes = kfd::find_nodes(&kfd::find_kfd_folder(root.path()));
        let bus_id = nodes[0].bus_id().unwrap();
        let partitions = Partitions::find(&nodes, &bus_id, false);
        let profile = Reading::Now("CPX/NPS1".to_owned());
        let devices = partitions.identities("GPU-1", &profile);
        let uuids: Vec<_> = devices.iter().map(|device| device.uuid.as_str()).collect();
        assert_eq!(uuids, ["GPU-1.0", "GPU-1.1", "GPU-1.2", "GPU-1.3"]);
        let samples = partitions.read_samples("GPU-1", None);
        let gibibytes = samples
            .iter()
            .map(|own| own.memory.total_bytes.value().unwrap() >> 30);
        assert_eq!(gibibytes.collect::<Vec<_>>(), [48, 48, 48, 47]);
        let minor = nodes[2].render_minor().unwrap();
        assert_eq!(
            partitions.find_by_render_minor(minor),
            Some(make_instance(2))
        );
        assert_eq!(
            partitions.find_by_gpu_id(nodes[3].gpu_id),
            Some(make_instance(3))
        );
        assert_eq!(
            Partitions::find(&nodes, "00000000:01:00.0", true),
            Partitions::default()
        );
    }
}
