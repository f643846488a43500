//! Xids of the driver, of the GPU's own firmware, and of power.

use super::{Entry, broken, fault};
use crate::model::Severity::{Critical, Notice, Warning};

const UPDATE: &str = "If it comes back, update the driver; if it stays, ask the vendor.";

const RESET: &str = "End what runs there, then reset the GPU; if it comes back, update driver and firmware.";

pub(super) const TABLE: &[Entry] = &[
    fault(&[4, 24, 30], Warning, "Programs that waited for each other on the GPU waited too long.", UPDATE),
    fault(&[9, 12, 66, 67, 111], Warning, "The driver used the GPU wrongly.", UPDATE),
    fault(&[37, 38], Warning, "The firmware that switches between programs reported an error.", UPDATE),
    fault(&[44], Warning, "The GPU failed while it switched between programs.", UPDATE),
    broken(&[46], "The GPU stopped working.", RESET),
    fault(
        &[54],
        Critical,
        "A power cable of the board is not connected.",
        "Shut the machine down and plug in every power connector of the board.",
    ),
    fault(&[33, 59, 61], Warning, "A microcontroller of the GPU reported an error.", UPDATE),
    broken(&[62, 169], "A microcontroller of the GPU has stopped.", RESET),
    broken(&[109], "The GPU did not switch to another program in time.", RESET),
    broken(
        &[110],
        "The GPU's security hardware found a fault.",
        "Switch the machine off and on again, undoing recent changes of hardware; if it comes back, ask the vendor.",
    ),
    broken(
        &[119],
        "The GPU's system processor (GSP) did not answer the driver in time.",
        "End what runs there, then reset the GPU or reboot; if it comes back, update driver and firmware.",
    ),
    broken(
        &[120],
        "The GPU's system processor (GSP) has failed.",
        "End what runs there, then reset the GPU or reboot; if it comes back, update driver and firmware.",
    ),
    fault(
        &[122, 123, 124],
        Warning,
        "The board's flash memory could not be read or written.",
        "Ask the vendor if it comes back; the GPU computes all the same.",
    ),
    broken(
        &[143],
        "The GPU could not be started.",
        "Reset the GPU or reboot; if it comes back, update driver and firmware, then ask the vendor.",
    ),
    broken(
        &[151],
        "The keys of confidential computing could not be renewed.",
        "Restart the virtual machine; if it comes back, reset the GPU.",
    ),
    fault(
        &[154],
        Notice,
        "What the driver asks for before the GPU is used again has changed.",
        "Look at the Xids before this one, and do what the driver's message asks for.",
    ),
    broken(&[158], "The GPU gave up waiting for a part of itself.", RESET),
    fault(&[162], Notice, "The hardware that smooths swings of power works again.", "Nothing needs to be done."),
    fault(
        &[163],
        Notice,
        "The hardware that smooths swings of power has switched itself off.",
        "Check cooling; reload the driver or reset the GPU when it suits, if swings of power matter here.",
    ),
    fault(
        &[164],
        Notice,
        "The hardware that smooths swings of power will soon be worn out.",
        "Find out whether the machine's power supply bears the swings; if not, plan to replace the board.",
    ),
    fault(
        &[165],
        Warning,
        "The hardware that smooths swings of power is worn out.",
        "Find out whether the machine's power supply bears the swings; if not, replace the board.",
    ),
];
