# Makes an interactive bash print marks around its prompts and commands. Read by the shell after its
# user's own files; see shell_marks.rs.
#
# Where the marks are:
#   D and A  printed before the user's PROMPT_COMMAND, so that what it prints belongs to the prompt
#   B        at the end of PS1, put back after PROMPT_COMMAND because many prompts write PS1 anew
#   C        at the end of PS0
#
# The hooks are called within `{ } 9>&2 >/dev/null 2>&1`, so that a user's DEBUG trap or `set -x` shows
# nothing of them. A backslash before a builtin's name keeps aliases away.

__sandgate_prompt_starts() {
    \builtin local status=$?
    \builtin printf '\e]133;D;%s;aid=@NONCE@\a\e]133;A;aid=@NONCE@\a' "$status" >&9 || \builtin :
    # A failing hook would end a shell that has `set -e`.
    [[ $- != *e* ]] || \builtin return 0
    \builtin return "$status"
}

__sandgate_prompt_ends() {
    \builtin local end='\[\e]133;B;aid=@NONCE@\a\]'
    if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
        # There is no PS0 yet: the echo ends with the line.
        end='\[\e]133;B;echo=line;aid=@NONCE@\a\]'
    elif [[ ${PS0-} != *'\e]133;C;aid=@NONCE@\a' ]]; then
        PS0=${PS0-}'\e]133;C;aid=@NONCE@\a'
    fi
    [[ ${PS1-} == *"$end" ]] || PS1=${PS1-}$end
    ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)) || \builtin return 0
    # Whoever assigns to PROMPT_COMMAND writes over the element that is ours, and means the one that
    # follows it. Bash walks through the array right now: elements may get new values and followers,
    # but none may go.
    \builtin local starts='{ __sandgate_prompt_starts || :; } 9>&2 >/dev/null 2>&1'
    \builtin local ends='{ __sandgate_prompt_ends; } 9>&2 >/dev/null 2>&1'
    if [[ ${PROMPT_COMMAND[0]-} != "$starts" ]]; then
        \builtin local before=${PROMPT_COMMAND[1]:-:}
        PROMPT_COMMAND[1]=${PROMPT_COMMAND[0]//"$starts"/"$before"}
        PROMPT_COMMAND[0]=$starts
    fi
    [[ ${PROMPT_COMMAND[@]: -1} == "$ends" ]] || PROMPT_COMMAND+=("$ends")
}

# Stands where the call of this file stood among commands of the user's.
__sandgate_nothing() { \builtin return "$?"; }

# Called with the text that made bash read this file, if that stands in PROMPT_COMMAND, and with what
# stood there before.
__sandgate_install() {
    \builtin local readonly=$'\n''declare -[A-Za-z]*r' starts ends index
    [[ $'\n'$(\builtin declare -p PROMPT_COMMAND PS0 PS1 2>/dev/null) =~ $readonly ]] && \builtin return 0
    ends='{ __sandgate_prompt_ends; } 9>&2 >/dev/null 2>&1'
    if (($# > 0)); then
        if [[ $(\builtin declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]]; then
            # Bash walks through it: see above.
            for index in "${!PROMPT_COMMAND[@]}"; do
                PROMPT_COMMAND[index]=${PROMPT_COMMAND[index]//"$1"/'{ __sandgate_prompt_starts || :; } 9>&2 >/dev/null 2>&1'}
            done
            PROMPT_COMMAND+=("$ends")
            \builtin return 0
        elif [[ ${PROMPT_COMMAND-} == "$1" ]]; then
            \builtin unset PROMPT_COMMAND
            [[ -z $2 ]] || PROMPT_COMMAND=$2
        else
            \builtin export -n PROMPT_COMMAND
            PROMPT_COMMAND=${PROMPT_COMMAND//"$1"/__sandgate_nothing}
        fi
    fi
    if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
        starts='{ __sandgate_prompt_starts || :; } 9>&2 >/dev/null 2>&1'
        PROMPT_COMMAND=("$starts" "${PROMPT_COMMAND[0]-}" "${PROMPT_COMMAND[@]:1}" "$ends")
    else
        starts='{ __sandgate_prompt_starts; } 9>&2 >/dev/null 2>&1'
        PROMPT_COMMAND=$starts$'\n'${PROMPT_COMMAND-}$'\n'$ends
    fi
}
