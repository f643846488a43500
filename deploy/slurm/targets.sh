#!/bin/sh
# Writes the nodes of this cluster that have GPUs as targets for Prometheus' file_sd_configs. Run it where sinfo is, by
# gpumon-targets.timer or by cron:
#
#     */5 * * * * gpumon /usr/local/lib/gpumon/targets.sh /var/lib/gpumon/targets.json cluster=alps
#
# What follows the file are labels of all targets. The file stays as it is where Slurm does not answer.
set -eu

# cron gives no search path.
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
