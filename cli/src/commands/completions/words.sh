# Completions for nvidia-smi and its commands in bash and zsh.

# Prints the program that the words belong to: smi for nvidia-smi itself, or the name of one of its commands. The exit
# code is 1 if the words belong to gpumon, 2 if there are no words yet, and 3 if all words are options of plain gpumon.
_gpumon_smi_face() {
    local face= word=
    for word; do :; done
    # The value of this option is being typed.
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

# Returns the number of leading words that select what gpumon reads.
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

# Prints the options of nvidia-smi, of one of its commands, or those that plain gpumon accepts (passthrough), each with
# its description.
_gpumon_smi_options() {
    case $1 in
@OPTIONS@
    esac
}

# Prints how the values of an option are joined, and then the values: a comma stands for a list, + for letters, 1 for a
# single value, / for a file and ? for any value.
_gpumon_smi_values() {
    case $1 in
@VALUES@
        *) return 1 ;;
    esac
}
