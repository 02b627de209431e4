package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/leak"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// redacted is the replacement of a secret.
const redacted = "[secret]"

// command is one line of commands.jsonl.
type command struct {
	Number  int64     `json:"number"`
	Argv    []string  `json:"argv"`
	Dir     string    `json:"dir,omitempty"`
	Env     []string  `json:"env,omitempty"` // names only
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Code    int       `json:"code"`
	Signal  string    `json:"signal,omitempty"`
	Error   string    `json:"error,omitempty"` // why the command did not run to a known end
	Stdout  string    `json:"stdout"`          // path of the log in the folder of artefacts
	Stderr  string    `json:"stderr"`
	Dropped int64     `json:"dropped,omitempty"` // bytes in neither log
}

// log records one command. It replaces the command's writers; the returned function completes the record.
func (in *Instance) log(cmd *sandboxes.Command) (func(session.Result, error) error, error) {
	finder := in.finder(cmd.Env)
	text := func(s string) string { return string(finder.Replace([]byte(s), redacted)) }
	c := command{Number: in.count.Add(1), Dir: text(cmd.Dir), Env: names(cmd.Env)}
	for _, a := range cmd.Argv {
		c.Argv = append(c.Argv, text(a))
	}
	c.Stdout = filepath.Join(logsName, fmt.Sprintf("%04d.stdout", c.Number))
	c.Stderr = filepath.Join(logsName, fmt.Sprintf("%04d.stderr", c.Number))
	out, err := in.openLog(c.Stdout, finder)
	if err != nil {
		return nil, err
	}
	errs, err := in.openLog(c.Stderr, finder)
	if err != nil {
		return nil, errors.Join(err, out.close())
	}
	*cmd = sandboxes.Tee(*cmd, out, errs)
	return func(r session.Result, err error) error {
		c.Started, c.Seconds = r.Started.UTC(), r.Duration.Seconds()
		c.Code, c.Signal = r.Exit.Code, r.Exit.Signal
		if err != nil {
			c.Error = text(err.Error())
		}
		logs := errors.Join(out.close(), errs.close())
		c.Dropped = out.limit.Dropped + errs.limit.Dropped
		return errors.Join(err, logs, in.record.command(c))
	}, nil
}

// finder returns a finder for the values of secret variables and of logins.
func (in *Instance) finder(env []string) *leak.Finder {
	values := in.Secrets()
	for _, entry := range slices.Concat(in.config.HostEnv, in.config.Session.Spec.Env, env) {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(in.config.Secrets, name) || leak.SecretName(name) {
			values = append(values, value)
		}
	}
	return leak.Known(values)
}

// log is a file with the redacted output of a command, up to a limit.
type log struct {
	io.WriteCloser
	limit *proc.Limit
	file  *os.File
}

// openLog creates a log. It never writes to an existing file.
func (in *Instance) openLog(name string, finder *leak.Finder) (*log, error) {
	f, err := in.record.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrClosed) {
		return nil, sandboxes.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("open the log of a command: %w", err)
	}
	limit := &proc.Limit{To: f, Room: in.config.MaxLog}
	return &log{finder.Redact(limit, redacted), limit, f}, nil
}

// close returns the errors that made the log incomplete, such as a full disk. They do not affect the command.
func (l *log) close() error {
	if err := errors.Join(l.Close(), l.limit.Err, l.file.Close()); err != nil {
		return fmt.Errorf("write the log of a command: %w", err)
	}
	return nil
}
