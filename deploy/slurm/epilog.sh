#!/bin/sh
# Epilog of slurmd: reports how well the job used its GPUs, and removes what the prolog wrote.
#
#     slurm.conf: Epilog=/etc/slurm/epilog.d/50-gpumon.sh
#
# The report is appended to the job's output where Slurm tells its file (SLURM_JOB_STDOUT), and kept as
# $GPUMON_REPORTS/JOB_ID.txt where /etc/default/gpumon-slurm names such a directory. It always succeeds, as the prolog.

PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
defaults=${GPUMON_SLURM_DEFAULTS:-/etc/default/gpumon-slurm}
# shellcheck source=/dev/null
[ -r "$defaults" ] && . "$defaults"
folder=${GPUMON_SLURM_GPUS:-/run/gpustat}
gpumon=${GPUMON_PROGRAM:-gpumon}
job=${SLURM_JOB_ID:-}

# As the job's user: a link of theirs leads root nowhere.
as_user() {
    if [ "$(id -u)" = 0 ] && [ "${SLURM_JOB_UID:-0}" != 0 ]; then
        setpriv --reuid="$SLURM_JOB_UID" --regid="${SLURM_JOB_GID:-$SLURM_JOB_UID}" --clear-groups "$@"
    else
        "$@"
    fi
}

# The file of the job's output, where it is told. Slurm gives its pattern, as slurm-%j.out.
output() {
    printf '%s\n' "${SLURM_JOB_STDOUT:-}" | awk -v job="$job" -v folder="${SLURM_JOB_WORK_DIR:-/}" \
        -v array="${SLURM_ARRAY_JOB_ID:-$job}" -v task="${SLURM_ARRAY_TASK_ID:-}" -v user="${SLURM_JOB_USER:-}" '
        { gsub(/%j/, job); gsub(/%A/, array); gsub(/%a/, task); gsub(/%u/, user) }
        $0 != "" && !/%/ { print(/^\// ? $0 : folder "/" $0) }'
}

# The files of this job, whatever GPUs the environment names now.
files=
for file in "$folder"/GPU-* "$folder"/MIG-*; do
    read -r owner _ 2>/dev/null <"$file" && [ "$owner" = "$job" ] && files="$files $file"
done
[ -n "$job" ] && [ -n "$files" ] || exit 0

if report=$(timeout 20 "$gpumon" job "$job" 2>&1); then
    output=$(output)
    if [ -n "$output" ]; then
        # shellcheck disable=SC2016 # $1 is of the inner shell.
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

# UUIDs have no spaces, and the folder is the administrator's.
# shellcheck disable=SC2086
rm -f $files
exit 0
