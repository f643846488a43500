//! The links between pairs of GPUs.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

use super::{
    backend::Backend,
    error::to_absence,
    query::{Query as Q, Subject},
    schedule,
    to_model::{and_then, convert_integer, to_remote_kind},
};
use crate::model::{Absence, GpuLink, NvLinkRemote, PciPath, Reading};

/// The value of `NVML_P2P_CAPS_INDEX_NVLINK`. `P2P_OK` is the value of `NVML_P2P_STATUS_OK`.
const P2P_NVLINK: u32 = 2;
const P2P_OK: i128 = 0;

pub(super) fn read(answers: &dyn Backend, gpus: &[u32]) -> Vec<GpuLink> {
    let ends: Vec<_> = gpus
        .iter()
        .filter_map(|index| LinkedGpu::read(answers, *index))
        .collect();
    let pairs = ends
        .iter()
        .enumerate()
        .flat_map(|(at, a)| ends.iter().skip(at.saturating_add(1)).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| GpuLink {
            a: a.index,
            b: b.index,
            path: read_path(answers, a.index, b.index),
            nvlinks: count_nvlinks(answers, a, b),
        })
        .collect()
}

struct LinkedGpu {
    index: u32,
    bus_id: String,
    links: Vec<GpuNvLink>,
}

struct GpuNvLink {
    remote: NvLinkRemote,
    bus_id: Option<String>,
}

impl LinkedGpu {
    fn read(answers: &dyn Backend, index: u32) -> Option<Self> {
        let about = |query| answers.run_query(Subject::from_gpu(index), query).ok();
        let number = |query| about(query)?.number_at(0);
        let text = |query| about(query)?.text().map(ToOwned::to_owned);
        let link = |link| GpuNvLink {
            remote: number(Q::NvLinkRemoteDeviceType(link))
                .and_then(|kind| u32::try_from(kind).ok())
                .map_or(NvLinkRemote::Unknown, to_remote_kind),
            bus_id: text(Q::NvLinkRemoteBusId(link)),
        };
        let bus_id = text(Q::BusId)?;
        let active =
            (0..schedule::MAX_LINKS).filter(|link| number(Q::NvLinkState(*link)) == Some(1));
        Some(Self {
            index,
            bus_id,
            links: active.map(link).collect(),
        })
    }
}

fn query_gpu_pair(answers: &dyn Backend, a: u32, query: Q) -> Reading<i128> {
    let answer = answers
        .run_query(Subject::from_gpu(a), query)
        .map_err(to_absence);
    and_then(Reading::from(answer), |value| {
        value.number_at(0).ok_or(Absence::Unknown).into()
    })
}

fn read_path(answers: &dyn Backend, a: u32, b: u32) -> Reading<PciPath> {
    and_then(query_gpu_pair(answers, a, Q::CommonAncestor(b)), |level| {
        PciPath::from_level(level).ok_or(Absence::Unknown).into()
    })
}

/// Returns the number of `NVLinks` between two GPUs. GPUs without direct links may be connected
/// through switches. If both have links to switches, and the driver reports that they can reach
/// each other, the result is the number of switch links of the GPU that has fewer.
fn count_nvlinks(answers: &dyn Backend, a: &LinkedGpu, b: &LinkedGpu) -> Reading<u32> {
    let straight = a
        .links
        .iter()
        .filter(|link| link.bus_id.as_ref() == Some(&b.bus_id))
        .count();
    if straight > 0 {
        return convert_integer(straight as i128);
    }
    let switched = |end: &LinkedGpu| {
        end.links
            .iter()
            .filter(|link| link.remote == NvLinkRemote::Switch)
            .count()
    };
    let fewer = switched(a).min(switched(b));
    if fewer == 0 {
        return Reading::Now(0);
    }
    match query_gpu_pair(answers, a.index, Q::P2pStatus(b.index, P2P_NVLINK)) {
        Reading::Now(P2P_OK) => convert_integer(fewer as i128),
        Reading::Absent(reason) if reason != Absence::NotSupported => Reading::Absent(reason),
        _ => Reading::Now(0),
    }
}
