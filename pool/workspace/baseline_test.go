package workspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/workspace/homes"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// imaged is a provider whose programs come from an image.
type imaged struct {
	sandboxes.Provider
	image string
}

func (i imaged) HomeKey(context.Context) (string, error) { return i.image, nil }

// The gate's result with the programs of one image does not count for another image.
func TestResultsOfAnotherImage(t *testing.T) {
	t.Parallel()
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	name := func(p sandboxes.Provider) string {
		return NewBaselines(&Config{Sandboxes: p}, t.TempDir()).name(t.Context(), Baseline{})
	}
	first := name(imaged{none, "one"})
	if again := name(imaged{none, "one"}); again != first {
		t.Errorf("%s and then %s", first, again)
	}
	if other := name(imaged{none, "two"}); other == first {
		t.Error("another image has the same name")
	}
}

// A gate that fails on the base is a result for the agent, unless its output shows that it lacked a connection.
func TestGateThatLacksAConnection(t *testing.T) {
	t.Parallel()
	refused := gateway.Refusals([]sandboxes.Refusal{{Host: "registry.example.com", Port: 443, Reason: "not-allowed", Count: 1}}, 0)
	for name, test := range map[string]struct {
		tail    string
		refused []sandboxes.Notice
		ran     bool
	}{
		"fails by itself":         {"not ok 1 - adds\n# fail 1\n", nil, true},
		"and something else asks": {"not ok 1 - adds\n# fail 1\n", refused, true},
		"names the host":          {"error: GET https://registry.example.com/left-pad\n", refused, false},
		"names none":              {"npm error code ENOTFOUND\n", refused, false},
		"through the proxy":       {"CONNECT tunnel failed, response 403\n", refused, false},
		"resolves none":           {"curl: (6) Could not resolve host: other.example\n", refused, false},
		"nothing was refused":     {"npm error code ENOTFOUND\n", nil, true},
	} {
		c := Checked{Checks: []loop.Check{{Command: "npm test", ExitCode: 1, Tail: test.tail}}, Refused: test.refused}
		if c.allCouldRun() != test.ran {
			t.Errorf("%s: it ran: %t, want %t", name, c.allCouldRun(), test.ran)
		}
	}
}

func TestCauseOfAFailure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "one\ntwo\n": "two",
		"npm error Missing script: \"nope\"\nnpm error\nnpm error A complete log of this run is in a folder\n": `npm error Missing script: "nope"`,
		"  ModuleNotFoundError: No module named 'app'\n\nRan 1 test in 0.000s\n\nFAILED (errors=1)\n":          "ModuleNotFoundError: No module named 'app'",
		"sh: 1: tool: not found\n": "sh: 1: tool: not found",
		"fatal: transport 'file' not allowed\nfatal: clone of 'a' into submodule path 'b' failed\nFailed to clone 'b' a second time, aborting\n":                                         "fatal: transport 'file' not allowed",
		"Your requirements could not be resolved.\n\n  Problem 1\n    - It requires php >=9 but your php version (8.4) does not satisfy that requirement.\n":                             "- It requires php >=9 but your php version (8.4) does not satisfy that requirement.",
		"  curl error 56 while downloading https://a.example: C  \n  ONNECT tunnel failed        \n\ninstall [--prefer-source] [--dev]\n":                                                "curl error 56 while downloading https://a.example: C",
		"npm ERR! code CERT\nnpm ERR! request to HOST failed, reason: self-signed certificate\n\nnpm ERR! A complete log of this run can be found in:\nnpm ERR!     /home/agent/x.log\n": "npm ERR! request to HOST failed, reason: self-signed certificate",
		"npm error code E1\nnpm error A complete log of this run can be found in: /home/agent/x.log\nmake: *** [test] Error 1\n":                                                         "make: *** [test] Error 1",
		"npm ERR! A complete log of this run can be found in:\nnpm ERR!     /home/agent/x.log\nValueError: no version\n":                                                                 "ValueError: no version",
		"npm error code EUSAGE\nnpm error A complete log of this run can be found in: /home/agent/x.log\n":                                                                               "npm error code EUSAGE",
		"  error: subprocess-exited-with-error\n      ValueError: no version\n      [end of output]\nerror: subprocess-exited-with-error\n\n╰─> See above for output.\n":                 "ValueError: no version",
	} {
		if got := Cause(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A result is dropped once the home that its run left is gone: without another run of setup nobody would fill it again.
func TestResultWithoutItsHome(t *testing.T) {
	t.Parallel()
	kept := &homes.Store{Dir: t.TempDir(), MaxBytes: 1}
	l := NewBaselines(&Config{Homes: kept}, t.TempDir())
	passed := &journal.Verification{Checks: []loop.Check{{Command: "true"}}}
	if err := errors.Join(l.save("without", baseline{Verification: passed}), l.save("with", baseline{passed, "home-1"})); err != nil {
		t.Fatal(err)
	}
	known := func() (list []string) {
		for _, name := range []string{"without", "with"} {
			if l.load(name) != nil {
				list = append(list, name)
			}
		}
		return list
	}
	if got := known(); !slices.Equal(got, []string{"without"}) {
		t.Errorf("no home: %q", got)
	}
	if err := os.Mkdir(filepath.Join(kept.Dir, "home-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := known(); len(got) != 2 {
		t.Errorf("a home: %q", got)
	}
	if err := os.Remove(filepath.Join(kept.Dir, "home-1")); err != nil {
		t.Fatal(err)
	}
	if kept.MaxBytes = 0; len(known()) != 2 {
		t.Error("homes that are not kept are missed")
	}
}

// Only the oldest results are removed when there are too many.
func TestNewestResultsAreKept(t *testing.T) {
	t.Parallel()
	l := NewBaselines(&Config{}, t.TempDir())
	passed := &journal.Verification{Checks: []loop.Check{{Command: "true"}}}
	const saved = baselinesKept + 2
	at := time.Now().Add(-time.Hour)
	for n := range saved {
		name := strconv.Itoa(n)
		at = at.Add(time.Second)
		if err := errors.Join(l.save(name, baseline{Verification: passed}), os.Chtimes(filepath.Join(l.dir, name), at, at)); err != nil {
			t.Fatal(err)
		}
	}
	var kept []int
	for n := range saved {
		if l.load(strconv.Itoa(n)) != nil {
			kept = append(kept, n)
		}
	}
	if len(kept) != baselinesKept || kept[0] != saved-baselinesKept {
		t.Errorf("kept %v", kept)
	}
}

// A gate that could not run is forgotten after a day, when no run can wait for it any more.
func TestFailedGatesAreForgotten(t *testing.T) {
	t.Parallel()
	l := NewBaselines(&Config{}, t.TempDir())
	l.noteFailed("old", failedGate{at: time.Now().Add(-2 * ResultLife)})
	l.noteFailed("new", failedGate{at: time.Now()})
	if _, known := l.failedGates["new"]; len(l.failedGates) != 1 || !known {
		t.Errorf("%v", l.failedGates)
	}
}

// refusing is a provider whose sandboxes refuse a connection for each byte of a file.
type refusing struct {
	sandboxes.Provider
	file string
}

func (r refusing) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := r.Provider.Open(ctx, spec)
	return refusingBox{box, r.file}, err
}

type refusingBox struct {
	sandboxes.Sandbox
	file string
}

func (b refusingBox) Refusals() (list []sandboxes.Refusal, more int) {
	asked, _ := os.ReadFile(b.file)
	if len(asked) == 0 {
		return nil, 0
	}
	return []sandboxes.Refusal{{Host: "registry.example.com", Port: 443, Reason: "not-allowed", Count: len(asked)}}, 0
}

// A connection that was refused while setup ran and passed does not explain a failure of the gate.
func TestRefusalsOfSetupAndGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup, gate string
		want        int
	}{
		"of a setup that passed": {"printf x >>asked", "exit 1", 0},
		"of a setup that failed": {"printf x >>asked; exit 1", "true", 1},
		"of the gate":            {"true", "printf x >>asked; exit 1", 1},
		"of both":                {"printf x >>asked", "printf x >>asked; exit 1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, base := committed(t, worktree.Options{}, "a")
			asked := filepath.Join(t.TempDir(), "asked")
			config := &Config{
				Repo: repo, Sandboxes: refusing{sandboxes.NewNone(sandboxes.NoneConfig{}), asked}, Log: slog.New(slog.DiscardHandler),
				Env: []string{"ASKED=" + asked},
			}
			line := func(l string) []loop.Command {
				return []loop.Command{{Line: "asked=$ASKED; cd \"$(dirname \"$asked\")\"; " + l}}
			}
			got, err := config.Check(t.Context(), Checkout{
				Run: "refusals-" + strings.ReplaceAll(name, " ", "-"), Name: "base", Key: "a", Base: base, From: base.Commit,
				Checks: journal.Checks{Setup: line(c.setup), Gate: line(c.gate)},
			})
			if err != nil || len(got.Refused) != c.want {
				t.Errorf("%q, %v", got.Refused, err)
			}
		})
	}
}

// starter is a provider that records what it starts before there are files for it.
type starter struct {
	sandboxes.Provider
	repo *worktree.Repo
	told *[]string
}

func (s starter) note(what, run string) {
	trees, err := s.repo.Trees(context.Background())
	*s.told = append(*s.told, fmt.Sprint(what, " ", run, " ", len(trees), " ", err))
}

func (s starter) Start(run string) (done func()) {
	s.note("start", run)
	return func() { s.note("done", run) }
}

func (s starter) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	s.note("open", spec.Run)
	return s.Provider.Open(ctx, spec)
}

// The sandbox of a checkout starts before the files are there, under the name with which it opens.
func TestSandboxStartsAhead(t *testing.T) {
	t.Parallel()
	repo, base := committed(t, worktree.Options{}, "a")
	var told []string
	config := &Config{Repo: repo, Sandboxes: starter{sandboxes.NewNone(sandboxes.NoneConfig{}), repo, &told}, Log: slog.New(slog.DiscardHandler)}
	_, err := config.Check(t.Context(), Checkout{
		Run: "ahead", Name: "base", Key: "a", Base: base, From: base.Commit, Checks: journal.Checks{Gate: []loop.Command{{Line: "true"}}},
	})
	want := []string{"start ahead-base 0 <nil>", "open ahead-base 1 <nil>", "done ahead-base 0 <nil>"}
	if err != nil || !slices.Equal(told, want) {
		t.Errorf("%q, %v, want %q", told, err, want)
	}
}

// closed is a provider whose sandboxes do not open.
type closed struct{ sandboxes.Provider }

func (closed) Open(context.Context, sandboxes.Spec) (sandboxes.Sandbox, error) {
	return nil, errors.New("open sandbox closed: no room")
}

// A provider's error names the sandbox: only the place is put before it.
func TestGateOnBaseInASandboxThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	repo, base := committed(t, worktree.Options{}, "a")
	c := &Config{Repo: repo, Sandboxes: closed{sandboxes.NewNone(sandboxes.NoneConfig{})}}
	checks := journal.Checks{Gate: []loop.Command{{Line: "true"}}}
	_, err := NewBaselines(c, t.TempDir()).Get(t.Context(), Baseline{
		Run: "1", Key: "a", Base: base, Checks: checks, Notify: func(journal.EventKind, string) {},
	})
	if want := "gate on " + base.Name + ": open sandbox closed: no room"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
