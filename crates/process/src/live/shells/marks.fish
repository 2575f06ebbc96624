# Makes an interactive fish print marks around its prompts and commands. Read by the shell after its
# user's own files; see shell_marks.rs.
#
# Where the marks are:
#   D and A  printed when a command has ended, before fish shows its sign for a line without an end
#   A        printed before each prompt too, for lines that ran nothing
#   B        printed by the prompt function after the user's own
#   C        printed when a command begins

function __sandgate_preexec --on-event fish_preexec
    printf '\e]133;C;aid=@NONCE@\a'
end

function __sandgate_postexec --on-event fish_postexec
    printf '\e]133;D;%s;aid=@NONCE@\a\e]133;A;aid=@NONCE@\a' $status
end

function __sandgate_prompt --on-event fish_prompt
    printf '\e]133;A;aid=@NONCE@\a'
    if functions --query fish_prompt
        and not functions fish_prompt | string match --quiet '*__sandgate_user_prompt*'
        functions --erase __sandgate_user_prompt
        functions --copy fish_prompt __sandgate_user_prompt
        # The user's prompt comes first, so that it finds the status of the last command.
        function fish_prompt
            __sandgate_user_prompt
            printf '\e]133;B;aid=@NONCE@\a'
        end
    end
end
