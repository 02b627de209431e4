package reexec

import (
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CatchSignals makes this process survive every signal that can be caught. An init process calls it, so that no command
// inside can end the sandbox with a signal.
func CatchSignals() {
	caught := make(chan struct{})
	go func() { // each signal waits for another thread, and much longer on a locked one, such as that of package initialization
		signal.Notify(make(chan os.Signal, 1), deadlySignals()...)
		close(caught)
	}()
	<-caught
	ignoreUncaught()
}

// deadlySignals returns the signals that end or stop a Go program that has not asked for them: SIGPIPE when it writes to a closed
// standard output or error. Go catches all others, and does nothing, as the documentation of os/signal says.
func deadlySignals() []os.Signal {
	return []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGPIPE,
		unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGSTKFLT, unix.SIGSYS,
		unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT,
	}
}

// sigaction is the kernel's struct of that name.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// ignoreUncaught ignores the signals that Go reserves for C libraries. The kernel drops an unhandled signal to an init
// process, unless a thread has blocked it. Every thread blocks it while it handles another signal; the signal then ends the
// process.
func ignoreUncaught() {
	const first, last, ignore = 32, 64, 1
	for number := uintptr(first); number <= last; number++ {
		var action sigaction
		get := unsafe.Pointer(&action) //nolint:gosec // there is no other way to ask
		if _, _, err := unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, 0, uintptr(get), unsafe.Sizeof(action.mask), 0, 0); err != 0 || action.handler != 0 {
			continue
		}
		action = sigaction{handler: ignore}
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, number, uintptr(get), 0, unsafe.Sizeof(action.mask), 0, 0) // an error changes nothing
	}
}
