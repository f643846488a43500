//! Shell completions of gpumon's own commands and of nvidia-smi's options.

use std::process::{Command, Output};

use crate::support::{gpumon_command, stderr_text, stdout_text};

/// Each item is the typed text, followed by the proposals in alphabetical order. The cursor is at
/// the end of the text.
const PROPOSALS: &[(&str, &str)] = &[
    ("gpumon wai", "wait"),
    ("gpumon wait --fr", "--free"),
    ("gpumon wait --format u", "uuid"),
    ("gpumon --source nv", "nvml"),
    ("gpumon bench h2d", "h2d-pageable h2d-pinned"),
    ("gpumon bench triad --dtype f", "fp16 fp32 fp64 fp8"),
    ("gpumon bu", "burn"),
    // Commands that only gpumon itself calls are not proposed.
    ("gpumon work", ""),
    ("gpumon dm", "dmon"),
    ("gpumon smi pm", "pmon"),
    ("gpumon --query-g", "--query-gpu"),
    (
        "gpumon smi --query-re",
        "--query-remapped-rows --query-retired-pages",
    ),
    ("gpumon smi -lm", "-lms"),
    (
        "gpumon -q -d MEMORY,PO",
        "MEMORY,POWER MEMORY,POWER_PROFILES MEMORY,POWER_SMOOTHING",
    ),
    (
        "gpumon -q -d POWER,POW",
        "POWER,POWER_PROFILES POWER,POWER_SMOOTHING",
    ),
    (
        "gpumon smi --query-gpu clocks.max.m",
        "clocks.max.mem clocks.max.memory",
    ),
    ("gpumon --query-gpu name,uu", "name,uuid"),
    ("gpumon smi dmon -s puc", "puce pucm puct pucv"),
    (
        "gpumon dmon --gpm-metrics 1,16",
        "1,160 1,161 1,162 1,163 1,164 1,165 1,166 1,167 1,168 1,169",
    ),
    ("gpumon topo -p2p ", "a n p r w"),
    ("gpumon topo -nv", "-nvme"),
    ("gpumon nvlink -gL", "-gLWidth -gLowPwrInfo"),
    ("gpumon nvlink -gt ", "d r"),
    (
        "gpumon --source sim smi --query-supp",
        "--query-supported-clocks",
    ),
    ("gpumon smi --source sim -q -d ECC,AC", "ECC,ACCOUNTING"),
    ("gpumon smi -f /etc/hostn", "/etc/hostname"),
    // Options that gpumon refuses are not proposed.
    ("gpumon smi --power-li", ""),
    ("gpumon nvlink -re", ""),
];

/// Proposals for a value after an equals sign. bash replaces only the value with the proposal, and
/// fish replaces the whole word.
const ATTACHED_PROPOSALS: &[(&str, &str, &str)] = &[
    (
        "gpumon smi --query-gpu=clocks.max.m",
        "--query-gpu=",
        "clocks.max.mem clocks.max.memory",
    ),
    ("gpumon --query-gpu=name,uu", "--query-gpu=", "name,uuid"),
    (
        "gpumon --query-gpu=name --format=csv,noh",
        "--format=",
        "csv,noheader",
    ),
];

fn generate_completion_script(shell: &str) -> String {
    let output = gpumon_command(&["completions", shell]).output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    stdout_text(&output)
}

/// Runs the completion script in a shell, followed by the lines in `appended_lines`. Returns `None`
/// if the shell is not installed.
fn run_shell(
    shell: &str,
    arguments: &[&str],
    appended_lines: &str,
    typed: &[&str],
) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    std::fs::write(
        &path,
        format!("{}\n{appended_lines}\n", generate_completion_script(shell)),
    )
    .unwrap();
    let output = Command::new(shell)
        .args(arguments)
        .arg(&path)
        .args(typed)
        .output()
        .ok()?;
    assert_eq!(stderr_text(&output), "", "{typed:?}");
    assert!(output.status.success(), "{typed:?}");
    Some(output)
}

fn sorted_completions(output: &Output) -> String {
    let text = stdout_text(output);
    let mut words: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    words.sort_unstable();
    words.join(" ")
}

#[test]
fn bash_proposes_valid_words() {
    let call = "COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); function=$(complete -p gpumon | sed \
                's/.*-F \\([^ ]*\\).*/\\1/'); \"$function\" \"$1\" \"${COMP_WORDS[-1]#=}\" \
                \"${COMP_WORDS[-2]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    // Splits a line into words in the same way as bash.
    let parted = |line: &str| {
        line.replace('=', " = ")
            .split(' ')
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let attached = ATTACHED_PROPOSALS
        .iter()
        .map(|(line, _, proposed)| (line, proposed));
    for (line, proposed) in PROPOSALS
        .iter()
        .map(|(line, proposed)| (line, proposed))
        .chain(attached)
    {
        let words = parted(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output =
            run_shell("bash", &["--norc"], call, &words).expect("bash is needed for this test");
        assert_eq!(sorted_completions(&output), *proposed, "{line}");
    }
}

#[test]
fn fish_proposes_valid_words() {
    let attached = ATTACHED_PROPOSALS
        .iter()
        .map(|(line, option, proposed)| (*line, format!("{option}{proposed}")));
    let attached = attached.map(|(line, proposed)| (line, proposed.replace(' ', " --query-gpu=")));
    let all = PROPOSALS
        .iter()
        .map(|(line, proposed)| (*line, (*proposed).to_owned()))
        .chain(attached);
    for (line, proposed) in all {
        let Some(output) = run_shell(
            "fish",
            &["--no-config"],
            "complete --do-complete $argv[1]",
            &[line],
        ) else {
            return;
        };
        assert_eq!(sorted_completions(&output), proposed, "{line}");
    }
}

/// zsh only proposes completions in an interactive shell. So the test directly calls the function
/// that selects them.
#[test]
fn zsh_loads_script_and_selects_completions() {
    let script = generate_completion_script("zsh");
    assert!(script.starts_with("#compdef gpumon\n"), "{script}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    let calls = "_gpumon_smi_face -q -d\n_gpumon_smi_values 'smi -d'\n_gpumon_smi_face \
                 dmon\n_gpumon_smi_face wait -q || echo own\n_gpumon_smi_options topo | head \
                 -1\nwhence -w _gpumon _gpumon_own\n";
    std::fs::write(&path, format!("compdef() {{ }}\n{script}\n{calls}")).unwrap();
    let Ok(output) = Command::new("zsh").arg("-f").arg(&path).output() else {
        return;
    };
    let text = stdout_text(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        (lines[0], lines[2], lines[3]),
        ("smi", "dmon", "own"),
        "{text}{}",
        stderr_text(&output)
    );
    assert!(lines[1].starts_with(", MEMORY UTILIZATION ECC "), "{text}");
    assert!(
        lines[4].starts_with("-m:Matrix of what connects "),
        "{text}"
    );
    assert_eq!(
        lines[5..],
        ["_gpumon: function", "_gpumon_own: function"],
        "{}",
        stderr_text(&output)
    );
}

/// NVIDIA itself provides completions for the command `nvidia-smi`.
#[test]
fn completion_scripts_do_not_register_nvidia_smi() {
    for shell in ["bash", "zsh", "fish"] {
        let script = generate_completion_script(shell);
        let registers = [
            "complete -c nvidia-smi",
            "default nvidia-smi",
            "compdef nvidia-smi",
            "gpumon nvidia-smi",
        ];
        assert!(
            script.contains("--query-gpu") && !registers.iter().any(|line| script.contains(line)),
            "{shell}"
        );
    }
}

#[test]
fn manual_lists_every_option_and_field() {
    let page = stdout_text(&gpumon_command(&["man", "smi"]).output().unwrap());
    let synopsis = "gpumon smi\\fR [\\-\\-source <SOURCE>] [\\-\\-nvml\\-lib <PATH>] \
                    [\\-\\-config <FILE>] [\\-\\-no\\-daemon] [ARGUMENTS]";
    assert!(
        page.contains(synopsis),
        "gpumon's own options are listed first: {page}"
    );
    let help = stdout_text(
        &gpumon_command(&["smi", "--help-query-gpu"])
            .output()
            .unwrap(),
    );
    let names: Vec<&str> = help
        .split("\n\n")
        .filter(|entry| entry.starts_with('"'))
        .filter_map(|entry| entry.split('"').nth(1))
        .collect();
    assert!(names.len() > 190, "{help}");
    let words = names
        .into_iter()
        .chain(["--query-gpu", "-lms", "--gpm-metrics", "ROW_REMAPPER"]);
    for word in words {
        assert!(page.contains(&word.replace('-', "\\-")), "{word}");
    }
}
