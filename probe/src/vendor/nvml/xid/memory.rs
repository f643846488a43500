//! Xids of memory: errors that were corrected or not, and what is done about bad cells.

use super::{Entry, broken, fault};
use crate::model::Severity::{Critical, Notice, Warning};

pub(super) const TABLE: &[Entry] = &[
    fault(
        &[26],
        Warning,
        "Device memory did not answer in time.",
        "Test the GPU's memory; if the error stays, the board is faulty.",
    ),
    broken(
        &[48],
        "A memory error could not be corrected, and what was computed with it is wrong.",
        "End what runs there, then reset the GPU; if it comes back, run NVIDIA's field diagnostics.",
    ),
    broken(
        &[57],
        "The link to device memory could not be set up.",
        "Reboot the machine; if it comes back, the board is faulty.",
    ),
    broken(
        &[58],
        "The link to device memory is unstable.",
        "Undo any overclocking and check cooling, then reset the GPU; if it comes back, the board is faulty.",
    ),
    fault(
        &[63],
        Notice,
        "A bad place in device memory was found, and a spare one will stand in for it.",
        "Reset the GPU when it suits, so that the spare one is used.",
    ),
    broken(
        &[64],
        "A bad place in device memory was found, and could not be replaced.",
        "End what runs there, then reset the GPU; if it comes back, have the board replaced.",
    ),
    fault(
        &[92],
        Warning,
        "Corrected memory errors come very often.",
        "Run NVIDIA's field diagnostics when it suits; the board may fail before long.",
    ),
    fault(
        &[93],
        Notice,
        "The board's own record could not be written, since its limit of writes was reached.",
        "Clear the limit with `nvflash --elsessionclear`; if that does not help, ask the vendor.",
    ),
    fault(
        &[94],
        Critical,
        "A memory error could not be corrected; it hit one program, which was ended, and no other.",
        "Start that program again, and reset the GPU when it suits.",
    ),
    broken(
        &[95],
        "A memory error could not be corrected, and may have reached every program on the GPU.",
        "End all programs on the GPU, since their results may be wrong, and reset it.",
    ),
    fault(
        &[125],
        Warning,
        "The board's own record (InfoROM) is damaged.",
        "Ask the vendor; the GPU computes, but no longer keeps count of its errors.",
    ),
    broken(
        &[140],
        "A memory error could not be corrected, nor its place be taken out of use.",
        "End what runs there, then reset the GPU; if it comes back, have the board replaced.",
    ),
    broken(
        &[156],
        "A faulty part of the GPU was found, and will be taken out of use.",
        "End what runs there, then reset the GPU, so that the part is left out.",
    ),
    fault(
        &[157],
        Warning,
        "A faulty part of the GPU was found, and there is no spare one left.",
        "Work may go on, but the error may come back; have the board replaced when it suits.",
    ),
    fault(&[160], Notice, "A faulty channel of the GPU will be taken out of use.", "Reset the GPU when it suits."),
    fault(
        &[161],
        Warning,
        "A faulty channel of the GPU could not be taken out of use.",
        "Reset the GPU when it suits; if it comes back, have the board replaced.",
    ),
    fault(
        &[168],
        Warning,
        "The driver gave up a part of device memory that it keeps for itself, since it has errors.",
        "Turn error correction on (`nvidia-smi -e 1`) and reboot, so that bad rows are replaced.",
    ),
    broken(
        &[171],
        "An error in device memory could not be corrected.",
        "End what runs there, then reset the GPU; if it comes back, run NVIDIA's field diagnostics.",
    ),
    broken(
        &[172],
        "An error in the memory on the chip could not be corrected.",
        "End what runs there, then reset the GPU; if it comes back, run NVIDIA's field diagnostics.",
    ),
];
