//! Simulated cards of real products.

use crate::{Card, MetricsTable};

const AMD_VENDOR_ID: u16 = 0x1002;
const INTEL_VENDOR_ID: u16 = 0x8086;

/// Creates an undivided Instinct MI300X at 87% utilization and 640 W.
pub fn make_mi300x(address: &str) -> Card {
    let sensors = [
        ("temp2_label", "junction"),
        ("temp2_input", "58000"),
        ("temp2_emergency", "115000"),
        ("temp3_label", "mem"),
        ("temp3_input", "51000"),
        ("temp3_emergency", "110000"),
        ("power1_label", "PPT"),
        ("power1_input", "640000000"),
        ("power1_cap", "750000000"),
        ("power1_cap_default", "750000000"),
        ("power1_cap_min", "0"),
        ("power1_cap_max", "750000000"),
        ("freq1_label", "sclk"),
        ("freq1_input", "2100000000"),
        ("freq2_label", "mclk"),
        ("freq2_input", "1300000000"),
    ];
    let files = [
        ("class", "0x120000"),
        ("revision", "0x00"),
        ("unique_id", &unique_id(address)),
        ("product_name", "AMD Instinct MI300X OAM"),
        ("product_number", "102-G30211-0C"),
        ("serial_number", &serial_number(address)),
        ("vbios_version", "113-MI3SRIOV-001"),
        ("power/runtime_status", "active"),
        ("power/control", "on"),
        ("gpu_busy_percent", "87"),
        ("mem_busy_percent", "41"),
        ("mem_info_vram_total", "206141652992"),
        ("mem_info_vram_used", "103079215104"),
        ("mem_info_vram_vendor", "samsung"),
        ("mem_info_vis_vram_total", "206141652992"),
        ("mem_info_vis_vram_used", "103079215104"),
        ("mem_info_gtt_total", "540973658112"),
        ("mem_info_gtt_used", "20971520"),
        ("current_compute_partition", "SPX"),
        ("available_compute_partition", "SPX, DPX, QPX, CPX"),
        ("current_memory_partition", "NPS1"),
        ("current_link_speed", "32.0 GT/s PCIe"),
        ("current_link_width", "16"),
        ("max_link_speed", "32.0 GT/s PCIe"),
        ("max_link_width", "16"),
        ("numa_node", "1"),
        ("ras/umc_err_count", "ue: 0\nce: 3\nde: 0"),
        ("ras/gfx_err_count", "ue: 0\nce: 0"),
        ("ras/sdma_err_count", "ue: 0\nce: 0"),
        ("ras/vcn_err_count", "ue: 0\nce: 1"),
        ("xgmi_error", "0"),
    ];
    let card = Card::new("amdgpu", [AMD_VENDOR_ID, 0x74a1], address);
    let card = card.with_files(&files).with_sensors(&sensors);
    card.with_binary_file("gpu_metrics", make_mi300x_metrics().bytes())
}

/// Creates the metrics table of an undivided MI300X in version 1.8.
pub fn make_mi300x_metrics() -> MetricsTable {
    let dies = [91, 83, 88, 86, 90, 85, 87, 86];
    MetricsTable::new(1, 8)
        .with_field("temperature_hotspot", &[58])
        .with_field("temperature_mem", &[51])
        .with_field("temperature_vrsoc", &[46])
        .with_field("curr_socket_power", &[640])
        .with_field("average_gfx_activity", &[87])
        .with_field("average_umc_activity", &[41])
        .with_field("energy_accumulator", &[65_536 * 1_000_000])
        .with_field("accumulation_counter", &[5_000_000])
        .with_field("prochot_residency_acc", &[0])
        .with_field("ppt_residency_acc", &[4000])
        .with_field("socket_thm_residency_acc", &[0])
        .with_field("vr_thm_residency_acc", &[0])
        .with_field("hbm_thm_residency_acc", &[0])
        .with_field("pcie_link_width", &[16])
        .with_field("pcie_link_speed", &[320])
        .with_field("xgmi_link_width", &[16])
        .with_field("xgmi_link_speed", &[32])
        .with_field("gfx_activity_acc", &[4_000_000])
        .with_field("pcie_replay_count_acc", &[2])
        .with_field("xgmi_read_data_acc", &[1 << 30; 7])
        .with_field("xgmi_write_data_acc", &[1 << 31; 7])
        .with_field("xgmi_link_status", &[1; 7])
        .with_field("current_gfxclk", &[2100; 8])
        .with_field("current_socclk", &[1143; 4])
        .with_field("current_vclk0", &[29; 4])
        .with_field("current_uclk", &[1300])
        .with_field("num_partition", &[1])
        .with_partition(0, "gfx_busy_inst", &dies)
}

/// Creates an Instinct MI300X with eight partitions, which share the memory.
pub fn make_mi300x_in_cpx(address: &str) -> Card {
    let dies = [91, 0, 88, 0, 0, 100, 0, 0];
    let table = make_mi300x_metrics().with_field("num_partition", &[8]);
    let table = (0..8).fold(table, |table, number| {
        // The table was made for an undivided package, whose first partition has the values of all
        // dies. These values are removed first.
        let dies = [dies[number], u64::MAX, u64::MAX, u64::MAX];
        table
            .with_partition(number, "gfx_busy_inst", &[u64::MAX; 8])
            .with_partition(number, "gfx_busy_inst", &dies)
    });
    make_mi300x(address)
        .with_files(&[("current_compute_partition", "CPX")])
        .with_binary_file("gpu_metrics", table.bytes())
}

/// Creates a Radeon RX 7900 XTX, which has a monitor, draws 35 W and can be suspended.
pub fn make_radeon(address: &str) -> Card {
    let sensors = [
        ("temp1_label", "edge"),
        ("temp1_input", "45000"),
        ("temp1_crit", "100000"),
        ("temp1_emergency", "105000"),
        ("temp2_label", "junction"),
        ("temp2_input", "52000"),
        ("temp2_crit", "110000"),
        ("temp2_emergency", "115000"),
        ("temp3_label", "mem"),
        ("temp3_input", "54000"),
        ("temp3_crit", "108000"),
        ("temp3_emergency", "113000"),
        ("power1_label", "PPT"),
        ("power1_average", "35000000"),
        ("power1_cap", "339000000"),
        ("power1_cap_default", "339000000"),
        ("power1_cap_max", "390000000"),
        ("power1_cap_min", "0"),
        ("fan1_input", "29"),
        ("fan1_max", "3300"),
        ("pwm1", "0"),
        ("freq1_label", "sclk"),
        ("freq1_input", "1200000000"),
        ("freq2_label", "mclk"),
        ("freq2_input", "96000000"),
        ("in0_label", "vddgfx"),
        ("in0_input", "700"),
    ];
    let files = [
        ("revision", "0xc8"),
        ("unique_id", &unique_id(address)),
        ("vbios_version", "113-D7020100-102"),
        ("power/runtime_status", "active"),
        ("power/control", "auto"),
        ("power/autosuspend_delay_ms", "5000"),
        ("power/runtime_suspended_time", "0"),
        ("gpu_busy_percent", "37"),
        ("mem_busy_percent", "2"),
        ("mem_info_vram_total", "25753026560"),
        ("mem_info_vram_used", "1073741824"),
        ("mem_info_vis_vram_total", "25753026560"),
        ("mem_info_vis_vram_used", "1073741824"),
        ("mem_info_gtt_total", "33554432000"),
        ("mem_info_gtt_used", "52428800"),
        ("pp_dpm_sclk", "0: 500Mhz\n1: 1200Mhz *\n2: 2526Mhz"),
        ("pp_dpm_mclk", "0: 96Mhz *\n1: 456Mhz\n2: 1249Mhz"),
        (
            "pp_dpm_pcie",
            "0: 2.5GT/s, x1 310Mhz\n1: 16.0GT/s, x16 619Mhz *",
        ),
        ("current_link_speed", "32.0 GT/s PCIe"),
        ("current_link_width", "16"),
        ("max_link_speed", "32.0 GT/s PCIe"),
        ("max_link_width", "16"),
        ("pcie_bw", "0 0 256"),
    ];
    let table = MetricsTable::new(1, 3)
        .with_field("temperature_edge", &[45])
        .with_field("temperature_hotspot", &[52])
        .with_field("temperature_mem", &[54])
        .with_field("average_gfx_activity", &[37])
        .with_field("average_umc_activity", &[2])
        .with_field("average_mm_activity", &[11])
        .with_field("average_socket_power", &[35])
        .with_field("energy_accumulator", &[0])
        .with_field("current_gfxclk", &[1200])
        .with_field("current_socclk", &[1100])
        .with_field("current_uclk", &[96])
        .with_field("current_vclk0", &[512])
        .with_field("current_fan_speed", &[29])
        .with_field("pcie_link_width", &[16])
        .with_field("pcie_link_speed", &[160])
        .with_field("indep_throttle_status", &[1 << 36]);
    let card = Card::new("amdgpu", [AMD_VENDOR_ID, 0x744c], address).with_pcie_switch();
    let card = card.with_files(&files).with_sensors(&sensors);
    card.with_binary_file("gpu_metrics", table.bytes())
}

/// Creates the GPU of a Ryzen AI Max (Strix Halo) with 512 MiB of VRAM.
pub fn make_strix_halo(address: &str) -> Card {
    let table = MetricsTable::new(3, 0)
        .with_field("temperature_gfx", &[5100])
        .with_field("temperature_soc", &[4800])
        .with_field("average_gfx_activity", &[64])
        .with_field("average_vcn_activity", &[0])
        .with_field("average_socket_power", &[71_250])
        .with_field("average_gfxclk_frequency", &[2750])
        .with_field("average_socclk_frequency", &[1100])
        .with_field("average_fclk_frequency", &[2000])
        .with_field("average_uclk_frequency", &[1000]);
    make_apu([AMD_VENDOR_ID, 0x1586], address)
        .with_files(&[
            ("gpu_busy_percent", "64"),
            ("mem_info_vram_total", "536870912"),
            ("mem_info_vram_used", "402653184"),
            ("mem_info_gtt_total", "67108864000"),
            ("mem_info_gtt_used", "34359738368"),
        ])
        .with_sensors(&[("power1_input", "71250000")])
        .with_binary_file("gpu_metrics", table.bytes())
}

/// Creates the GPU of a laptop's Ryzen processor (Phoenix) with 4 GiB of VRAM.
pub fn make_phoenix(address: &str) -> Card {
    let table = MetricsTable::new(2, 1)
        .with_field("temperature_gfx", &[4100])
        .with_field("temperature_soc", &[4000])
        .with_field("average_gfx_activity", &[300])
        .with_field("average_socket_power", &[9500])
        .with_field("average_gfxclk_frequency", &[800])
        .with_field("average_socclk_frequency", &[400])
        .with_field("average_uclk_frequency", &[1000])
        .with_field("average_fclk_frequency", &[800]);
    make_apu([AMD_VENDOR_ID, 0x15bf], address)
        .with_files(&[
            ("gpu_busy_percent", "3"),
            ("mem_info_vram_total", "4294967296"),
            ("mem_info_vram_used", "805306368"),
            ("mem_info_gtt_total", "14680064000"),
            ("mem_info_gtt_used", "268435456"),
        ])
        .with_sensors(&[("power1_input", "9500000")])
        .with_binary_file("gpu_metrics", table.bytes())
}

fn make_apu(pci_id: [u16; 2], address: &str) -> Card {
    Card::new("amdgpu", pci_id, address)
        .with_files(&[
            ("class", "0x038000"),
            ("revision", "0xc1"),
            ("power/runtime_status", "active"),
            ("power/control", "on"),
            ("mem_info_gtt_total", "16777216000"),
        ])
        .with_sensors(&[
            ("temp1_label", "edge"),
            ("temp1_input", "50000"),
            ("power1_label", "PPT"),
            ("freq1_label", "sclk"),
            ("freq1_input", "2750000000"),
            ("in0_label", "vddgfx"),
            ("in0_input", "900"),
            ("in1_label", "vddnb"),
            ("in1_input", "700"),
        ])
}

/// Creates an Arc B580 with the `xe` driver.
pub fn make_arc_b580(address: &str) -> Card {
    Card::new("xe", [INTEL_VENDOR_ID, 0xe20b], address)
        .with_files(&[
            ("power/runtime_status", "active"),
            (
                "resource",
                "0x0 0x0 0x0\n0x4000000000 0x42ffffffff 0x14220c",
            ),
            ("tile0/gt0/freq0/act_freq", "2400"),
            ("tile0/gt0/freq0/rp0_freq", "2850"),
            ("tile0/gt0/gtidle/idle_residency_ms", "1000"),
            ("tile0/gt0/freq0/throttle/status", "1"),
            ("tile0/gt0/freq0/throttle/reason_pl1", "1"),
            ("tile0/gt0/freq0/throttle/reason_thermal", "0"),
        ])
        .with_sensors(&[
            ("energy1_label", "card"),
            ("energy1_input", "0"),
            ("energy2_label", "pkg"),
            ("energy2_input", "29523753173"),
            ("temp2_label", "pkg"),
            ("temp2_input", "44000"),
            ("temp2_crit", "100000"),
            ("temp2_emergency", "125000"),
            ("temp3_label", "vram"),
            ("temp3_input", "48000"),
            ("temp3_crit", "105000"),
            ("power1_max", "190000000"),
            ("fan1_input", "1116"),
        ])
}

/// Creates the integrated GPU of a Core processor (Tiger Lake) with the `i915` driver.
pub fn make_tiger_lake() -> Card {
    Card::new("i915", [INTEL_VENDOR_ID, 0x9a49], "0000:00:02.0").with_files(&[
        ("power/runtime_status", "active"),
        ("drm/cardN/gt/gt0/rps_act_freq_mhz", "300"),
        ("drm/cardN/gt/gt0/rps_RP0_freq_mhz", "1350"),
        ("drm/cardN/gt/gt0/rc6_residency_ms", "5000"),
        ("drm/cardN/gt/gt0/throttle_reason_status", "0"),
    ])
}

/// Returns an ID of 16 hexadecimal digits that is unique for the address.
fn unique_id(address: &str) -> String {
    let digits = address.replace([':', '.'], "");
    format!("{digits:a>16}")
}

fn serial_number(address: &str) -> String {
    format!("6921{}", address.replace([':', '.'], ""))
}
