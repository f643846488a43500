
# Whose words stand before the cursor: of nvidia-smi (smi) or of one of its commands; of gpumon itself (own); of nobody
# yet (start); or options of plain gpumon alone (open).
function __fish_gpumon_smi_face
    set -l typed (commandline -opc)
    set -e typed[1]
    set -l face
    # Where it is to read is still to be said.
    if contains -- "$typed[-1]" --source --nvml-lib --config
        echo own
        return
    end
    while set -q typed[1]
        switch $typed[1]
            case --source --nvml-lib --config
                set -e typed[1]
            case '--source=*' '--nvml-lib=*' '--config=*'
            case smi
                test -z "$face"; or break
                set face smi
            case '*'
                break
        end
        set -e typed[1]
    end
    if contains -- "$typed[1]" @COMMANDS@
        echo $typed[1]
        return
    end
    if test -n "$face"
        test -z "$typed[1]"; and echo smi-start; or echo smi
        return
    end
    if test -z "$typed[1]"
        echo start
        return
    end
    for word in $typed
        set word (string replace -r '=.*' '' -- $word)
        if contains -- $word @OWN@
            echo own
            return
        end
        if contains -- $word @PASSTHROUGH@
            echo smi
            return
        end
    end
    echo open
end

function __fish_gpumon_smi_is
    contains -- (__fish_gpumon_smi_face) $argv
end

# Values behind those that a list has already.
function __fish_gpumon_smi_list
    set -l kept (commandline -ct | string replace -r '^-[^=]*=' '' | string match -r '.*,')
    set -l there (string split , -- $kept)
    for value in $argv
        contains -- $value $there; or echo "$kept$value"
    end
end

# Letters behind those that stand there already.
function __fish_gpumon_smi_letters
    set -l kept (commandline -ct | string replace -r '^-[^=]*=' '')
    for letter in $argv
        string match -q "*$letter*" -- "$kept"; or echo "$kept$letter"
    end
end

@LINES@
