//! The PCI Express link. The simulated boards run theirs as fast as they can.

use std::ffi::c_uint;

use super::one_value;

one_value! {
    fn nvmlDeviceGetCurrPcieLinkGeneration(c_uint) = |gpu| Ok(gpu.state().pcie_generation);
    fn nvmlDeviceGetCurrPcieLinkWidth(c_uint) = |gpu| Ok(gpu.state().pcie_width);
    fn nvmlDeviceGetMaxPcieLinkGeneration(c_uint) = |gpu| Ok(gpu.state().pcie_generation);
    fn nvmlDeviceGetMaxPcieLinkWidth(c_uint) = |gpu| Ok(gpu.state().pcie_width);
}
