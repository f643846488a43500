#!/bin/sh
# Writes the cluster's nodes with GPUs as targets for Prometheus' file_sd_configs. Run it on a
# machine with sinfo, by gpumon-targets.timer or by cron:
#
#     */5 * * * * gpumon /usr/local/lib/gpumon/targets.sh /var/lib/gpumon/targets.json cluster=alps
#
# Arguments after the file are labels of all targets. If Slurm does not answer, the file is not
# changed.
set -eu

# cron sets only a short PATH.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
file=$1
shift
for label; do
    shift
    set -- "$@" --label "$label"
done
nodes=$(timeout 60 "${GPUMON_SINFO:-sinfo}" -N -h -o '%N %G')
printf '%s\n' "$nodes" |
    "${GPUMON_PROGRAM:-gpumon}" fleet targets --slurm-nodes - --port "${GPUMON_PORT:-9123}" --output "$file" "$@"
