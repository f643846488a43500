#!/bin/sh
# Prolog of slurmd: records for gpumon and jobstats which job has which GPU. Each file
# /run/gpustat/UUID contains "JOB_ID UID".
#
#     slurm.conf: Prolog=/etc/slurm/prolog.d/50-gpumon.sh
#                 PrologFlags=Alloc
#
# The script always succeeds, because a failed prolog would take the node out of service.

# slurmd sets no PATH.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
folder=${GPUMON_SLURM_GPUS:-/run/gpustat}
gpumon=${GPUMON_PROGRAM:-gpumon}

# Prints "MINOR UUID" for each GPU. Slurm numbers GPUs by their device files, whose order can differ
# from that of NVML.
gpus() {
    timeout 10 "$gpumon" smi -q 2>/dev/null | awk -F' *: *' '
        /^ *GPU UUID/ { uuid = $2 }
        /^ *Minor Number/ { print $2, uuid }'
}

# CUDA_VISIBLE_DEVICES names MIG devices by UUID, because they have no numbers.
named=$(printf '%s' "${CUDA_VISIBLE_DEVICES:-}" | tr ',' '\n' | grep -E '^(GPU|MIG)-[0-9A-Za-z/-]+$')
# SLURM_JOB_GPUS contains numbers and ranges such as 0-3.
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
[ -n "$uuids" ] || logger -t gpumon "prolog: found no UUIDs for GPUs ${SLURM_JOB_GPUS:-} of job ${SLURM_JOB_ID:-}: run 'gpumon doctor'"

umask 022
mkdir -p "$folder" || exit 0
for uuid in $uuids; do
    # The file is renamed, so that readers never see half a line. UUIDs of MIG devices with slashes,
    # from old drivers, are not file names and are skipped.
    case $uuid in */*) continue ;; esac
    echo "${SLURM_JOB_ID:-} ${SLURM_JOB_UID:-}" >"$folder/.$uuid" && mv -f "$folder/.$uuid" "$folder/$uuid"
done
exit 0
