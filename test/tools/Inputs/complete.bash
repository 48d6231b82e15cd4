# complete.bash TOOL WORD...: prints the completions that bash offers for the last word, one per line.
source <("$1" --generate=bash)
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
read -r _ _ function _ < <(complete -p "$1")
"$function"
printf '%s\n' "${COMPREPLY[@]}"
