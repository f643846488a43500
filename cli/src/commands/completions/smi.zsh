
_gpumon() {
    local face code option text join
    local -a proposed values more
    # In `--option=value`, only the value is completed, so the option counts as the previous word.
    option=$words[CURRENT-1]
    more=("${(@)words[2,CURRENT-1]}")
    if [[ $PREFIX == -*=* ]]; then
        option=${PREFIX%%=*}
        more+=($option)
    fi
    face=$(_gpumon_smi_face $more)
    code=$?
    if (( code )); then
        local prefix=$PREFIX ret
        _gpumon_own "$@"
        ret=$?
        if [[ $code -ne 1 && $prefix == -* ]]; then
            more=("${(@f)$(_gpumon_smi_options passthrough)}")
            _describe -o -t smi-options 'option of nvidia-smi' more && ret=0
        elif [[ $code -eq 2 ]]; then
            more=("${(@f)$(_gpumon_smi_options commands)}")
            _describe -t smi-commands 'command of nvidia-smi' more && ret=0
        fi
        return ret
    fi
    [[ $PREFIX == -*=* ]] && compset -P 1 '*='
    if text=$(_gpumon_smi_values "$face $option"); then
        join=${text%% *}
        values=(${=text#* })
        case $join in
            ,)
                more=(${(s:,:)PREFIX%,*})
                [[ $PREFIX == *,* ]] && values=(${values:|more})
                compset -P '*,'
                compadd -q -S , -a values
                ;;
            +)
                values=(${values:#[$PREFIX]})
                compset -P '*'
                compadd -S '' -a values
                ;;
            1) compadd -a values ;;
            /) _files ;;
            *) return 1 ;;
        esac
        return
    fi
    more=("${(@f)$(_gpumon_smi_options $face)}")
    _describe -o -t options option more
    if [[ $face == smi && $option == smi ]]; then
        more=("${(@f)$(_gpumon_smi_options commands)}")
        _describe -t commands command more
    fi
}

if [ "$funcstack[1]" = "_gpumon" ]; then
    _gpumon "$@"
else
    compdef _gpumon gpumon
fi
