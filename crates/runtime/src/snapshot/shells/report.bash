__sandgate_options=$SHELLOPTS __sandgate_choices=$BASHOPTS
__sandgate_report=$(
\builtin trap - DEBUG ERR RETURN
\builtin set +eufvxC
\builtin shopt -u failglob
\builtin exec 2>/dev/null
\builtin printf '%s options \n%s\n' @MARK@ "$__sandgate_options"
\builtin printf '%s choices \n%s\n' @MARK@ "$__sandgate_choices"
\builtin printf '%s umask \n' @MARK@
\builtin umask
while IFS= \builtin read -r __sandgate_name; do
\builtin printf '%s variable %s\n' @MARK@ "$__sandgate_name"
\builtin declare -p -- "$__sandgate_name"
\builtin printf '%s value %s\n%s\n' @MARK@ "$__sandgate_name" "${!__sandgate_name-}"
done < <(\builtin compgen -v)
while IFS= \builtin read -r __sandgate_name; do
\builtin printf '%s function %s\n' @MARK@ "$__sandgate_name"
\builtin declare -f -- "$__sandgate_name"
done < <(\builtin compgen -A function)
while \builtin read -r _ __sandgate_flags __sandgate_name; do
[[ $__sandgate_flags != *x* ]] || \builtin printf '%s exported %s\n' @MARK@ "$__sandgate_name"
done < <(\builtin declare -F)
while IFS= \builtin read -r __sandgate_name; do
\builtin printf '%s alias %s\n' @MARK@ "$__sandgate_name"
\builtin alias -- "$__sandgate_name"
done < <(\builtin compgen -a)
\builtin printf '%s end' @MARK@
)
LC_ALL=C
\builtin printf '\n%s report %d\n%s\n' @MARK@ "${#__sandgate_report}" "$__sandgate_report"
