//! The text of `nvlink -h`.

/// The explanation, and how it is typed.
pub(super) const HELP: &str = "
    nvlink -- Shows the NVLinks of each GPU.

    Usage: nvidia-smi nvlink [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.
    [-l | --link]: Tell of the link of this number alone, instead of all.
    [-s | --status]: Which links are up, and how fast they are.
    [-c | --capabilities]: What each link can do.
    [-p | --pcibusid]: The PCI bus ID of the device at the other end of a link.
    [-R | --remotelinkinfo]: The same, and the number that the link has there.
    [-sc | --setcontrol]: Deprecated; sets nothing any more.
    [-gc | --getcontrol]: Deprecated; shows nothing any more.
    [-g | --getcounters]: Deprecated; shows nothing any more.
       -gt/--getthroughput takes its place.
    [-r | --resetcounters]: Deprecated; resets nothing any more.
    [-e | --errorcounters]: How many errors each link has had.
    [-ec | --crcerrorcounters]: How many errors each lane of a link has had.
    [-re | --reseterrorcounters]: Sets the counters of errors to zero; left to NVIDIA's tool.
    [-gt | --getthroughput]: How much each link has carried, counted in one of two ways:
          d: the data alone, out and in, in KiB
          r: the data and what the protocol adds, out and in, in KiB
    [-sLowPwrThres | --setLowPowerThreshold]: Sets how long a link is idle before it saves power; left to NVIDIA's tool
       -gLowPwrInfo shows range and unit
    [-gLowPwrInfo | --getLowPowerInfo]: Which links save power, and after how long
    [-sBwMode | --setBandwidthMode]: Sets the bandwidth mode; left to NVIDIA's tool
    [-gBwMode | --getBandwidthMode]: The bandwidth mode of the machine
    [-cBridge | --checkBridge]: Whether a bridge is plugged in
    [-sLWidth | --setLinkWidth]: Sets the width of links; left to NVIDIA's tool
       values: which widths there are
    [-gLWidth | --getLinkWidth]: The width of links
    [-info | --info]: Encryption and firmware of a GPU's links


";
