//! Xids of what joins the GPU to others: PCI Express, `NVLink`, the link to a Grace CPU.

use super::{Entry, broken, fault};
use crate::model::Severity::{Notice, Warning};

const LINK: &str = "See `nvidia-smi nvlink -e` and the GPUs at the other ends; follow an Xid 154 beside it, else reset \
                    the GPU if work over NVLink fails.";

pub(super) const TABLE: &[Entry] = &[
    fault(
        &[18],
        Warning,
        "The GPU was forbidden to read main memory by itself.",
        "Reboot the machine; if it comes back, check its firmware settings.",
    ),
    fault(
        &[32],
        Warning,
        "Commands for the GPU were damaged on their way over PCIe.",
        "Start the program again; if it comes back, check seating, risers and the slot.",
    ),
    broken(
        &[74],
        "An NVLink to another GPU or to a switch has failed.",
        "Look at the GPU at the other end too, then reset the GPUs; if it comes back, check bridges and baseboard.",
    ),
    broken(
        &[79],
        "The GPU fell off the PCIe bus.",
        "Check power, heat and seating, then reboot; if it comes back, the board or the slot is faulty.",
    ),
    fault(&[108], Notice, "A request for another GPU's memory over NVLink had no valid address.", LINK),
    fault(
        &[121],
        Notice,
        "Errors on the link to the Grace CPU were corrected.",
        "Nothing needs to be done; a reset of the GPU, when it suits, sets the link up anew.",
    ),
    broken(
        &[136],
        "An NVLink could not be set up.",
        "Reset the GPU; if it comes back, check bridges, cables and baseboard.",
    ),
    fault(&[144, 145, 146, 147, 148, 149], Warning, "The GPU's NVLink hardware reported an error.", LINK),
    broken(
        &[150],
        "The controller of the GPU's NVLinks has failed.",
        "End what runs there, then reset the GPU; if it comes back, ask the vendor.",
    ),
    fault(&[155], Warning, "An NVLink was taken down on purpose, as its software asked for.", LINK),
    fault(
        &[159],
        Warning,
        "A request over the link to the Grace CPU failed.",
        "Reset the GPU if a program uses managed memory there; else look at the Xids beside this one.",
    ),
    fault(
        &[166, 170],
        Warning,
        "An NVLink that should be encrypted was used wrongly, which confidential computing does not allow.",
        "Set up confidential computing anew on all GPUs of the machine; if it comes back, ask the vendor.",
    ),
    broken(
        &[167],
        "The machine did not answer the GPU over PCIe in time.",
        "Look for PCIe errors in the kernel's log, then reboot; if it comes back, check seating and the slot.",
    ),
];
