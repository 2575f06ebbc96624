# Makes an interactive zsh print marks around its prompts and commands. Read by the shell before its
# user's own files, and at work after them; see shell_marks.rs.
#
# Where the marks are:
#   D and A  before the sign that zsh shows after a line without an end, which is an expanded prompt
#            itself, so that the sign belongs to the prompt; by precmd where the user has no such sign
#   B        at the end of PS1, put back by precmd because many prompts write PS1 anew
#   C        printed by preexec

__sandgate_precmd() {
    local -i __sandgate_status=$? __sandgate_sign=0 __sandgate_percent=0
    if [[ -o prompt_sp && -o prompt_cr ]]; then __sandgate_sign=1; fi
    if [[ -o prompt_percent ]]; then __sandgate_percent=1; fi
    builtin emulate -L zsh
    builtin setopt no_err_exit no_err_return no_xtrace
    local starts=$'\e]133;A;aid=@NONCE@\a' ends=$'\e]133;B;aid=@NONCE@\a'
    if (( ! __sandgate_sign )); then
        builtin print -rn -- $'\e]133;D;'$__sandgate_status$';aid=@NONCE@\a' >&2
    fi
    builtin print -rn -- $starts >&2
    local sign=$'%{\e]133;D;%?;aid=@NONCE@\a'$starts'%}'
    if [[ ${PROMPT_EOL_MARK-} != "$sign"* ]]; then
        PROMPT_EOL_MARK=$sign${PROMPT_EOL_MARK-'%B%S%#%s%b'}
    fi
    if (( __sandgate_percent )); then ends="%{$ends%}"; fi
    if [[ ${PS1-} != *"$ends" ]]; then PS1=${PS1-}$ends; fi
    if [[ $precmd_functions[-1] != __sandgate_precmd ]]; then
        precmd_functions=(${precmd_functions:#__sandgate_precmd} __sandgate_precmd)
    fi
    if [[ ${preexec_functions[-1]-} != __sandgate_preexec ]]; then
        preexec_functions=(${preexec_functions:#__sandgate_preexec} __sandgate_preexec)
    fi
    return 0
}

__sandgate_preexec() {
    builtin print -rn -- $'\e]133;C;aid=@NONCE@\a' >&2
}

# Runs at the first prompt, when all start-up files are read: once among the user's hooks, and once
# after all of them, by way of the hooks that run from time to time. Either may be missing, if a
# start-up file wrote over the list.
__sandgate_install() {
    builtin emulate -L zsh
    builtin setopt no_err_exit no_err_return no_xtrace
    if (( ${precmd_functions[(Ie)__sandgate_install]} )); then
        precmd_functions=(${precmd_functions:#__sandgate_install})
    else
        periodic_functions=(${periodic_functions:#__sandgate_install})
        if (( ! $#periodic_functions )); then builtin unset periodic_functions; fi
        if [[ ${PERIOD-} == 1000000001 ]]; then builtin unset PERIOD; fi
        builtin unfunction __sandgate_install
    fi
    __sandgate_precmd
}

typeset -ga precmd_functions periodic_functions
precmd_functions+=(__sandgate_install)
periodic_functions+=(__sandgate_install)
PERIOD=1000000001
