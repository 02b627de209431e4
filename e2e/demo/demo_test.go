package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/e2e/scripted"
)

// asAgent is the variable that makes the test binary act as the scripted agent.
const asAgent = "DEMO_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		os.Exit(scripted.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

func fresh(t *testing.T) place {
	t.Helper()
	p := place{filepath.Join(t.TempDir(), "the demo")}
	if err := p.layOut(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// All six checks fail in the initial repository, and each says what it expects.
func TestEveryCheckFailsAtFirst(t *testing.T) {
	t.Parallel()
	p := fresh(t)
	for _, key := range append(labelled(), humanIssue) {
		out, err := p.run(t.Context(), p.repo(), "sh", "checks/run.sh", key)
		if err == nil || !strings.Contains(out, "FAIL "+key) {
			t.Errorf("%s: %v, %q", key, err, out)
		}
		if _, err := os.Stat(p.issueFile(key)); err != nil {
			t.Error(err)
		}
	}
	if out, err := p.run(t.Context(), p.repo(), "sh", "checks/run.sh", ""); err != nil || out != "" { // the gate on main, without an issue
		t.Errorf("no issue: %v, %q", err, out)
	}
	out, err := p.run(t.Context(), p.repo(), "sh", "checks/run.sh")
	if err == nil || strings.Count(out, "FAIL ") != 6 {
		t.Errorf("all checks: %v, %q", err, out)
	}
	if out, err := p.run(t.Context(), p.repo(), "git", "status", "--porcelain"); err != nil || out != "" {
		t.Errorf("the repository is not clean: %v, %q", err, out)
	}
}

// agent runs one iteration of the scripted agent like ralph.
func (p place) agent(t *testing.T, key, iteration, prompt string) error {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "--script", p.script(), "--log", p.starts())
	cmd.Dir, cmd.Stdin = p.repo(), strings.NewReader(prompt)
	cmd.Env = append(p.environment(), asAgent+"=1", "GORACE=atexit_sleep_ms=0", "RALPH_ISSUE_KEY="+key, "RALPH_ITERATION="+iteration)
	out, err := cmd.CombinedOutput()
	if err == nil && !bytes.Contains(out, []byte("<promise>COMPLETE</promise>\n")) {
		t.Errorf("%s: no signal in %q", key, out)
	}
	return err
}

// play does ralph's work by hand: it works each issue on a branch, merges it and reports.
func (p place) play(t *testing.T) {
	t.Helper()
	git := func(args ...string) {
		t.Helper()
		if _, err := p.run(t.Context(), p.repo(), "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range labelled() {
		git("checkout", "--quiet", "-b", "ralph/"+key, "main")
		if err := p.agent(t, key, "1", "Do it."); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		out, err := p.run(t.Context(), p.repo(), "sh", "checks/run.sh", key)
		if (err != nil) != (key == "add-mean") {
			t.Fatalf("%s: after the first iteration: %v", key, err)
		}
		if err != nil {
			if err := p.agent(t, key, "2", "Again."); err == nil {
				t.Fatalf("%s: the second iteration goes on without feedback", key)
			}
			if err := os.Remove(p.starts()); err != nil { // these starts belong to the test
				t.Fatal(err)
			}
			for _, k := range []string{"add-sum", "add-max", "add-mean"} {
				f, err := os.OpenFile(p.starts(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteString(`{"key":"` + k + "\"}\n"); err != nil {
					t.Fatal(err)
				}
				f.Close()
			}
			if err := p.agent(t, key, "2", "The gate failed:\n"+out); err != nil {
				t.Fatalf("%s: second iteration: %v", key, err)
			}
		}
		git("checkout", "--quiet", "main")
		git("merge", "--quiet", "--no-ff", "--message", "Merge", "ralph/"+key)
		report, err := os.OpenFile(p.issueFile(key), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := report.WriteString("\nsucceeded\n"); err != nil {
			t.Fatal(err)
		}
		report.Close()
	}
}

// The script satisfies the checks. Verify accepts the result, and nothing less.
func TestScriptAndVerify(t *testing.T) {
	t.Parallel()
	p := fresh(t)
	if err := p.verify(t.Context()); err == nil {
		t.Error("a repository in which nothing was done is taken")
	}
	p = fresh(t)
	p.play(t)
	if err := p.verify(t.Context()); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func() error{
		"the person's issue was touched": func() error { return os.WriteFile(p.issueFile(humanIssue), []byte("x"), 0o600) },
		"a branch is missing": func() error {
			_, err := p.run(t.Context(), p.repo(), "git", "branch", "--quiet", "-D", "ralph/add-max")
			return err
		},
		"an issue was worked twice": func() error { return p.agent(t, "add-sum", "1", "") },
	} {
		if err := os.RemoveAll(filepath.Join(p.dir, "verify")); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if err := p.verify(t.Context()); err == nil {
			t.Errorf("%s, and nothing is said", name)
		}
	}
}

// TestDemo runs the whole demo, like make.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out, problems bytes.Buffer
	if err := run(t.Context(), []string{"--dir", filepath.Join(t.TempDir(), "demo")}, &out, &problems); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &problems)
	}
	if !strings.Contains(out.String(), "Five issues are done in ") {
		t.Errorf("it says:\n%s", &out)
	}
}

// The printed command can be pasted: the agent's command survives the shell and ralph's own word splitting.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{{"a", "b c"}, {"it's", `say "it's"`, "$HOME", ""}, place{"/tmp/the demo"}.command()} {
		out, err := exec.Command("sh", "-c", `for a in `+shell(argv)+`; do printf '%s\n' "$a"; done`).Output()
		if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); err != nil || strings.Join(got, "|") != strings.Join(argv, "|") {
			t.Errorf("%q comes out as %q, %v", argv, got, err)
		}
	}
}
