//! Checks which NVML call provides each field about memory errors. Every counter of the driver has
//! a different value.

use std::fmt::Write as _;

use crate::support::{FakeNvml, stdout_text};

/// Returns a scenario in which `nvmlDeviceGetTotalEccErrors` returns 101 to 104, and
/// `nvmlDeviceGetSramEccErrorStatus` returns 2001 to 2011. `nvmlDeviceGetMemoryErrorCounter`
/// returns 1000 plus digits for kind, counter and location.
fn counters_scenario() -> String {
    let mut scenario =
        String::from("[[gpu]]\nindex = 0\n[gpu.answers]\nnvmlDeviceGetEccMode = [1, 0]\n");
    for (kind, counter) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let total = 101 + 2 * kind + counter;
        writeln!(
            scenario,
            "\"nvmlDeviceGetTotalEccErrors({kind}, {counter})\" = {total}"
        )
        .unwrap();
        for location in 0..8 {
            let call = format!("nvmlDeviceGetMemoryErrorCounter({kind}, {counter}, {location})");
            writeln!(scenario, "\"{call}\" = 1{kind}{counter}{location}").unwrap();
        }
    }
    let sram: Vec<_> = (2001..=2011).map(|count| count.to_string()).collect();
    writeln!(
        scenario,
        "nvmlDeviceGetSramEccErrorStatus = [{}, 1]",
        sram.join(", ")
    )
    .unwrap();
    scenario + "nvmlDeviceGetRepairStatus = [1, 0]\nnvmlDeviceGetUnrepairableMemoryFlag_v1 = 1\n"
}

const QUERY_FIELDS: [(&str, &str); 48] = [
    ("ecc.mode.current", "Enabled"),
    ("ecc.mode.pending", "Disabled"),
    ("ecc.errors.corrected.volatile.device_memory", "1002"),
    ("ecc.errors.corrected.volatile.dram", "1002"),
    ("ecc.errors.corrected.volatile.register_file", "1003"),
    ("ecc.errors.corrected.volatile.l1_cache", "1000"),
    ("ecc.errors.corrected.volatile.l2_cache", "1001"),
    ("ecc.errors.corrected.volatile.texture_memory", "1004"),
    ("ecc.errors.corrected.volatile.cbu", "1006"),
    ("ecc.errors.corrected.volatile.sram", "1007"),
    ("ecc.errors.corrected.volatile.total", "101"),
    ("ecc.errors.corrected.aggregate.device_memory", "1012"),
    ("ecc.errors.corrected.aggregate.dram", "1012"),
    ("ecc.errors.corrected.aggregate.register_file", "1013"),
    ("ecc.errors.corrected.aggregate.l1_cache", "1010"),
    ("ecc.errors.corrected.aggregate.l2_cache", "1011"),
    ("ecc.errors.corrected.aggregate.texture_memory", "1014"),
    ("ecc.errors.corrected.aggregate.cbu", "1016"),
    ("ecc.errors.corrected.aggregate.sram", "1017"),
    ("ecc.errors.corrected.aggregate.total", "102"),
    ("ecc.errors.uncorrected.volatile.device_memory", "1102"),
    ("ecc.errors.uncorrected.volatile.dram", "1102"),
    ("ecc.errors.uncorrected.volatile.register_file", "1103"),
    ("ecc.errors.uncorrected.volatile.l1_cache", "1100"),
    ("ecc.errors.uncorrected.volatile.l2_cache", "1101"),
    ("ecc.errors.uncorrected.volatile.texture_memory", "1104"),
    ("ecc.errors.uncorrected.volatile.cbu", "1106"),
    ("ecc.errors.uncorrected.volatile.sram", "1107"),
    ("ecc.errors.uncorrected.volatile.total", "103"),
    ("ecc.errors.uncorrected.aggregate.device_memory", "1112"),
    ("ecc.errors.uncorrected.aggregate.dram", "1112"),
    ("ecc.errors.uncorrected.aggregate.register_file", "1113"),
    ("ecc.errors.uncorrected.aggregate.l1_cache", "1110"),
    ("ecc.errors.uncorrected.aggregate.l2_cache", "1111"),
    ("ecc.errors.uncorrected.aggregate.texture_memory", "1114"),
    ("ecc.errors.uncorrected.aggregate.cbu", "1116"),
    ("ecc.errors.uncorrected.aggregate.sram", "1117"),
    ("ecc.errors.uncorrected.aggregate.total", "104"),
    ("ecc.errors.uncorrected.volatile.sram.parity", "2004"),
    ("ecc.errors.uncorrected.volatile.sram.secded", "2005"),
    ("ecc.errors.uncorrected.aggregate.sram.parity", "2004"),
    ("ecc.errors.uncorrected.aggregate.sram.secded", "2004"),
    (
        "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
        "Yes",
    ),
    ("ecc.errors.uncorrected.aggregate.sram.l2", "2007"),
    ("ecc.errors.uncorrected.aggregate.sram.sm", "2008"),
    ("ecc.errors.uncorrected.aggregate.sram.mcu", "2010"),
    ("ecc.errors.uncorrected.aggregate.sram.pcie", "2009"),
    ("ecc.errors.uncorrected.aggregate.sram.other", "2011"),
];

const EXPECTED_LOG: &str = "\
    ECC Mode
        Current                                        : Enabled
        Pending                                        : Disabled
    ECC Errors
        Volatile
            SRAM Correctable                           : 2006
            SRAM Uncorrectable Parity                  : 2004
            SRAM Uncorrectable SEC-DED                 : 2005
            DRAM Correctable                           : 1002
            DRAM Uncorrectable                         : 1102
        Aggregate
            SRAM Correctable                           : 2003
            SRAM Uncorrectable Parity                  : 2001
            SRAM Uncorrectable SEC-DED                 : 2002
            DRAM Correctable                           : 1012
            DRAM Uncorrectable                         : 1112
            SRAM Threshold Exceeded                    : Yes
        Aggregate Uncorrectable SRAM Sources
            SRAM L2                                    : 2007
            SRAM SM                                    : 2008
            SRAM Microcontroller                       : 2010
            SRAM PCIE                                  : 2009
            SRAM Other                                 : 2011
        Channel Repair Pending                         : Yes
        TPC Repair Pending                             : No
        Unrepairable Memory                            : Yes
";

const EXPECTED_XML: [(&str, &str); 20] = [
    ("current_ecc", "Enabled"),
    ("pending_ecc", "Disabled"),
    ("sram_correctable", "2006"),
    ("sram_uncorrectable_parity", "2004"),
    ("sram_uncorrectable_secded", "2005"),
    ("dram_correctable", "1002"),
    ("dram_uncorrectable", "1102"),
    ("sram_correctable", "2003"),
    ("sram_uncorrectable_parity", "2001"),
    ("sram_uncorrectable_secded", "2002"),
    ("dram_correctable", "1012"),
    ("dram_uncorrectable", "1112"),
    ("sram_threshold_exceeded", "Yes"),
    ("sram_l2", "2007"),
    ("sram_sm", "2008"),
    ("sram_microcontroller", "2010"),
    ("sram_pcie", "2009"),
    ("sram_other", "2011"),
    ("channel_repair_pending", "Yes"),
    ("tpc_repair_pending", "No"),
];

#[test]
fn each_ecc_field_comes_from_its_own_counter() {
    let fake = FakeNvml::new(&counters_scenario());
    let run = |arguments: &[&str]| {
        stdout_text(
            &fake
                .gpumon_command(&[&["smi"], arguments].concat())
                .output()
                .unwrap(),
        )
    };
    let names: Vec<_> = QUERY_FIELDS.iter().map(|(name, _)| *name).collect();
    let query = format!("--query-gpu={}", names.join(","));
    let printed = run(&[&query, "--format=csv,noheader"]);
    let printed: Vec<_> = names
        .iter()
        .copied()
        .zip(printed.trim_end().split(", "))
        .collect();
    assert_eq!(printed, QUERY_FIELDS);
    let log = run(&["-q", "-d", "ECC"]);
    assert!(log.contains(EXPECTED_LOG), "{log}");
    let document = run(&["-q", "-x"]);
    let elements = document
        .lines()
        .filter_map(|line| line.trim().strip_prefix('<')?.split_once('>'));
    let elements: Vec<_> = elements
        .skip_while(|(name, _)| *name != "current_ecc")
        .filter_map(|(name, rest)| Some((name, rest.strip_suffix(&format!("</{name}>"))?)))
        .take(EXPECTED_XML.len())
        .collect();
    assert_eq!(elements, EXPECTED_XML);
    let table = run(&[]);
    assert!(
        table.contains("|                  103 |"),
        "the table contains all volatile uncorrected errors: {table}"
    );
}
