package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a folder that stands for a user's machine. It has a home and an empty repository.
type machine struct {
	root, home, repo string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := machine{root: root, home: filepath.Join(root, "home"), repo: filepath.Join(root, "repo")}
	for _, dir := range []string{m.home, m.repo} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git := exec.CommandContext(t.Context(), "git", "init", "--quiet", m.repo)
	git.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	return m
}

func (m machine) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(m.repo, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// trust accepts the configuration of the repository.
func (m machine) trust(t *testing.T) {
	t.Helper()
	if got := m.run(t, nil, "trust", "--yes"); got.status != 0 {
		t.Fatalf("ralph trust: %+v", got)
	}
}

func (m machine) host(stdout, stderr *bytes.Buffer) compose.Host {
	return compose.Host{
		Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Dir: m.repo,
		Env:     []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH")},
		Service: "unix:" + filepath.Join(m.root, "none.sock"), // not the service of the machine that runs the tests
	}
}

// ran is the result of a command line. ROOT stands for the machine's folder.
type ran struct {
	status         int
	stdout, stderr string
}

func (m machine) run(t *testing.T, change func(*compose.Host), args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	h := m.host(&stdout, &stderr)
	if change != nil {
		change(&h)
	}
	status := Run(t.Context(), args, h)
	checkHints(t, args, stderr.String()+stdout.String())
	cut := func(b bytes.Buffer) string { return strings.ReplaceAll(b.String(), m.root, "ROOT") }
	return ran{status: status, stdout: cut(stdout), stderr: cut(stderr)}
}

// flagIn matches a flag in a line for people, with the text before it back to a colon, a semicolon or a backquote.
var (
	flagIn   = regexp.MustCompile("([^:;`\n]*?)--([a-z][a-z0-9-]+)")
	programs = regexp.MustCompile(`\b(git|docker|podman|codex|claude|npm|sbx|gh)\b`) // programs with flags of their own
)

// checkHints fails the test if ralph's output proposes a flag that the command lacks: the command that ran, or the one that
// the line names.
func checkHints(t *testing.T, args []string, said string) {
	t.Helper()
	root := newRoot(compose.New(compose.Host{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}))
	ran, _, err := root.Find(slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") }))
	if err != nil || ran == root {
		return
	}
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "ralph: ") && !strings.Contains(line, " fix: ") || strings.Contains(line, "unknown flag") {
			continue
		}
		for sentence := range strings.SplitSeq(line, "; ") {
			before := ""
			for _, found := range flagIn.FindAllStringSubmatch(sentence, -1) {
				before += " " + found[1]
				if strings.HasSuffix(before, ", or ") { // as: git merge --continue, or --sandbox
					before = ""
				}
				on := ran
				if programs.MatchString(before) || slices.Contains(args, "--"+found[2]) {
					continue
				}
				if i := strings.LastIndex(before, " ralph "); i >= 0 {
					if named, _, err := root.Find(strings.Fields(before[i+7:])); err == nil && named != root {
						on = named
					}
				}
				on.InheritedFlags()
				if on.Flags().Lookup(found[2]) == nil {
					t.Errorf("ralph %s: %s has no flag --%s: %s", strings.Join(args, " "), on.CommandPath(), found[2], line)
				}
			}
		}
	}
}

// canceled returns a context that has ended.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exit.ErrKilled)
	return ctx
}

// journalIn opens the only journal below a folder, and returns the journal's folder. The names may have wildcards.
func journalIn(t *testing.T, folders ...string) (store *sqlite.Store, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(append(folders, "state.db")...))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	store, err = sqlite.Open(t.Context(), files[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, filepath.Dir(files[0])
}
