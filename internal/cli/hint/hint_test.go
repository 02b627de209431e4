package hint

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/token"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/statedir"
)

// The login hint applies to all kinds of trackers, not only to forges.
func TestTrackerFixWithoutToken(t *testing.T) {
	t.Parallel()
	kind := tracker.Descriptor{LoginHint: "make a token"}
	const want = "make a token; set it in one of these variables, or name another source: token-env, token-file or token-command"
	for _, err := range []error{fmt.Errorf("%w: set X", token.ErrNone), &tracker.RefusedError{Err: fmt.Errorf("list: %w", token.ErrNone)}} {
		if got := Tracker(kind, err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
	if got := Tracker(kind, tracker.ErrNotFound); got != "" {
		t.Errorf("%q", got)
	}
}

// If a remote refuses git's login, the hint names another login or the right to push, once.
func TestRefusedLogin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"origin: git fetch: Authentication failed for 'http://forge.example/a/b.git/'": true, "origin: git fetch: could not resolve host: forge.example": false,
		"origin: git push: could not read Username for 'https://forge.example'": true, "origin: git push: The requested URL returned error: 403": true,
	} {
		err := fmt.Errorf("%w: %s", worktree.ErrRemote, text)
		for _, got := range []string{For(err), Claims(err), Login(err)} {
			if strings.Contains(got, "git needs a valid login") != want || strings.Contains(got, "token-env") != want || want && strings.Count(got, "allow it to push") != 1 {
				t.Errorf("%s: %q", text, got)
			}
		}
	}
}

// TestUnwritable checks that the hint fits the place where ralph may not write.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	at := func(op, path string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"state folder":           {fmt.Errorf("%w: %w", statedir.ErrFolder, at("mkdir", "/proc/x", unix.EACCES)), "state-dir"},
		"in the checkout":        {fmt.Errorf("state folder x: %w", statedir.ErrInCheckout), "state-dir"},
		"read-only state folder": {fmt.Errorf("%w: %w", statedir.ErrFolder, unix.EROFS), "state-dir"},
		"rights":                 {fmt.Errorf("claim x: %w", at("mkdir", "/proc/no/x", unix.EACCES)), "ls -ld /proc"},
		"read-only":              {at("open", "/proc/x", unix.EROFS), "read-only"},
		"read-only, a rename":    {&os.LinkError{Op: "rename", Old: "/proc/x", New: "/proc/y", Err: unix.EROFS}, "read-only"},
		"a program":              {at("fork/exec", "/proc/x", unix.EACCES), ""},
		"inside a root":          {at("openat", "x", unix.EACCES), ""},
		"missing":                {at("open", "/proc/x", unix.ENOENT), ""},
	} {
		if got := For(c.err); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A missing program is recognised by the failure's class, not by its text.
func TestMissingProgram(t *testing.T) {
	t.Parallel()
	for class, want := range map[agents.Class]string{agents.NotStarted: Agent, agents.OtherFailure: "", agents.RateLimit: ""} {
		f := &agents.Failure{Class: class, Message: "not found; install it"}
		if got := For(fmt.Errorf("work: %w", &report.UnavailableError{Failure: f})); got != want || Failure(f) != want || Failure(nil) != "" {
			t.Errorf("%s: %q", class, got)
		}
	}
}

// A refused connection is reported with the flag that allows it, if there is one.
func TestRefusedConnectionNamesItsFlag(t *testing.T) {
	t.Parallel()
	refused := func(host string, port int, cause sandboxes.Cause) sandboxes.Notice {
		return sandboxes.Notice{Text: "refused", Subject: sandboxes.Subject{Cause: cause, Host: host, Port: port}}
	}
	for n, want := range map[sandboxes.Notice]string{
		refused("a.example", 443, sandboxes.NotAllowed):            "; --allow a.example, or allow: [a.example], allows it",
		refused("a.example", 8081, sandboxes.NotAllowed):           "; --allow a.example:8081, or allow: [a.example:8081], allows it",
		refused("mirror.corp", 443, sandboxes.AddressRefused):      "; --allow-private mirror.corp, or allow-private: [mirror.corp], allows it",
		refused("localhost", 4873, sandboxes.NotAllowed):           "; --allow-private localhost:4873, or allow-private: [localhost:4873], allows it",
		refused("10.1.2.3", 443, sandboxes.NotAllowed):             "; --allow-private 10.1.2.3, or allow-private: [10.1.2.3], allows it",
		refused("fc00::1", 8081, sandboxes.NotAllowed):             "; --allow-private [fc00::1]:8081, or allow-private: [[fc00::1]:8081], allows it",
		refused("169.254.169.254", 80, sandboxes.NotAllowed):       "",
		refused("169.254.169.254", 80, sandboxes.AddressRefused):   "",
		refused("a.example", 443, ""):                              "",
		refused("", 0, sandboxes.ModelRefused):                     "; to allow it, name it in allow-models",
		{Text: "network: a.example:443 was refused (not-allowed)"}: "", // the text of a notice decides nothing
		{Text: "an agent killed at the memory limit of its own"}:   "",
	} {
		if got := Raising(n); got != n.Text+want {
			t.Errorf("%q", got)
		}
	}
	e := &workspace.BaselineError{Refused: []sandboxes.Notice{
		refused("127.0.0.1", 8081, sandboxes.NotAllowed), refused("b.invalid", 443, sandboxes.NotAllowed), refused("b.invalid", 80, sandboxes.NotAllowed),
	}}
	const want = "no agent was started; to allow the connections: --allow-private 127.0.0.1:8081 --allow b.invalid; otherwise correct the command"
	if got := Baseline(e, func(string) bool { return false }); got != want {
		t.Errorf("%q", got)
	}
	if got := Baseline(&workspace.BaselineError{}, nil); !strings.Contains(got, "--allow HOST") {
		t.Errorf("where nothing was refused: %q", got)
	}
}

// TestLimitsOfProcesses checks which system limit the hint names.
func TestLimitsOfProcesses(t *testing.T) {
	t.Parallel()
	fork := &fs.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: unix.EAGAIN}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("could not start git: %w", unix.EMFILE), "allow more open files (ulimit -n shows how many)"},
		{fmt.Errorf("open: %w", fork), "your user may start no more processes: end some, or allow more of them (ulimit -u shows how many)"},
		{fmt.Errorf("read: %w", unix.EAGAIN), ""},
	} {
		if got := For(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	if got := SandboxLine("native", fork); !strings.HasSuffix(got, "(ulimit -u shows how many)") {
		t.Errorf("%q", got)
	}
}
