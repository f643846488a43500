#!/bin/sh
# Simulates hosts for tests of `gpumon fleet --hosts`. A real sshd listens on ports of the loopback
# address, and each port is a different kind of host. It runs until it is killed.
#
#   tests/hosts/sshd.sh FOLDER GPUMON FIRST_PORT
#
# FOLDER/config is a configuration file for ssh with the hosts gpumon*, smi*, sim*, missing*, hang*,
# stuck*, babble*, die*, refuse*, stranger* and locked*. Programs on the hosts have GPUMON_TEST_FOLDER
# set to FOLDER in their environment, so that tests can find them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1 gpumon=$2 port=$3
mkdir -p "$folder" && cd "$folder" && chmod 700 .
sshd=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd)
# sshd needs this directory for its privilege separation.
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
for key in host user other; do
    [ -e "$key" ] || ssh-keygen -q -t ed25519 -N '' -f "$key"
done
cp user.pub authorized
# Adds a kind of host. The programs in its PATH are in bin/NAME.
kind() {
    mkdir -p "bin/$1"
}

kind gpumon
cat > bin/gpumon/gpumon <<END
#!/bin/sh
exec "$gpumon" --config none --source sim:\${GPUMON_TEST_GPUS:-2} "\$@"
END
kind smi
cp "$here/nvidia-smi" bin/smi/
cp "$here/../end-to-end/captures/h200-590.48.01/query-gpu.txt" bin/smi/capture
echo "GPU-00000000-0000-0000-0000-000000000000, $$, 2296, /opt/train" > bin/smi/processes
kind sim
cat > bin/sim/nvidia-smi <<END
#!/bin/sh
case "\$1" in
    --help-query-gpu) printf '"%s"\n' index count uuid name pci.bus_id memory.total memory.used memory.free utilization.gpu \
        power.draw temperature.gpu; exit ;;
esac
exec "$gpumon" --config none --source sim:2 smi "\$@"
END
kind missing
kind hang
cat > bin/hang/nvidia-smi <<'END'
#!/bin/sh
case "$1" in --help-query-gpu) echo '"index"' ;; *) sleep 1000 ;; esac
END
kind stuck
printf '#!/bin/sh\nsleep 1000\n' > bin/stuck/gpumon
kind babble
kind die
chmod +x bin/*/gpumon bin/*/nvidia-smi 2>/dev/null || true

cat > far <<END
#!/bin/sh
# Runs the command of an ssh client on a host of the kind \$1.
export GPUMON_TEST_FOLDER="$folder" PATH="$folder/bin/\$1:/usr/bin:/bin" HOME="$folder/home"
unset GPUMON_SOURCE GPUMON_NVML_LIB
case "\$1" in
    babble) exec yes 'What a long greeting this shell has for everybody' ;;
    die) echo '#records gpumon 0'; echo 'and then the power failed' >&2; exit 3 ;;
esac
exec sh -c "\$SSH_ORIGINAL_COMMAND"
END
chmod +x far

kinds='gpumon smi sim missing hang stuck babble die'
{
    echo "HostKey $folder/host
ListenAddress 127.0.0.1
AuthorizedKeysFile $folder/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PrintMotd no
MaxStartups 1000"
    at=$port
    for name in $kinds; do echo "Port $at"; at=$((at + 1)); done
    at=$port
    for name in $kinds; do
        echo "Match LocalPort $at
    ForceCommand $folder/far $name"
        at=$((at + 1))
    done
} > sshd_config
{
    at=$port
    for name in $kinds refuse; do
        echo "Host $name*
    Port $at"
        at=$((at + 1))
    done
    echo "Host stranger*
    Port $port
    UserKnownHostsFile /dev/null
Host locked*
    Port $port
    IdentityFile $folder/other
Host *
    HostName 127.0.0.1
    HostKeyAlias gpumon-test
    User $(id -un)
    IdentitiesOnly yes
    IdentityAgent none
    GlobalKnownHostsFile /dev/null
    UserKnownHostsFile $folder/known
Host * !locked*
    IdentityFile $folder/user"
} > config
echo "gpumon-test $(cut -d' ' -f1,2 host.pub)" > known
mkdir -p home
exec "$sshd" -D -e -f "$folder/sshd_config"
