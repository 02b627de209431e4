package scripted

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// play performs the actions in order and stops at the first one that fails or ends the program.
func (a *agent) play(actions []Action) error {
	for _, act := range actions {
		if err := a.do(act); err != nil {
			return err
		}
	}
	return nil
}

func (a *agent) do(act Action) error {
	switch {
	case act.Write != nil:
		return a.write(*act.Write, os.O_TRUNC)
	case act.Append != nil:
		return a.write(*act.Append, os.O_APPEND)
	case act.Run != "":
		return a.shell(act.Run)
	case act.Try != "":
		if err := a.shell(act.Try); err != nil {
			fmt.Fprintln(a.stdout, "(", err, ")")
		}
		return nil
	case act.Commit != "":
		return a.commit(a.expand(act.Commit))
	case act.Say != "":
		_, err := fmt.Fprintln(a.stdout, a.expand(act.Say))
		return err
	case act.Stderr != "":
		_, err := fmt.Fprintln(a.stderr, a.expand(act.Stderr))
		return err
	case act.Expect != "":
		if !regexp.MustCompile(act.Expect).MatchString(a.prompt) { // checked by Parse
			fmt.Fprintf(a.stderr, "scripted-agent: the prompt does not match %q:\n%s\n", act.Expect, a.prompt)
			return exitError(9)
		}
		return nil
	case act.Prompt != "":
		return os.WriteFile(a.expand(act.Prompt), []byte(a.prompt), 0o600)
	case act.Touch != "":
		return os.WriteFile(a.expand(act.Touch), nil, 0o600)
	case act.Wait != "":
		return waitFor(a.expand(act.Wait))
	case act.Alone != "":
		return a.lock(a.expand(act.Alone))
	default:
		return a.misbehave(act)
	}
}

// write changes a file in the current folder. Paths cannot lead out of it.
func (a *agent) write(f File, how int) error {
	root, err := os.OpenRoot(".")
	if err != nil {
		return err
	}
	defer root.Close()
	path := a.expand(f.Path)
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	mode := os.FileMode(f.Mode)
	if mode == 0 {
		mode = 0o644
	}
	file, err := root.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = io.WriteString(file, a.expand(f.Text))
	fmt.Fprintf(a.stdout, "edited %s\n", path)
	return errors.Join(err, file.Close())
}

// shell runs a line. It returns an exitError if the line fails.
func (a *agent) shell(line string) error {
	fmt.Fprintf(a.stdout, "$ %s\n", line)
	return a.command("sh", "-c", line)
}

// commit commits all changes, under the agent's own identity if the user has none. The first commit of an issue always
// changes a file.
func (a *agent) commit(message string) error {
	const something = `git add --all && if git diff --quiet --cached "${RALPH_BASE:-HEAD}"; then echo x >"work-$RALPH_ISSUE_KEY" && git add --all; fi`
	if err := a.command("sh", "-c", something); err != nil {
		return err
	}
	args := []string{"commit", "--quiet", "--allow-empty", "--message", message}
	if os.Getenv("GIT_AUTHOR_EMAIL") == "" {
		args = append([]string{"-c", "user.name=scripted agent", "-c", "user.email=scripted-agent@example.invalid"}, args...)
	}
	if err := a.command("git", args...); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "committed: %s\n", message)
	return nil
}

func (a *agent) command(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = a.stdout, a.stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitError(max(exit.ExitCode(), 1)) // a signal gives -1
	}
	return err
}

// waitFor returns when the file exists. It polls, because there is no portable event for that.
func waitFor(path string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := os.Lstat(path)
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		<-tick.C
	}
}

// lock locks the file until the program ends, however it ends. If another agent holds the lock, it appends a line to the
// file and ends the program.
func (a *agent) lock(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_, err = fmt.Fprintf(f, "%d works on %s beside another agent\n", a.facts.PID, a.facts.Key)
		return errors.Join(exitError(8), err, f.Close())
	}
	a.locked = append(a.locked, f) // closing the file, also by garbage collection, would unlock it
	return err
}
