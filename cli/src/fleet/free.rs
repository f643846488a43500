//! Search for nodes with enough free GPUs that have enough memory.

use std::collections::BTreeMap;

use gpumon_fleet::{
    Rows,
    model::{GpuState, MEMORY_TOTAL},
};
use serde::Serialize;

/// The fraction of the requested memory that is sufficient. A board with 80 GiB reports slightly
/// less, because memory reserved by firmware is not counted.
const SUFFICIENT_FRACTION: f64 = 0.97;

const GIB: f64 = (1u64 << 30) as f64;

/// A request for a number of free GPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedGpus {
    pub(crate) gpus: u32,
    /// The minimum total memory of each GPU in bytes; 0 accepts any GPU.
    pub(crate) memory_bytes: u64,
}

/// The free GPUs of one kind on a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FreeNode {
    pub(crate) node: String,
    pub(crate) model: Option<String>,
    /// The total memory of each GPU in bytes.
    pub(crate) memory_bytes: Option<f64>,
    /// The indices of the free GPUs. The list is empty if the fleet's data has only nodes.
    pub(crate) indexes: Vec<u32>,
    pub(crate) free: u32,
    /// The total number of GPUs on the node, including GPUs that are not free.
    pub(crate) gpus: u32,
}

/// Returns the nodes that have enough free GPUs. Nodes with the fewest free GPUs come first, so
/// that completely free nodes remain for larger requests.
pub(crate) fn find_free_nodes(
    rows: &Rows<'_>,
    wanted: WantedGpus,
    shown: Option<&[bool]>,
) -> Vec<FreeNode> {
    let mut kinds: BTreeMap<(usize, Option<&str>, u64), FreeNode> = BTreeMap::new();
    for row in rows.select_rows(shown) {
        let memory = rows
            .value(MEMORY_TOTAL, row)
            .map(|total| total / f64::from(rows.count_gpus(row).max(1)));
        // If no minimum memory is requested, GPUs with unknown memory are accepted.
        let is_enough = wanted.memory_bytes == 0
            || memory
                .is_some_and(|memory| memory >= wanted.memory_bytes as f64 * SUFFICIENT_FRACTION);
        if rows.state(row) != GpuState::Free || !is_enough {
            continue;
        }
        let key = (
            rows.node_position(row),
            rows.model_name(row),
            memory.map_or(0, |memory| (memory / GIB).round() as u64),
        );
        let kind = kinds.entry(key).or_insert_with(|| FreeNode {
            node: rows.node_name(rows.node_position(row)).to_owned(),
            model: rows.model_name(row).map(ToOwned::to_owned),
            memory_bytes: memory,
            indexes: Vec::new(),
            free: 0,
            gpus: rows
                .fleet
                .nodes
                .gpus
                .get(rows.node_position(row))
                .copied()
                .unwrap_or_default(),
        });
        kind.free += rows.count_gpus(row);
        kind.indexes
            .extend(rows.lists_gpus().then(|| rows.fleet.gpus.index[row]));
    }
    let mut found: Vec<_> = kinds
        .into_iter()
        .filter(|(_, kind)| kind.free >= wanted.gpus)
        .collect();
    found.sort_by(|((a, ..), x), ((b, ..), y)| {
        let memory = |kind: &FreeNode| kind.memory_bytes.unwrap_or(0.0);
        x.free
            .cmp(&y.free)
            .then(memory(x).total_cmp(&memory(y)))
            .then(a.cmp(b))
    });
    found.into_iter().map(|(_, kind)| kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::testing::{ExampleGpu, build_fleet, make_busy_gpu};

    #[test]
    fn tightest_fit_is_first_despite_reserved_memory() {
        let free = ExampleGpu {
            processes: Some(0),
            ..ExampleGpu::default()
        };
        let small = ExampleGpu {
            model: "NVIDIA L4",
            total_gib: 22.5,
            ..free.clone()
        };
        let fleet = build_fleet(&[
            ("whole", &vec![free.clone(); 8]),
            (
                "half",
                &[vec![free.clone(); 4], vec![make_busy_gpu("ana", 90.0); 4]].concat(),
            ),
            ("mixed", &[vec![free.clone(); 3], vec![small; 4]].concat()),
            ("away", &[]),
        ]);
        let rows = Rows::new(&fleet);
        let find = |gpus, gib: u64| {
            let found = find_free_nodes(
                &rows,
                WantedGpus {
                    gpus,
                    memory_bytes: gib << 30,
                },
                None,
            );
            found
                .into_iter()
                .map(|kind| (kind.node, kind.free))
                .collect::<Vec<_>>()
        };
        let some = |all: &[(&str, u32)]| {
            all.iter()
                .map(|(node, free)| ((*node).to_owned(), *free))
                .collect::<Vec<_>>()
        };
        assert_eq!(find(4, 80), some(&[("half", 4), ("whole", 8)]));
        assert_eq!(find(4, 0), some(&[("mixed", 4), ("half", 4), ("whole", 8)]));
        assert_eq!(find(3, 80)[0].0, "mixed");
        assert_eq!(
            (find(8, 80).len(), find(9, 0).len(), find(1, 90).len()),
            (1, 0, 0)
        );
        let first = &find_free_nodes(
            &rows,
            WantedGpus {
                gpus: 4,
                memory_bytes: 0,
            },
            None,
        )[0];
        assert_eq!(
            (&first.indexes[..], first.gpus, first.model.as_deref()),
            (&[3, 4, 5, 6][..], 7, Some("NVIDIA L4"))
        );
    }
}
