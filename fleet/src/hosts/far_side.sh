# Runs on a host of `gpumon fleet --hosts`, by any POSIX shell, as one line: each command ends in a semicolon, and there is
# no single quote. What stands between at signs is filled in.
#
# It runs gpumon where that is there and of a version whose records are understood, else nvidia-smi, and ends with its
# standard input, which ends with the connection. Lines that begin with a hash are its own.

# Where pip and conda put programs, which a shell that nobody logs in to often does not know.
PATH="$PATH:$HOME/.local/bin:/usr/local/bin:/opt/conda/bin:$HOME/miniforge3/bin:$HOME/miniconda3/bin";

# Whatever hangs below is ended with the connection. Nothing comes in before it is said what runs here.
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

# Fields that this driver has: it refuses all where it does not know one.
h=$(nvidia-smi --help-query-gpu 2>/dev/null </dev/null);
q=;
for f in @FIELDS@; do
  case "$h" in *"\"$f\""*) q="$q${q:+,}$f";; esac;
done;
echo "#csv $(uname -n)";
echo "#fields $q";

# nvidia-smi that stays keeps the driver loaded, so that whatever else asks gets its answer at once. It ends where a GPU is
# lost, and then tells of no other one either: each is asked alone.
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

# The name of a process, which may be anything, is the last column, and its lines begin as no other does.
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
