# What may stand behind nvidia-smi and its commands, for bash and zsh.

# Whose words these are: of nvidia-smi (smi) or of one of its commands. Fails with 1 where they are gpumon's own, with 2
# where nothing stands there yet, and with 3 where only options of plain gpumon do.
_gpumon_smi_face() {
    local face= word=
    for word; do :; done
    # Where it is to read is still to be said.
    case $word in
        --source|--nvml-lib|--config) return 1 ;;
    esac
    _gpumon_smi_skip "$@"
    shift $?
    [ $# -gt 0 ] || return 2
    if [ "$1" = smi ]; then
        face=smi
        shift
        _gpumon_smi_skip "$@"
        shift $?
    fi
    case $1 in
        @COMMANDS@) echo "$1"; return 0 ;;
    esac
    [ -z "$face" ] || { echo smi; return 0; }
    for word; do
        case ${word%%=*} in
            @OWN@) return 1 ;;
            @PASSTHROUGH@) echo smi; return 0 ;;
        esac
    done
    return 3
}

# How many words say what gpumon is to read.
_gpumon_smi_skip() {
    local count=0
    while [ $# -gt 0 ]; do
        case $1 in
            --source|--nvml-lib|--config) count=$((count + 1)); shift ;;
            --source=*|--nvml-lib=*|--config=*) ;;
            *) break ;;
        esac
        [ $# -gt 0 ] || break
        count=$((count + 1))
        shift
    done
    return $count
}

# The options of nvidia-smi or of a command, and behind plain gpumon (passthrough), each with what it is.
_gpumon_smi_options() {
    case $1 in
@OPTIONS@
    esac
}

# The values of an option, behind how they are joined: , for a list, + for letters, 1 for one, / for a file, ? for any.
_gpumon_smi_values() {
    case $1 in
@VALUES@
        *) return 1 ;;
    esac
}
