# The remote command of `gpumon fleet --hosts`. Any POSIX shell runs it as one line, so each command ends in a semicolon,
# and there is no single quote. Words between at signs are replaced.
#
# The script runs gpumon if that is installed in a compatible version, and nvidia-smi otherwise. It ends with its standard
# input, which ends with the connection. Output lines that begin with a hash are written by the script itself.

# Pip and conda install programs in these folders, which are often missing from the PATH of a shell without a login.
PATH="$PATH:$HOME/.local/bin:/usr/local/bin:/opt/conda/bin:$HOME/miniforge3/bin:$HOME/miniconda3/bin";

# All programs below are ended with the connection, even if they hang. There is no input before the script has reported
# which program runs.
exec 3<&0;
{ while read -r l <&3; do :; done; trap "" TERM; kill 0; } &
w=$! ;
v=$(gpumon --version 2>/dev/null </dev/null);
case "$v" in
@VERSIONS@)
  kill "$w";
  echo "#records $v";
  exec gpumon collect --hide-commands --supervised --interval-ms @INTERVAL_MS@;;
esac;

command -v nvidia-smi >/dev/null 2>&1 || { kill "$w"; echo "#missing $v"; exit 127; };

# Only fields that this driver has are queried, because nvidia-smi refuses a query with an unknown field.
h=$(nvidia-smi --help-query-gpu 2>/dev/null </dev/null);
q=;
for f in @FIELDS@; do
  case "$h" in *"\"$f\""*) q="$q${q:+,}$f";; esac;
done;
echo "#csv $(uname -n)";
echo "#fields $q";

# A running nvidia-smi keeps the driver loaded, so that other queries get their answers immediately.
# If a GPU is lost, nvidia-smi ends without printing the other GPUs' values; each GPU is then
# queried separately.
gpus() {
  while :; do
    nvidia-smi --query-gpu="$q" --format=csv,noheader,nounits -l @INTERVAL_S@ 2>&1 </dev/null;
    echo "#ended $?";
    for d in /proc/driver/nvidia/gpus/*; do
      [ -e "$d" ] || continue;
      echo "#gpu ${d##*/}";
      nvidia-smi -i "${d##*/}" --query-gpu="$q" --format=csv,noheader,nounits 2>&1 </dev/null;
    done;
    echo "#asked";
    sleep @INTERVAL_S@;
  done;
};

# The name of a process is the last column, because it may contain anything. Lines of processes have their own prefixes.
processes() {
  while :; do
    a=$(nvidia-smi --query-compute-apps=gpu_uuid,pid,used_gpu_memory,process_name --format=csv,noheader,nounits 2>/dev/null </dev/null);
    s=$?;
    p=$(printf "%s\n" "$a" | cut -d, -f2 | tr -cd "0-9\n" | sort -u | head -n 1000 | paste -sd, -);
    u=$([ -n "$p" ] && ps -o pid= -o user:64= -o etimes= -p "$p" 2>/dev/null);
    printf "%s\n" "$a" | head -n 1000 | sed "s/^/#process /";
    printf "%s\n" "$u" | head -n 1000 | sed "s/^/#user /";
    echo "#processes $s";
    sleep @PROCESSES_S@;
  done;
};

gpus & processes & wait "$w";
