package escapetest

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// What the attacker and the suite say to each other.
const (
	attackMark = "escapetest-attack"
	breach     = "BREACH "
	attackEnd  = "all attacks made"
)

// Attack makes this process the attacker when it was started (with args, its os.Args) to be one; then inside is true, and
// the program must exit with the status. What it says goes to out.
func Attack(args []string, out io.Writer) (status int, inside bool) {
	if len(args) < 3 || args[1] != attackMark {
		return 0, false
	}
	attack, ok := attacks()[args[2]]
	if !ok {
		_, _ = fmt.Fprintln(out, "there is no attack", args[2])
		return 2, true
	}
	attack(&attempt{out: out}, args[3:])
	_, _ = fmt.Fprintln(out, attackEnd)
	return 0, true
}

func attacks() map[string]func(a *attempt, args []string) {
	return map[string]func(a *attempt, args []string){
		"privileges": attackPrivileges,
		"calls":      attackCalls,
		"settings":   attackSettings,
		"processes":  attackProcesses,
		"files":      attackFiles,
		"network":    attackNetwork,
		"helper":     attackHelper,
		"memory":     attackMemory,
		"watchers":   attackWatchers,
	}
}

// attempt is one attack being made.
type attempt struct{ out io.Writer }

// report tells the suite of an attack that succeeds.
func (a *attempt) report(what ...any) {
	_, _ = fmt.Fprint(a.out, breach, fmt.Sprintln(what...))
}

// try reports an attack that succeeds.
func (a *attempt) try(what string, err error) {
	if err == nil {
		a.report(what)
	}
}

// call makes a system call that must be refused: as forbidden or as unknown. Any other answer shows that the kernel's
// own code was reached with what the attacker gave.
func (a *attempt) call(what string, number uintptr, args ...uintptr) {
	var six [6]uintptr
	copy(six[:], args)
	_, _, errno := unix.Syscall6(number, six[0], six[1], six[2], six[3], six[4], six[5])
	if errno != unix.EPERM && errno != unix.ENOSYS && errno != unix.EACCES {
		a.report(what+" is answered with", errno)
	}
}

// readable reports a file that can be opened.
func (a *attempt) readable(path string) {
	f, err := os.Open(path)
	if err == nil {
		_, err = f.Read(make([]byte, 1))
		err = errors.Join(err, f.Close())
	}
	a.try("read "+path, err)
}

// writable reports a file that can be opened for writing.
func (a *attempt) writable(path string) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_ = f.Close()
	}
	a.try("open "+path+" for writing", err)
}
