#!/bin/sh
# Epilog of slurmd: reports how well the job used its GPUs, and removes the files of the prolog.
#
#     slurm.conf: Epilog=/etc/slurm/epilog.d/50-gpumon.sh
#
# The report is appended to the output file of the job, if Slurm provides its path
# (SLURM_JOB_STDOUT). If /etc/default/gpumon-slurm sets GPUMON_REPORTS to a directory, the report is
# also written to $GPUMON_REPORTS/JOB_ID.txt. Like the prolog, this script always succeeds.

PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
defaults=${GPUMON_SLURM_DEFAULTS:-/etc/default/gpumon-slurm}
# shellcheck source=/dev/null
[ -r "$defaults" ] && . "$defaults"
folder=${GPUMON_SLURM_GPUS:-/run/gpustat}
gpumon=${GPUMON_PROGRAM:-gpumon}
job=${SLURM_JOB_ID:-}

# Runs a command as the user of the job, so that a link of this user cannot redirect root.
as_user() {
    if [ "$(id -u)" = 0 ] && [ "${SLURM_JOB_UID:-0}" != 0 ]; then
        setpriv --reuid="$SLURM_JOB_UID" --regid="${SLURM_JOB_GID:-$SLURM_JOB_UID}" --clear-groups "$@"
    else
        "$@"
    fi
}

# Prints the file of the job's output, if Slurm provides its pattern and all values in it. "filename pattern" in
# sbatch(1) describes the symbols: a number before the letter is the minimum width, and a backslash disables all
# symbols. The batch script writes this file, so the step is "batch", and the node and the task are the first.
output() {
    export SLURM_JOB_STDOUT SLURM_JOB_WORK_DIR SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID SLURM_JOB_NAME SLURM_JOB_USER
    job=$job node=$(uname -n) awk 'BEGIN {
        path = ENVIRON["SLURM_JOB_STDOUT"]
        array = ENVIRON["SLURM_ARRAY_TASK_ID"]
        value["j"] = value["J"] = value["A"] = ENVIRON["job"]
        if (ENVIRON["SLURM_ARRAY_JOB_ID"] != "") value["A"] = ENVIRON["SLURM_ARRAY_JOB_ID"]
        # This is the value of a job that is not an array.
        value["a"] = array == "" ? 4294967294 : array
        value["b"] = value["a"] % 10
        value["n"] = value["t"] = 0
        node = ENVIRON["node"]
        sub(/[.].*/, "", node)
        name["N"] = node
        name["s"] = "batch"
        name["u"] = ENVIRON["SLURM_JOB_USER"]
        name["x"] = ENVIRON["SLURM_JOB_NAME"]

        is_literal = gsub(/\\/, "", path)
        while (!is_literal && match(path, /%([0-9]*[a-zA-Z]|%)/)) {
            symbol = substr(path, RSTART + 1, RLENGTH - 1)
            letter = substr(symbol, length(symbol))
            width = substr(symbol, 1, length(symbol) - 1) + 0
            if (width > 10) width = 10
            if (letter == "%") text = "%"
            else if (letter in value) text = sprintf("%0" width "d", value[letter])
            else if (name[letter] != "") text = name[letter]
            else exit
            out = out substr(path, 1, RSTART - 1) text
            path = substr(path, RSTART + RLENGTH)
        }
        out = out path
        if (out != "") print(out ~ /^\// ? out : ENVIRON["SLURM_JOB_WORK_DIR"] "/" out)
    }'
}

# The files of this job are found by their contents, because the environment of the epilog may name
# other GPUs.
files=
for file in "$folder"/GPU-* "$folder"/MIG-*; do
    read -r owner _ 2>/dev/null <"$file" && [ "$owner" = "$job" ] && files="$files $file"
done
[ -n "$job" ] && [ -n "$files" ] || exit 0

if report=$(timeout 20 "$gpumon" job "$job" 2>&1); then
    output=$(output)
    if [ -n "$output" ]; then
        # shellcheck disable=SC2016 # $1 is expanded by the inner shell.
        printf '\n%s\n' "$report" | as_user timeout 20 sh -c '[ -f "$1" ] && cat >>"$1"' sh "$output" 2>/dev/null
    fi
    if [ -n "${GPUMON_REPORTS:-}" ]; then
        mkdir -p "$GPUMON_REPORTS" &&
            umask 027 &&
            printf '%s\n' "$report" >"$GPUMON_REPORTS/$job.txt" &&
            chown "${SLURM_JOB_UID:-0}" "$GPUMON_REPORTS/$job.txt"
    fi
else
    logger -t gpumon "epilog: no report of job $job: $report" 2>/dev/null
fi

# UUIDs have no spaces, and only the administrator chooses the folder.
# shellcheck disable=SC2086
rm -f $files
exit 0
