#!/bin/sh
# Prolog of slurmd: writes which job has which GPU, for gpumon and jobstats, as /run/gpustat/UUID with "JOB_ID UID".
#
#     slurm.conf: Prolog=/etc/slurm/prolog.d/50-gpumon.sh
#                 PrologFlags=Alloc
#
# It always succeeds: a prolog that fails takes the node out of service, and monitoring is no reason to.

# slurmd gives no search path.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
folder=${GPUMON_SLURM_GPUS:-/run/gpustat}
gpumon=${GPUMON_PROGRAM:-gpumon}

# "MINOR UUID" of each GPU. Slurm counts GPUs by their device files, which is not the order of NVML.
gpus() {
    timeout 10 "$gpumon" smi -q 2>/dev/null | awk -F' *: *' '
        /^ *GPU UUID/ { uuid = $2 }
        /^ *Minor Number/ { print $2, uuid }'
}

# MIG devices are named by UUID there, and have no number of their own.
named=$(printf '%s' "${CUDA_VISIBLE_DEVICES:-}" | tr ',' '\n' | grep -E '^(GPU|MIG)-[0-9A-Za-z/-]+$')
# Numbers, and spans of them as 0-3.
numbers=$(printf '%s\n' "${SLURM_JOB_GPUS:-}" | tr ',' '\n' | awk -F- '
    /^[0-9]+$/ { print }
    /^[0-9]+-[0-9]+$/ { for (at = $1; at <= $2; at++) print at }')
if [ -n "$named" ]; then
    uuids=$named
elif [ -n "$numbers" ]; then
    uuids=$(gpus | awk -v numbers="$numbers" '
        BEGIN { count = split(numbers, list, "\n"); for (at = 1; at <= count; at++) wanted[list[at]] = 1 }
        $1 in wanted { print $2 }')
else
    exit 0
fi
[ -n "$uuids" ] || logger -t gpumon "prolog: no UUIDs of GPUs ${SLURM_JOB_GPUS:-} of job ${SLURM_JOB_ID:-}: see 'gpumon doctor'"

umask 022
mkdir -p "$folder" || exit 0
for uuid in $uuids; do
    # Never half a line. The name of a MIG device of old drivers has slashes: such are left out.
    case $uuid in */*) continue ;; esac
    echo "${SLURM_JOB_ID:-} ${SLURM_JOB_UID:-}" >"$folder/.$uuid" && mv -f "$folder/.$uuid" "$folder/$uuid"
done
exit 0
