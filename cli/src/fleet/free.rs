//! The search for nodes with a number of free GPUs that have enough memory.

use std::collections::BTreeMap;

use gpumon_fleet::{
    Rows,
    model::{GpuState, MEMORY_TOTAL},
};
use serde::Serialize;

/// The fraction of the requested memory that suffices. A board with 80 GiB reports a little less,
/// because the memory reserved by firmware is not counted.
const TOLERANCE: f64 = 0.97;

const GIB: f64 = (1u64 << 30) as f64;

/// The requested GPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedGpus {
    pub(crate) gpus: u32,
    /// The total memory of each GPU, or 0 for any.
    pub(crate) memory_bytes: u64,
}

/// The free GPUs of one kind on a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FreeNode {
    pub(crate) node: String,
    pub(crate) model: Option<String>,
    /// The memory of each GPU.
    pub(crate) memory_bytes: Option<f64>,
    /// The indexes of the free GPUs. The list is empty if the fleet lists only nodes.
    pub(crate) indexes: Vec<u32>,
    pub(crate) free: u32,
    /// The number of GPUs on the node.
    pub(crate) gpus: u32,
}

/// Returns the nodes that have enough free GPUs, those with the fewest first, so that wholly free
/// nodes remain for larger requests.
pub(crate) fn free_nodes(
    rows: &Rows<'_>,
    wanted: WantedGpus,
    shown: Option<&[bool]>,
) -> Vec<FreeNode> {
    let mut kinds: BTreeMap<(usize, Option<&str>, u64), FreeNode> = BTreeMap::new();
    for row in rows.select(shown) {
        let memory = rows
            .value(MEMORY_TOTAL, row)
            .map(|total| total / f64::from(rows.count_gpus(row).max(1)));
        // Unknown memory is enough for a request without a minimum.
        let is_enough = wanted.memory_bytes == 0
            || memory.is_some_and(|memory| memory >= wanted.memory_bytes as f64 * TOLERANCE);
        if rows.state(row) != GpuState::Free || !is_enough {
            continue;
        }
        let key = (
            rows.node_place(row),
            rows.model_name(row),
            memory.map_or(0, |memory| (memory / GIB).round() as u64),
        );
        let kind = kinds.entry(key).or_insert_with(|| FreeNode {
            node: rows.node_name(rows.node_place(row)).to_owned(),
            model: rows.model_name(row).map(ToOwned::to_owned),
            memory_bytes: memory,
            indexes: Vec::new(),
            free: 0,
            gpus: rows
                .fleet
                .nodes
                .gpus
                .get(rows.node_place(row))
                .copied()
                .unwrap_or_default(),
        });
        kind.free += rows.count_gpus(row);
        kind.indexes
            .extend(rows.is_by_gpu().then(|| rows.fleet.gpus.index[row]));
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
    use crate::fleet::testing::{Example, busy, fleet};

    #[test]
    fn the_tightest_fit_is_first_and_a_board_of_80_gib_counts_as_one() {
        let free = Example {
            processes: Some(0),
            ..Example::default()
        };
        let small = Example {
            model: "NVIDIA L4",
            total_gib: 22.5,
            ..free.clone()
        };
        let fleet = fleet(&[
            ("whole", &vec![free.clone(); 8]),
            (
                "half",
                &[vec![free.clone(); 4], vec![busy("ana", 90.0); 4]].concat(),
            ),
            ("mixed", &[vec![free.clone(); 3], vec![small; 4]].concat()),
            ("away", &[]),
        ]);
        let rows = Rows::new(&fleet);
        let find = |gpus, gib: u64| {
            let found = free_nodes(
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
        let first = &free_nodes(
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
