package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// hangUp closes a tracker's connections.
func hangUp(t *testing.T, forge tracker.Tracker) {
	t.Helper()
	switch c := forge.(type) {
	case interface{ Close() error }:
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	case interface{ Close() }:
		c.Close()
	}
}

// TestPriorityLabels checks that configured labels replace the default ones, on both forges.
func TestPriorityLabels(t *testing.T) {
	t.Parallel()
	labels := []string{"Urgent", "P1", "severity=high", "other"}
	for name, open := range map[string]func(t *testing.T) (config.Config, []string){
		"github": func(t *testing.T) (config.Config, []string) {
			t.Helper()
			s := githubtest.New(t)
			for _, l := range labels {
				s.AddIssue(githubtest.Issue{Title: l, Labels: []string{l}})
			}
			return config.Config{Project: "http://" + s.Host() + "/acme/widgets.git", ForgeURL: s.BaseURL()}, []string{"GITHUB_TOKEN=" + githubtest.Token}
		},
		"gitlab": func(t *testing.T) (config.Config, []string) {
			t.Helper()
			s := gitlabtest.New(t)
			p, ada := s.AddProject("group/project"), s.AddUser(gitlabtest.User{Username: "ada"})
			p.SetMember(ada, gitlabtest.Maintainer)
			s.AddToken(ada, "glpat-testtoken0123456789", time.Time{}, "api")
			for _, l := range labels {
				p.AddIssue(gitlabtest.Issue{Title: l, Author: ada, Labels: []string{l}})
			}
			return config.Config{Project: p.Remote(), ForgeURL: s.URL}, []string{"GITLAB_TOKEN=glpat-testtoken0123456789"}
		},
	} {
		for _, c := range []struct {
			configured []string
			want       string
		}{
			{nil, "Urgent 0, P1 2, severity=high 0, other 0"},
			{[]string{"urgent=1", "severity=high=7"}, "Urgent 1, P1 0, severity=high 7, other 0"},
		} {
			t.Run(fmt.Sprint(name, c.configured), func(t *testing.T) {
				t.Parallel()
				cfg, env := open(t)
				cfg.Tracker, cfg.PriorityLabels = name, c.configured
				p := &compose.Parts{Config: cfg, State: filepath.Join(t.TempDir(), "state"), Secrets: redact.New()}
				var err error
				if p.Backlog, err = compose.New(compose.Host{Env: env, Stdout: io.Discard, Stderr: io.Discard}).Tracker(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				defer hangUp(t, p.Backlog)
				l, err := p.Backlog.List(t.Context(), tracker.Query{})
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				for n, i := range l.Issues {
					if n > 0 {
						got += ", "
					}
					got += fmt.Sprint(i.Title, " ", i.Priority)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("priorities (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// fakeTracker is a read-only backlog on a fictional server.
type fakeTracker struct {
	tracker.ReadOnly
	settings tracker.Settings
	open     *atomic.Int32
}

// Close counts the closed trackers.
func (f fakeTracker) Close() error {
	f.open.Add(-1)
	return nil
}

func (fakeTracker) Name() string { return "acmetrack" }

func (f fakeTracker) List(ctx context.Context, _ tracker.Query) (tracker.Listing, error) {
	if _, err := f.settings.Token.Token(ctx); err != nil {
		return tracker.Listing{}, err
	}
	issue := tracker.Issue{Key: "acme-1", ID: "ACME-1", URL: "acme://1", Title: "From " + f.settings.Project, Labels: []string{"no-human"}, Open: true}
	return tracker.Listing{Issues: []tracker.Issue{issue}}, nil
}

func (fakeTracker) Get(context.Context, string) (tracker.Issue, error) {
	return tracker.Issue{}, tracker.ErrNotFound
}

func (fakeTracker) Inspect(context.Context, tracker.Expectation) []tracker.Finding {
	return []tracker.Finding{{Subject: tracker.FindingLabels, Severity: tracker.Warn, Detail: "do not exist: in-review"}}
}

func (fakeTracker) CreateLabels(context.Context, []string) error { return tracker.ErrReadOnly }

// TestNewTracker checks that init, doctor, work, help, completion, tracker auto and the denied variables support a new
// tracker by its descriptor alone.
func TestNewTracker(t *testing.T) {
	t.Parallel()
	var opened, open atomic.Int32
	kind := tracker.Descriptor{
		Name: "acmetrack", Title: "AcmeTrack", Summary: "tickets of an AcmeTrack board", Hosts: []string{"acmetrack.*"},
		Service: "https://acmetrack.example", TokenVars: []string{"ACME_KEY"}, Options: []tracker.Option{tracker.OptionProject},
		Open: func(s tracker.Settings) (tracker.Tracker, error) {
			opened.Add(1)
			open.Add(1)
			return fakeTracker{settings: s, open: &open}, nil
		},
	}
	with := func(h *compose.Host) {
		h.Trackers = []tracker.Descriptor{kind}
		h.Env = append(h.Env, "ACME_KEY=secret-of-acme")
	}
	m := newMachine(t)
	m.remote(t, "git@acmetrack.example.com:acme/widgets.git")
	asked := m.run(t, func(h *compose.Host) {
		with(h)
		h.Interactive, h.Stdin = true, strings.NewReader("\n")
	}, "init", "--agent=command", "--agent-command=true", "--sandbox=none", "--gate=printenv")
	if asked.status != 0 || !strings.Contains(asked.stderr, "tickets of an AcmeTrack board") {
		t.Errorf("init: %+v", asked)
	}
	if got := m.run(t, with, "config", "tracker"); got.stdout != "acmetrack\n" {
		t.Errorf("the tracker that init wrote: %+v", got)
	}
	m.commit(t)
	offline := []string{"--remote=none", "--project=acme/widgets"}
	if got := m.run(t, with, append([]string{"work", "--dry-run"}, offline...)...); got.status != 0 || !strings.Contains(got.stdout, "From https://acmetrack.example/acme/widgets") {
		t.Errorf("work: %+v", got)
	}
	doctor := m.run(t, with, append([]string{"doctor", "--sandbox=none"}, offline...)...)
	for _, want := range []string{"acmetrack: 1 open issue with label no-human", "do not exist: in-review", "ralph doctor --create-labels"} {
		if !strings.Contains(doctor.stdout, want) {
			t.Errorf("doctor lacks %q: %+v", want, doctor)
		}
	}
	for _, args := range [][]string{{"work", "--help-all"}, {"help", "init"}} {
		if got := m.run(t, with, args...); !strings.Contains(got.stdout, "acmetrack") {
			t.Errorf("%v does not name it: %s", args, got.stdout)
		}
	}
	if got := m.run(t, with, "__complete", "work", "--tracker", ""); !slices.Contains(strings.Split(got.stdout, "\n"), "acmetrack") {
		t.Errorf("completion: %+v", got)
	}
	// A command on this host without a sandbox does not see the tracker's token.
	ran := m.run(t, with, "sandbox", "exec", "--sandbox=none", "--", "printenv")
	if ran.status != 0 || !strings.Contains(ran.stdout, "HOME=") || strings.Contains(ran.stdout, "secret-of-acme") {
		t.Errorf("sandbox exec: %+v", ran)
	}
	if opened.Load() == 0 || open.Load() != 0 {
		t.Errorf("of %d trackers %d are not closed", opened.Load(), open.Load())
	}
	// Without a configuration, the remote's host decides.
	if err := os.RemoveAll(filepath.Join(m.repo, ".ralph")); err != nil {
		t.Fatal(err)
	}
	p := &compose.Parts{Config: config.Config{Tracker: "auto", Project: "https://acmetrack.internal/acme/widgets"}}
	a := compose.New(compose.Host{Stdout: io.Discard, Stderr: io.Discard, Trackers: []tracker.Descriptor{kind}})
	if got, err := a.TrackerKind(t.Context(), p); err != nil || got.Name != "acmetrack" {
		t.Errorf("auto: %q, %v", got.Name, err)
	}
}

// TestFiltersAreNotIgnored checks that filters apply to the local backlog, and that a filter that a tracker does not support
// is an error before anything starts.
func TestFiltersAreNotIgnored(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md",
		"---\ntitle: One\nauthor: Ada\nassignees: [grace, Ada]\nmilestone: V1\nlabels: no-human\n---\n")
	m.write(t, ".ralph/backlog/two.md", "---\ntitle: Two\nlabels: no-human\n---\n")
	m.commit(t)
	for _, filter := range []string{"--assignee=ada", "--milestone=v1"} {
		got := m.run(t, nil, "work", "--dry-run", filter, "--sandbox=none", "--agent-command=true")
		if got.status != 0 || !strings.Contains(got.stdout, "One") || strings.Contains(got.stdout, "Two") {
			t.Errorf("%s: %+v", filter, got)
		}
	}
	if got := m.run(t, nil, "work", "--dry-run", "--author=ada"); got.status != exit.Usage || got.stdout != "" ||
		!strings.Contains(got.stderr, "tracker local does not support authors") {
		t.Errorf("anybody can write a name into a file: %+v", got)
	}
	bare := tracker.Descriptor{Name: "bare", Open: func(tracker.Settings) (tracker.Tracker, error) { panic("opened") }}
	_, err := bare.New(tracker.Settings{Milestone: "v1"})
	if unsupported, ok := errors.AsType[*tracker.UnsupportedError](err); !ok || unsupported.Option != tracker.OptionMilestone {
		t.Errorf("a tracker without milestones: %v", err)
	}
}

// TestCyclesAreNamed checks that a dry run, and the end of a sweep, name issues that block each other.
func TestCyclesAreNamed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for name, blocker := range map[string]string{"One": "Two", "Two": "three", "three": "One", "four": "One"} {
		m.write(t, ".ralph/backlog/"+name+".md", "---\nlabels: no-human\nblocked_by: "+blocker+"\n---\n")
	}
	m.commit(t)
	const want = "none can start: One waits for Two waits for three waits for One\n"
	args := []string{"work", "--sandbox=none", "--agent-command=true"}
	for _, more := range []string{"--dry-run", "--parallel=1"} {
		if got := m.run(t, nil, append(args, more)...); got.status != 0 || strings.Count(got.stdout+got.stderr, want) != 1 {
			t.Errorf("%s: %+v", more, got)
		}
	}
	if got := m.run(t, nil, append(args, "--dry-run", "--json")...); !strings.Contains(got.stdout, `"cycles"`) {
		t.Errorf("%+v", got)
	}
}

// Sandbox none hides the forges' tokens even in a program without a registry of trackers.
func TestTokensWithoutRegistry(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	env := []string{"PATH=" + os.Getenv("PATH"), "KEPT=secret"}
	names := compose.New(compose.Host{}).Trackers.SecretVars()
	for _, name := range names {
		env = append(env, strings.ReplaceAll(name, "*", "X")+"=secret")
	}
	box, err := sandboxes.NewNone(sandboxes.NoneConfig{Env: env}).Open(t.Context(), sandboxes.Spec{Run: t.Name(), Worktree: m.home})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"env"}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "secret") != 1 || len(names) < 10 {
		t.Errorf("of %d names these are seen:\n%s", len(names), out.String())
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Only forges support auto-merge.
func TestAutoMergeNeedsAForge(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/a.md", "---\nlabels: [no-human]\n---\n# A\n")
	m.commit(t)
	got := m.run(t, nil, "work", "--dry-run", "--agent-command=true", "--publish=auto-merge")
	if got.status != exit.Usage || !strings.Contains(got.stderr, "--publish: auto-merge needs a forge that can merge requests, and tracker local cannot; use merge") {
		t.Errorf("%+v", got)
	}
}
