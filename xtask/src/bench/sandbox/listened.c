/* Runs a program under a filter that allows everything. With "listened" as its first argument the filter has a
   listener, which this and what it becomes hold open: a process below cannot have a second one then. With "plain" it
   has none, so that both sides of a comparison live by as many filters. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

int main(int count, char **arguments)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { 1, &allow };
    int listened = count > 2 && strcmp(arguments[1], "listened") == 0;
    unsigned long flags = listened ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    long made;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return fail("no_new_privs");
    made = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (made < 0)
        return fail("a filter");
    if (listened && fcntl((int)made, F_SETFD, 0) != 0)
        return fail("keeping the listener");
    execv(arguments[2], arguments + 2);
    return fail(arguments[2]);
}
