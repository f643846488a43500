//! Tests of queries that can have several rows per GPU.

use Query as Q;

use super::*;

fn two_gpus() -> ScriptedBackend {
    ScriptedBackend::default()
        .with_text(0, Q::Uuid, "GPU-a")
        .with_text(1, Q::Uuid, "GPU-b")
        .with_text(0, Q::Name, "one")
        .with_text(1, Q::Name, "two")
}

#[test]
fn processes_keep_driver_order() {
    let driver = two_gpus()
        .with_numbers(
            0,
            Q::ComputeProcesses,
            &[1538, 1_815_085_056, -1, -1, 1540, 6_007_291_904, -1, -1],
        )
        .with_numbers(1, Q::ComputeProcesses, &[1539, -1, -1, -1])
        .with_system_answer(
            SystemQuery::ProcessName(1538),
            Ok(Value::Text("/usr/bin/python3".to_owned())),
        )
        .with_system_answer(
            SystemQuery::ProcessName(1540),
            Ok(Value::Text("evil\u{1b}]0;\nname".to_owned())),
        )
        .with_system_answer(SystemQuery::ProcessName(1539), Err(Code::NOT_FOUND));
    let fields = "gpu_uuid,pid,process_name,name,used_gpu_memory,used_memory";
    assert_eq!(
        render_query(&driver, &[0, 1], QueryKind::ComputeApps, fields, "csv"),
        "gpu_uuid, pid, process_name, process_name, used_gpu_memory [MiB], used_gpu_memory [MiB]
GPU-a, 1538, /usr/bin/python3, /usr/bin/python3, 1731 MiB, 1731 MiB
GPU-a, 1540, evil ]0; name, evil ]0; name, 5729 MiB, 5729 MiB
GPU-b, 1539, [Not Found], [Not Found], [N/A], [N/A]
"
    );
    assert_eq!(
        render_query(
            &driver,
            &[1],
            QueryKind::ComputeApps,
            "pid,used_memory",
            "csv,noheader,nounits"
        ),
        "1539, [N/A]\n"
    );
}

#[test]
fn missing_processes_leave_only_the_header() {
    let driver = two_gpus()
        .with_numbers(0, Q::ComputeProcesses, &[])
        .with_numbers(1, Q::ComputeProcesses, &[]);
    assert_eq!(
        render_query(&driver, &[0, 1], QueryKind::ComputeApps, "pid,name", "csv"),
        "pid, process_name\n"
    );
    assert_eq!(
        render_query(
            &driver,
            &[0, 1],
            QueryKind::ComputeApps,
            "pid,name",
            "csv,noheader"
        ),
        ""
    );
}

#[test]
fn lost_gpu_row_shows_error_text() {
    let lost = Err(Code::GPU_IS_LOST);
    let driver = two_gpus()
        .with_answer(Subject::from_gpu(0), Q::Uuid, lost.clone())
        .with_answer(Subject::from_gpu(0), Q::ComputeProcesses, lost.clone())
        .with_answer(Subject::from_gpu(0), Q::MemoryInfo, lost)
        .with_numbers(1, Q::ComputeProcesses, &[7, 1 << 20, -1, -1])
        .with_numbers(1, Q::MemoryInfo, &[1 << 34, 0, 1 << 34, 0]);
    assert_eq!(
        render_query(
            &driver,
            &[0, 1],
            QueryKind::ComputeApps,
            "gpu_uuid,pid,used_memory",
            "csv,noheader"
        ),
        "[GPU is lost], [GPU is lost], [GPU is lost]\nGPU-b, 7, 1 MiB\n"
    );
    assert_eq!(
        render_query(
            &driver,
            &[0, 1],
            QueryKind::Gpu,
            "index,uuid,memory.total",
            "csv,noheader"
        ),
        "0, [GPU is lost], [GPU is lost]\n1, GPU-b, 16384 MiB\n"
    );
}

#[test]
fn accounting_has_one_row_per_process() {
    let driver = two_gpus()
        .with_numbers(0, Q::AccountingPids, &[1_906_656, 12, 13])
        .with_numbers(
            0,
            Q::AccountingStats(1_906_656),
            &[55, 8, 5_231_345_664, 14193, 0, 0],
        )
        .with_numbers(0, Q::AccountingStats(13), &[-1, -1, -1, 0, 0, 1])
        .with_answer(
            Subject::from_gpu(0),
            Q::AccountingStats(12),
            Err(Code::NOT_FOUND),
        )
        .with_numbers(1, Q::AccountingPids, &[]);
    assert_eq!(
        render_query(
            &driver,
            &[0, 1],
            QueryKind::AccountedApps,
            "gpu_name,pid,time,gpu_util,mem_util,max_memory_usage",
            "csv"
        ),
        "gpu_name, pid, time [ms], gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB]
one, 1906656, 14193 ms, 55 %, 8 %, 4989 MiB
one, 12, [Not Found], [Not Found], [Not Found], [Not Found]
one, 13, 0 ms, [N/A], [N/A], [N/A]
"
    );
}

#[test]
fn unsupported_retired_pages_have_row_per_cause() {
    let fields = "gpu_uuid,retired_pages.address,retired_pages.timestamp,retired_pages.cause";
    assert_eq!(
        render_query(&two_gpus(), &[0], QueryKind::RetiredPages, fields, "csv"),
        "gpu_uuid, retired_pages.address, retired_pages.timestamp, retired_pages.cause
GPU-a, [N/A], [N/A], Single Bit ECC
GPU-a, [N/A], [N/A], Double Bit ECC
"
    );
}

#[test]
fn retired_pages_have_address_time_and_cause() {
    let driver = two_gpus()
        .with_numbers(
            0,
            Q::RetiredPages(0),
            &[1_543_707_921_000_000, 0x5a1fb, 0, 0xfff],
        )
        .with_numbers(0, Q::RetiredPages(1), &[]);
    let fields = "retired_pages.address,retired_pages.timestamp,retired_pages.cause";
    assert_eq!(
        render_query(
            &driver,
            &[0],
            QueryKind::RetiredPages,
            fields,
            "csv,noheader"
        ),
        "0x000000000005a1fb, Sat Dec  1 23:45:21 2018, Single Bit ECC
0x0000000000000fff, [N/A], Single Bit ECC
"
    );
    assert_eq!(
        render_cells(
            &driver,
            "retired_pages.sbe,retired_pages.dbe,retired_pages.pending"
        ),
        "2, 0, [N/A]"
    );
}

#[test]
fn remapped_rows_query_prints_one_row_per_gpu() {
    let driver = two_gpus()
        .with_numbers(0, Q::RemappedRowsV2, &[1, 2, 3, 4, 1, 0])
        .with_numbers(0, Q::RemappedRows, &[1, 3, 1, 0])
        .with_numbers(0, Q::RowRemapperHistogram, &[3071, 1, 0, 0, 0]);
    let fields = "gpu_name,remapped_rows.sbe,remapped_rows.correctable_inactive,remapped_rows.dbe,\
 remapped_rows.uncorrectable_inactive,remapped_rows.pending,remapped_rows.failure,\
 remapped_rows.histogram.max,remapped_rows.histogram.high";
    assert_eq!(
        render_query(
            &driver,
            &[0, 1],
            QueryKind::RemappedRows,
            fields,
            "csv,noheader"
        ),
        "one, 1, 2, 3, 4, Yes, No, 3071, 1\ntwo, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], \
         [N/A]\n"
    );
}

#[test]
fn older_library_lacks_only_inactive_remapped_row_fields() {
    let driver = two_gpus()
        .with_answer(
            Subject::from_gpu(0),
            Q::RemappedRowsV2,
            Err(Code::FUNCTION_NOT_FOUND),
        )
        .with_numbers(0, Q::RemappedRows, &[5, 6, 0, 0]);
    let fields =
        "remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.correctable_inactive";
    assert_eq!(render_cells(&driver, fields), "5, 6, [Function Not Found]");
}

#[test]
fn supported_clocks_query_prints_row_per_pair() {
    let driver = two_gpus()
        .with_numbers(0, Q::SupportedMemoryClocks, &[3201, 2201])
        .with_numbers(0, Q::SupportedGraphicsClocks(3201), &[1980, 1965])
        .with_numbers(0, Q::SupportedGraphicsClocks(2201), &[1980]);
    assert_eq!(
        render_query(
            &driver,
            &[0, 1],
            QueryKind::SupportedClocks,
            "gpu_uuid,memory,mem,graphics,gr",
            "csv"
        ),
        "gpu_uuid, memory [MHz], memory [MHz], graphics [MHz], graphics [MHz]
GPU-a, 3201 MHz, 3201 MHz, 1980 MHz, 1980 MHz
GPU-a, 3201 MHz, 3201 MHz, 1965 MHz, 1965 MHz
GPU-a, 2201 MHz, 2201 MHz, 1980 MHz, 1980 MHz
GPU-b, [N/A], [N/A], [N/A], [N/A]
"
    );
}
