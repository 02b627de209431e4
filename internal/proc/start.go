package proc

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Environment variables that identify processes. markName holds the caller's mark, which several processes may share;
// execName is unique to one Run, so that its end does not affect others with the same mark.
const (
	markName = "RALPH_MARK"
	execName = "RALPH_EXEC"
)

// child is a started process. Its PID is tree.root.
type child struct {
	tree  tree
	files *Pipes
}

// start starts the process and the copying of its input and output.
func start(s *Spec) (*child, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, &StartError{Name: "a process", Err: errors.New("no program is named")}
	}
	fail := func(err error) (*child, error) { return nil, &StartError{Name: s.Argv[0], Err: err} }
	if err := refuseNUL(s); err != nil {
		return fail(err)
	}
	env := LastWins(s.Env)
	c := &child{}
	if s.Mark != "" {
		nonce := rand.Text()
		env = append(env, markName+"="+s.Mark, execName+"="+nonce)
		c.tree.needle = execName + "=" + nonce
	}
	path, err := Lookup(s.Argv[0], s.Dir, env)
	if err != nil {
		return fail(err)
	}
	if c.files, err = OpenPipes(s.Stdin, s.Stdout, s.Stderr); err != nil {
		return fail(err)
	}
	ends := c.files.Ends()
	attr := syscall.ProcAttr{
		Dir:   s.Dir,
		Env:   absolutePath(env),
		Files: []uintptr{ends[0].Fd(), ends[1].Fd(), ends[2].Fd()},
		// A session, not only a process group: the process gets no signals of the terminal, and a program that opens
		// /dev/tty to ask something fails instead of being stopped in the background forever.
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	if s.Tied {
		setDeathSignal(attr.Sys)
	}
	pid, err := forkExec(path, s.Argv, &attr)
	c.files.CloseEnds()
	if err != nil {
		c.files.Abandon()
		return fail(Explain(err, path, s.Dir))
	}
	c.tree.root = pid
	if s.Memory > 0 {
		if err := limitMemory(pid, s.Memory); err != nil {
			c.files.Abandon()
			err = errors.Join(err, unix.Kill(-pid, unix.SIGKILL))
			_, _ = reap(pid)
			return fail(err)
		}
	}
	c.files.Start()
	return c, nil
}

// forkExec starts the program. It retries ETXTBSY: the file may just have been written, and a concurrent fork of this
// process has inherited the writer's descriptor and holds it until its exec.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		pid, _, err := syscall.StartProcess(path, argv, attr)
		if err != syscall.ETXTBSY || pause > 100*time.Millisecond {
			return pid, err
		}
		time.Sleep(pause) //nolint:forbidigo // nothing tells when the other fork has made its exec
	}
}

// refuseNUL returns an error that names the string with a NUL byte: the system would truncate it there.
func refuseNUL(s *Spec) error {
	for i, a := range s.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return fmt.Errorf("argument %d contains a NUL byte", i)
		}
	}
	for _, e := range s.Env {
		if strings.IndexByte(e, 0) >= 0 {
			name, _, _ := strings.Cut(e, "=")
			return fmt.Errorf("environment variable %q contains a NUL byte", name)
		}
	}
	if strings.IndexByte(s.Dir, 0) >= 0 || strings.IndexByte(s.Mark, 0) >= 0 {
		return errors.New("its folder or mark contains a NUL byte")
	}
	return nil
}

// LastWins returns a copy of the environment without overridden entries, malformed entries, and the marks of an outer
// ralph. The slice has capacity for a process's marks.
func LastWins(env []string) []string {
	at := make(map[string]int, len(env))
	out := make([]string, 0, len(env)+2)
	for _, e := range env {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == markName || name == execName {
			continue
		}
		if i, seen := at[name]; seen {
			out[i] = e
			continue
		}
		at[name] = len(out)
		out = append(out, e)
	}
	return out
}

// Explain explains why the system did not start the program at path in dir.
func Explain(err error, path, dir string) error {
	switch {
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%w; pass long text on its standard input", err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("no more processes may be started (by the sandbox's limit, or see: ulimit -u): %w", err)
	case dir != "" && !isDir(dir):
		return fmt.Errorf("its folder %s: %w", dir, err)
	case errors.Is(err, fs.ErrNotExist) && exists(path, dir):
		return fmt.Errorf("%s: its interpreter %s is missing: %w", path, interpreter(path, dir), err)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine, nor a script with a #! line: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// interpreter returns the program that a script's first line names.
func interpreter(path, dir string) string {
	const unknown, longest = "(the first line)", 512
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer f.Close()
	start := make([]byte, longest)
	n, _ := io.ReadFull(f, start)
	line, _, _ := strings.Cut(string(start[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return unknown
	}
	return words[0]
}

func isDir(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}
