/* Runs a program below a filter. Its first argument says which:

   plain     everything is allowed
   listened  the same, and the filter has a listener, which this and what it becomes hold open: a process below cannot
             have a second one then
   asked     whoever opens a file to write or removes one waits until another process has said that it may go on. It is
             the least that a supervisor can do

   The first two differ in nothing else, so that both sides of a comparison live by as many filters. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ARRAY(steps) { sizeof(steps) / sizeof *(steps), steps }

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

static void go_on(int listener)
{
    struct pollfd asked = { listener, POLLIN, 0 };

    while (poll(&asked, 1, -1) > 0 && (asked.revents & POLLIN)) {
        struct seccomp_notif question;
        struct seccomp_notif_resp answer;

        memset(&question, 0, sizeof question);
        memset(&answer, 0, sizeof answer);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0)
            continue;
        answer.id = question.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

int main(int count, char **arguments)
{
    struct sock_filter nothing[] = { ANSWER(SECCOMP_RET_ALLOW) };
    struct sock_filter writing[] = {
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlinkat, 4, 0),
#ifdef SYS_unlink
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlink, 3, 0),
#else
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlinkat, 3, 0),
#endif
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        LOAD(args[2]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1),
        ANSWER(SECCOMP_RET_USER_NOTIF),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog everything = ARRAY(nothing), some = ARRAY(writing);
    int asked = count > 2 && strcmp(arguments[1], "asked") == 0;
    int listened = count > 2 && strcmp(arguments[1], "listened") == 0;
    unsigned long flags = asked || listened ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    int tell[2];
    long made;

    if (count < 3) {
        fputs("which filter, and which program?\n", stderr);
        return 1;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return fail("no_new_privs");
    if (asked) {
        /* It is made before the filter, which it would live by as well, and shares the descriptors until the program
           is executed. It ends with the last process that could ask. */
        if (pipe2(tell, O_CLOEXEC) != 0)
            return fail("a pipe");
        made = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
        if (made < 0)
            return fail("another process");
        if (made == 0) {
            if (read(tell[0], &made, sizeof made) == sizeof made)
                go_on((int)made);
            _exit(0);
        }
    }
    made = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, asked ? &some : &everything);
    if (made < 0)
        return fail("a filter");
    if (listened && fcntl((int)made, F_SETFD, 0) != 0)
        return fail("keeping the listener");
    if (asked && write(tell[1], &made, sizeof made) != sizeof made)
        return fail("telling who answers");
    execv(arguments[2], arguments + 2);
    return fail(arguments[2]);
}
