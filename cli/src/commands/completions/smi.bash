
_gpumon_or_smi() {
    # bash splits words at equals signs and colons. They are joined again here.
    local typed=() word last= count=0
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if [[ $count -gt 0 && ( $word == [=:]* || $last == *[=:] ) ]]; then
            typed[count - 1]+=$word
        else
            typed[count]=$word
            count=$((count + 1))
        fi
        last=$word
    done
    local cur=${typed[count - 1]} face status
    # In `--option=value`, only the value is completed, so the option counts as the previous word.
    [[ $cur == -*=* ]] && typed[count - 1]=${cur%%=*} && count=$((count + 1))
    face=$(_gpumon_smi_face "${typed[@]:0:count - 1}")
    status=$?
    if [[ $status -ne 0 ]]; then
        _gpumon "$@"
        local more=
        [[ $status -ne 1 && $cur == -* ]] && more=$(_gpumon_smi_options passthrough)
        [[ $status -eq 2 && $cur != -* ]] && more=$(_gpumon_smi_options commands)
        local IFS=$'\n'
        COMPREPLY+=($(compgen -W "$(sed 's/:.*//' <<< "$more")" -- "$cur"))
        return 0
    fi
    COMPREPLY=()
    local option=${typed[count - 2]} values join
    [[ $cur == -*=* ]] && cur=${cur#*=}
    if values=$(_gpumon_smi_values "$face $option"); then
        join=${values%% *}
        values=${values#* }
        case $join in
            ,)
                local kept=
                [[ $cur == *,* ]] && kept=${cur%,*},
                compopt -o nospace 2> /dev/null
                for word in $values; do
                    [[ $kept$word == "$cur"* && ,$kept != *",$word,"* ]] && COMPREPLY+=("$kept$word")
                done
                ;;
            +)
                compopt -o nospace 2> /dev/null
                for word in $values; do
                    [[ $cur == *"$word"* ]] || COMPREPLY+=("$cur$word")
                done
                ;;
            1) COMPREPLY=($(compgen -W "$values" -- "$cur")) ;;
            /)
                compopt -o filenames 2> /dev/null
                local IFS=$'\n'
                COMPREPLY=($(compgen -f -- "$cur"))
                ;;
        esac
        return 0
    fi
    local IFS=$'\n' named
    named=$(_gpumon_smi_options "$face")
    # Commands are only completed as the first word.
    [[ $face == smi && $option == smi ]] && named+=$'\n'$(_gpumon_smi_options commands)
    COMPREPLY=($(compgen -W "$(sed 's/:.*//' <<< "$named")" -- "$cur"))
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _gpumon_or_smi -o nosort -o bashdefault -o default gpumon
else
    complete -F _gpumon_or_smi -o bashdefault -o default gpumon
fi
