_dragoman() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    local verb=dragoman choices="" word index
    COMPREPLY=()
    [[ $previous == "=" ]] && previous="${COMP_WORDS[COMP_CWORD-2]}"
    [[ $current == "=" ]] && current=""
    for ((index = 1; index < COMP_CWORD; index++)); do
        word="${COMP_WORDS[index]}"
        case "$verb $word" in
            VERBS) verb="$verb $word" ;;
        esac
    done
    case "$verb $previous" in
VALUES
        *)
            case "$verb:$current" in
FLAGS
            esac ;;
    esac
    for word in $choices; do
        [[ $word == "$current"* ]] && COMPREPLY+=("$word")
    done
}
complete -o default -F _dragoman dragoman
