//! The links between GPUs.

#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

use super::{
    backend::Backend,
    cached::{and_then, whole},
    error::absence,
    lanes,
    to_model::remote,
};
use crate::{
    model::{Absence, GpuLink, NvLinkRemote, PciPath, Reading},
    vendor::nvml::query::{Query as Q, Subject},
};

/// The values of `NVML_P2P_CAPS_INDEX_NVLINK` and `NVML_P2P_STATUS_OK`.
const NVLINK: u32 = 2;
const OK: i128 = 0;

pub(super) fn read(answers: &dyn Backend, gpus: &[u32]) -> Vec<GpuLink> {
    let ends: Vec<_> = gpus
        .iter()
        .filter_map(|index| End::read(answers, *index))
        .collect();
    let pairs = ends
        .iter()
        .enumerate()
        .flat_map(|(at, a)| ends.iter().skip(at.saturating_add(1)).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| GpuLink {
            a: a.index,
            b: b.index,
            path: path(answers, a.index, b.index),
            nvlinks: count_nvlinks(answers, a, b),
        })
        .collect()
}

struct End {
    index: u32,
    bus_id: String,
    links: Vec<Link>,
}

struct Link {
    remote: NvLinkRemote,
    bus_id: Option<String>,
}

impl End {
    fn read(answers: &dyn Backend, index: u32) -> Option<Self> {
        let about = |query| answers.ask(Subject::gpu(index), query).ok();
        let number = |query| about(query)?.at(0);
        let text = |query| about(query)?.text().map(ToOwned::to_owned);
        let link = |link| Link {
            remote: number(Q::NvLinkRemoteDeviceType(link))
                .and_then(|kind| u32::try_from(kind).ok())
                .map_or(NvLinkRemote::Unknown, remote),
            bus_id: text(Q::NvLinkRemoteBusId(link)),
        };
        let bus_id = text(Q::BusId)?;
        let active = (0..lanes::MOST_LINKS).filter(|link| number(Q::NvLinkState(*link)) == Some(1));
        Some(Self {
            index,
            bus_id,
            links: active.map(link).collect(),
        })
    }
}

fn ask_between(answers: &dyn Backend, a: u32, query: Q) -> Reading<i128> {
    let answer = answers.ask(Subject::gpu(a), query).map_err(absence);
    and_then(Reading::from(answer), |value| {
        value
            .at(0)
            .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
    })
}

fn path(answers: &dyn Backend, a: u32, b: u32) -> Reading<PciPath> {
    and_then(ask_between(answers, a, Q::CommonAncestor(b)), |level| {
        PciPath::from_level(level).map_or(Reading::Absent(Absence::Unknown), Reading::Now)
    })
}

/// Returns the number of NVLinks between two GPUs. If none is direct, but both GPUs are connected
/// to switches and the driver reports that they reach each other, this is the smaller number of
/// switch links.
fn count_nvlinks(answers: &dyn Backend, a: &End, b: &End) -> Reading<u32> {
    let straight = a
        .links
        .iter()
        .filter(|link| link.bus_id.as_ref() == Some(&b.bus_id))
        .count();
    if straight > 0 {
        return whole(straight as i128);
    }
    let switched = |end: &End| {
        end.links
            .iter()
            .filter(|link| link.remote == NvLinkRemote::Switch)
            .count()
    };
    let fewer = switched(a).min(switched(b));
    if fewer == 0 {
        return Reading::Now(0);
    }
    match ask_between(answers, a.index, Q::P2pStatus(b.index, NVLINK)) {
        Reading::Now(OK) => whole(fewer as i128),
        Reading::Absent(reason) if reason != Absence::NotSupported => Reading::Absent(reason),
        _ => Reading::Now(0),
    }
}
