//! How GPUs are linked.

use nvml_wrapper::{
    Device, Nvml,
    enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus},
    error::NvmlError,
};
use nvml_wrapper_sys::bindings::{
    nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE as HOST_BRIDGE, nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL as INTERNAL,
    nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE as MULTIPLE, nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE as NODE,
    nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE as SINGLE, nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM as SYSTEM,
};

use super::{error::absence, links, raw};
use crate::model::{Absence, GpuLink, NvLinkRemote, PciPath, Reading};

/// Every pair of these GPUs. Those that cannot be opened are left out.
pub(super) fn read(nvml: &'static Nvml, gpus: &[u32]) -> Vec<GpuLink> {
    let opened: Vec<_> = gpus
        .iter()
        .filter_map(|index| {
            let device = nvml.device_by_index(*index).ok()?;
            Some(End { index: *index, links: Link::all(&device), bus_id: device.pci_info().ok()?.bus_id, device })
        })
        .collect();
    let pairs = opened.iter().enumerate().flat_map(|(at, a)| opened[at + 1..].iter().map(move |b| (a, b)));
    pairs
        .map(|(a, b)| GpuLink { a: a.index, b: b.index, path: path(&a.device, &b.device), nvlinks: nvlinks(a, b) })
        .collect()
}

/// One GPU of a pair.
struct End {
    index: u32,
    device: Device<'static>,
    bus_id: String,
    links: Vec<Link>,
}

/// An active `NVLink`.
struct Link {
    remote: NvLinkRemote,
    bus_id: Option<String>,
}

impl Link {
    fn all(device: &Device<'_>) -> Vec<Self> {
        (0..links::MOST)
            .filter(|link| device.link_wrapper_for(*link).is_active().unwrap_or(false))
            .map(|link| Self {
                remote: raw::nvlink_remote(device, link).map_or(NvLinkRemote::Unknown, links::remote),
                bus_id: device.link_wrapper_for(link).remote_pci_info().ok().map(|pci| pci.bus_id),
            })
            .collect()
    }
}

fn path(a: &Device<'_>, b: &Device<'_>) -> Reading<PciPath> {
    match raw::common_ancestor(a, b) {
        Ok(INTERNAL) => Reading::Now(PciPath::Internal),
        Ok(SINGLE) => Reading::Now(PciPath::Single),
        Ok(MULTIPLE) => Reading::Now(PciPath::Multiple),
        Ok(HOST_BRIDGE) => Reading::Now(PciPath::HostBridge),
        Ok(NODE) => Reading::Now(PciPath::Node),
        Ok(SYSTEM) => Reading::Now(PciPath::System),
        Ok(_) => Reading::Absent(Absence::Unknown),
        Err(error) => Reading::Absent(absence(&error)),
    }
}

/// Links that go straight from one to the other; and where both are connected by switches and the driver says that
/// they reach each other, as many as the one with fewer has.
fn nvlinks(a: &End, b: &End) -> Reading<u32> {
    let straight = a.links.iter().filter(|link| link.bus_id.as_ref() == Some(&b.bus_id)).count();
    if straight > 0 {
        return Reading::Now(straight as u32);
    }
    let switched = |end: &End| end.links.iter().filter(|link| link.remote == NvLinkRemote::Switch).count();
    let fewer = switched(a).min(switched(b));
    if fewer == 0 {
        return Reading::Now(0);
    }
    match a.device.p2p_status(&b.device, P2pCapabilitiesIndex::NvLink) {
        Ok(P2pStatus::Ok) => Reading::Now(fewer as u32),
        Ok(_) | Err(NvmlError::NotSupported) => Reading::Now(0),
        Err(error) => Reading::Absent(absence(&error)),
    }
}
