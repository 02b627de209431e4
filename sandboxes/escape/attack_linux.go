package escape

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

func init() { //nolint:gochecknoinits // a registration
	reexec.Register(role, attackInside)
}

// attackInside runs an attack inside. Its arguments are the attack's name and arguments; its reports go to standard output.
func attackInside(p reexec.Process) (status int) {
	if len(p.Args) == 0 || attacks()[p.Args[0]] == nil {
		_, _ = fmt.Fprintln(p.Stderr, "there is no attack", p.Args)
		return 2
	}
	attacks()[p.Args[0]](&attempt{p.Stdin, p.Stdout}, p.Args[1:])
	_, _ = fmt.Fprintln(p.Stdout, attackEnd)
	return 0
}

func attacks() map[string]func(a *attempt, args []string) {
	return map[string]func(a *attempt, args []string){
		"privileges": attackPrivileges,
		"calls":      attackCalls,
		"settings":   attackSettings,
		"processes":  attackProcesses,
		"files":      attackFiles,
		"metadata":   attackMetadata,
		"lower":      attackLower,
		"network":    attackNetwork,
		"connect":    attackConnect,
		"ask":        attackAsk,
		"helper":     attackHelper,
		"memory":     attackMemory,
		"watchers":   attackWatchers,
	}
}

// attempt is one attack in progress.
type attempt struct {
	in  io.Reader
	out io.Writer
}

// report reports a successful attack to the suite.
func (a *attempt) report(what ...any) {
	_, _ = fmt.Fprint(a.out, breach, fmt.Sprintln(what...))
}

// expectError reports an attack that succeeds.
func (a *attempt) expectError(what string, err error) {
	if err == nil {
		a.report(what)
	}
}

// call makes a system call that must be refused as forbidden or unknown. Any other result shows that the call reached the
// kernel's implementation.
func (a *attempt) call(what string, number uintptr, args ...uintptr) {
	var six [6]uintptr
	copy(six[:], args)
	_, _, errno := unix.Syscall6(number, six[0], six[1], six[2], six[3], six[4], six[5])
	if errno != unix.EPERM && errno != unix.ENOSYS && errno != unix.EACCES {
		a.report(what+" is answered with", errno)
	}
}

// readable reports a file that can be opened and read.
func (a *attempt) readable(path string) {
	f, err := os.Open(path)
	if err == nil {
		_, err = f.Read(make([]byte, 1))
		err = errors.Join(err, f.Close())
	}
	a.expectError("read "+path, err)
}

// writable reports a file that can be opened for writing.
func (a *attempt) writable(path string) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_ = f.Close()
	}
	a.expectError("open "+path+" for writing", err)
}
