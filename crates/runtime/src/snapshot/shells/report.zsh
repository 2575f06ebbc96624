__sandgate_report=$(
\builtin setopt ksh_option_print
\builtin printf '%s options \n' @MARK@
\builtin set -o
\builtin emulate -R zsh
\builtin exec 2>/dev/null
\builtin printf '%s umask \n' @MARK@
\builtin umask
for __sandgate_name in ${(ko)parameters}; do
[[ ${parameters[$__sandgate_name]} != *(hide|readonly*special)* ]] || continue
\builtin printf '%s variable %s\n' @MARK@ "$__sandgate_name"
\builtin typeset -p -- "$__sandgate_name"
\builtin printf '%s value %s\n%s\n' @MARK@ "$__sandgate_name" "${(P)__sandgate_name}"
done
for __sandgate_name in ${(ko)functions}; do
\builtin printf '%s function %s\n' @MARK@ "$__sandgate_name"
\builtin functions -- "$__sandgate_name"
done
for __sandgate_name in ${(ko)aliases}; do
\builtin printf '%s alias %s\n' @MARK@ "$__sandgate_name"
\builtin alias -L -- "$__sandgate_name"
done
for __sandgate_name in ${(ko)galiases}; do
\builtin printf '%s alias %s\n' @MARK@ "$__sandgate_name"
\builtin alias -gL -- "$__sandgate_name"
done
for __sandgate_name in ${(ko)saliases}; do
\builtin printf '%s alias %s\n' @MARK@ "$__sandgate_name"
\builtin alias -sL -- "$__sandgate_name"
done
\builtin printf '%s end' @MARK@
)
\builtin unsetopt multibyte
\builtin printf '\n%s report %d\n%s\n' @MARK@ "${#__sandgate_report}" "$__sandgate_report"
