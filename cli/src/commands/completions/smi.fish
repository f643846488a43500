
# Prints the program that the words before the cursor belong to: smi or smi-start for nvidia-smi itself, the name of one
# of its commands, own for gpumon, start if there are no words yet, or open if all words are options of plain gpumon.
function __fish_gpumon_smi_face
    set -l typed (commandline -opc)
    set -e typed[1]
    set -l face
    # The value of this option is being typed.
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

# Prints the values that can be added to the list before the cursor.
function __fish_gpumon_smi_list
    set -l kept (commandline -ct | string replace -r '^-[^=]*=' '' | string match -r '.*,')
    set -l there (string split , -- $kept)
    for value in $argv
        contains -- $value $there; or echo "$kept$value"
    end
end

# Prints the letters that can be added to those before the cursor.
function __fish_gpumon_smi_letters
    set -l kept (commandline -ct | string replace -r '^-[^=]*=' '')
    for letter in $argv
        string match -q "*$letter*" -- "$kept"; or echo "$kept$letter"
    end
end

@LINES@
