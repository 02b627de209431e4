package scripted_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/e2e/scripted"
)

// asAgent is the variable that makes the test binary act as the scripted agent.
const asAgent = "SCRIPTED_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		os.Exit(scripted.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// repository creates a git repository with one empty commit.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message", "start")
	return dir
}

func environment(extra ...string) []string {
	env := []string{
		"GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.invalid",
	}
	return append(env, extra...)
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// run runs the agent in dir with a script, and returns its exit state and output.
func run(t *testing.T, dir, script, prompt string, env []string, flags ...string) (cmd *exec.Cmd, stdout, stderr string) {
	t.Helper()
	cmd, out, errs := command(t, dir, script, prompt, env, flags...)
	_ = cmd.Run() // only its state matters
	if cmd.ProcessState == nil {
		t.Fatal("the agent did not start")
	}
	return cmd, out.String(), errs.String()
}

func command(t *testing.T, dir, script, prompt string, env []string, flags ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self, append([]string{"--script", file}, flags...)...)
	cmd.Dir, cmd.Env = dir, environment(append([]string{asAgent + "=1", "RALPH_ISSUE_KEY=fix-it"}, env...)...)
	cmd.Stdin = strings.NewReader(prompt)
	cmd.WaitDelay = 10 * time.Second
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	return cmd, out, errs
}

func TestWorksForReal(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	const script = `
issues:
  fix-it:
    - - expect: say more
      - write: {path: a/b.sh, text: "echo $1 {{key}}\n", mode: 0755}
      - append: {path: a/b.sh, text: "echo {{iteration}}\n"}
      - run: sh a/b.sh one
      - try: exit 4
      - commit: "Fix {{title}} on {{branch}}"
      - stderr: on the other stream
      - say: <promise>COMPLETE</promise>
`
	cmd, out, errs := run(t, dir, script, "please say more", []string{"RALPH_ISSUE_TITLE=$(reboot)", "RALPH_BRANCH=ralph/fix-it"})
	if !cmd.ProcessState.Success() {
		t.Fatalf("%v\n%s%s", cmd.ProcessState, out, errs)
	}
	if got := git(t, dir, "log", "-1", "--format=%s"); got != "Fix $(reboot) on ralph/fix-it" {
		t.Errorf("subject %q", got)
	}
	if got := git(t, dir, "show", "HEAD:a/b.sh"); got != "echo $1 fix-it\necho 1" {
		t.Errorf("file %q", got)
	}
	for _, want := range []string{"scripted agent (no model behind it): issue fix-it, iteration 1", "\none fix-it\n1\n", "exit status 4", "\n<promise>COMPLETE</promise>\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("stdout lacks %q:\n%s", want, out)
		}
	}
	if errs != "on the other stream\n" {
		t.Errorf("stderr %q", errs)
	}
}

func TestEntryByIterationAndStart(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	const script = `
issues:
  "*":
    - - say: entry one
    - - say: entry two
`
	entry := func(env []string, flags ...string) string {
		_, out, _ := run(t, dir, script, "", env, flags...)
		return out[strings.LastIndex(out, "entry"):]
	}
	for iteration, want := range map[string]string{"1": "entry one\n", "2": "entry two\n", "7": "entry two\n"} {
		if got := entry([]string{"RALPH_ITERATION=" + iteration}); got != want {
			t.Errorf("iteration %s: %q", iteration, got)
		}
	}
	log := filepath.Join(t.TempDir(), "log")
	run(t, dir, script, "", []string{"RALPH_ISSUE_KEY=other"}, "--log", log)
	for _, want := range []string{"entry one\n", "entry two\n", "entry two\n"} {
		if got := entry(nil, "--log", log, "--by", "start"); got != want {
			t.Errorf("by start: %q, want %q", got, want)
		}
	}
	starts, err := scripted.ReadLog(log)
	if err != nil || len(starts) != 4 || starts[0].Key != "other" || starts[3].Key != "fix-it" || starts[3].PID == 0 {
		t.Errorf("log: %+v, %v", starts, err)
	}
}

func TestWithoutIssue(t *testing.T) {
	t.Parallel()
	_, out, _ := run(t, repository(t), "issues: {no-issue: [[{say: alone}]]}", "", []string{"RALPH_ISSUE_KEY="})
	if !strings.Contains(out, "alone\n") {
		t.Errorf("stdout %q", out)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action string
		want   string
	}{
		"exit":        {"exit: 7", "exit status 7"},
		"exit zero":   {"exit: 0", "exit status 0"},
		"failed run":  {"run: exit 5", "exit status 5"},
		"no feedback": {"expect: feedback", "exit status 9"},
		"KILL":        {"kill: KILL", "signal: killed"},
		"TERM":        {"kill: TERM", "signal: terminated"},
		"INT":         {"kill: INT", "signal: interrupt"},
		"outside":     {`write: {path: ../x, text: y}`, "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, out, _ := run(t, repository(t), "issues: {fix-it: [[{say: before}, {"+c.action+"}, {say: after}]]}", "", nil)
			if got := cmd.ProcessState.String(); got != c.want {
				t.Errorf("ended with %s, want %s", got, c.want)
			}
			if !strings.Contains(out, "before\n") || strings.Contains(out, "after\n") {
				t.Errorf("stdout %q", out)
			}
		})
	}
}

func TestRubbish(t *testing.T) {
	t.Parallel()
	_, out, _ := run(t, repository(t), "issues: {fix-it: [[{garbage: 1000}, {say: ''}, {huge: 200000}, {grease: true}]]}", "", nil)
	if out != "" {
		t.Errorf("an action that says nothing was taken: %.100q", out)
	}
	_, out, _ = run(t, repository(t), "issues: {fix-it: [[{garbage: 1000}, {huge: 200000}, {grease: true}]]}", "", nil)
	if !strings.Contains(out, "\xff\xfe") || !strings.Contains(out, strings.Repeat("x", 200000)+"\n") || !strings.Contains(out, "grease.unknown") {
		t.Errorf("stdout of %d bytes: %.200q", len(out), out)
	}
}

// An agent that ignores SIGTERM and leaves an orphan must be killed, and the orphan stays alive.
func TestHoldsOut(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	ready, orphan := filepath.Join(dir, "ready"), 0
	script := "issues: {fix-it: [[{ignore_term: true}, {orphan: true}, {touch: '" + ready + "'}, {wait: '" + ready + ".more'}, {touch: '" + ready + ".last'}, {hang: true}]]}"
	cmd, _, _ := command(t, dir, script, "", nil)
	stdout, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	cmd.Stdout = stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, ready)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ready+".more", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, ready+".last") // it continued after the signal
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.String(); got != "signal: killed" {
		t.Errorf("ended with %s", got)
	}
	b, err := os.ReadFile(stdout.Name())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if pid, ok := strings.CutPrefix(line, "orphan "); ok {
			orphan, _ = strconv.Atoi(strings.TrimSpace(pid))
		}
	}
	if orphan == 0 {
		t.Fatalf("no orphan in %q", b)
	}
	if err := syscall.Kill(orphan, syscall.SIGKILL); err != nil {
		t.Errorf("the orphan is gone: %v", err)
	}
}

// The lock lasts as long as the agent that holds it.
func TestAlone(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	lock, ready := filepath.Join(dir, "lock"), filepath.Join(dir, "ready")
	const script = "issues: {fix-it: [[{alone: LOCK}, {touch: READY}, {hang: true}]], other: [[{alone: LOCK}, {say: alone}]]}"
	text := strings.NewReplacer("LOCK", "'"+lock+"'", "READY", "'"+ready+"'").Replace(script)
	first, _, _ := command(t, dir, text, "", nil)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, ready)
	second, out, _ := run(t, dir, text, "", []string{"RALPH_ISSUE_KEY=other"})
	if second.ProcessState.ExitCode() != 8 || strings.Contains(out, "alone\n") {
		t.Errorf("beside another agent: %s, %q", second.ProcessState, out)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	third, out, _ := run(t, dir, text, "", []string{"RALPH_ISSUE_KEY=other"})
	if third.ProcessState.ExitCode() != 0 || !strings.Contains(out, "alone\n") {
		t.Errorf("after the other agent: %s, %q", third.ProcessState, out)
	}
	if b, err := os.ReadFile(lock); err != nil || strings.Count(string(b), "\n") != 1 || !strings.Contains(string(b), "works on other") {
		t.Errorf("the file says %q, %v", b, err)
	}
}

// await returns when the file exists.
func await(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("%s did not appear", path)
		}
	}
}

func TestBadUse(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	for _, args := range [][]string{{}, {"--script", "/nonexistent"}, {"--what"}, {"--script", "x", "y"}, {"--script", "x", "--by", "moon"}, {"--script", "x", "--by", "start"}} {
		errs.Reset()
		if code := scripted.Main(args, strings.NewReader(""), &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%q: status %d, %q", args, code, errs.String())
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"issues: {a: [[{say: x}, {hang: true}]]}": "",
		"issues: {a: [[{}]]}":                     "issue a, iteration 1, action 1: says 0 things",
		"issues: {a: [[], [{say: x, run: y}]]}":   "issue a, iteration 2, action 1: says 2 things",
		"issues: {a: [[{shout: x}]]}":             "shout",
		"issue: {}":                               "issue",
		"issues: {a: [[{expect: '('}]]}":          "expect:",
		"issues: {a: [[{kill: HUP}]]}":            "HUP",
		"issues: {a: [[{huge: -1}]]}":             "negative",
		"issues: [":                               "parse script",
	} {
		_, err := scripted.Parse(strings.NewReader(in))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestReadLogWithoutLog(t *testing.T) {
	t.Parallel()
	starts, err := scripted.ReadLog(filepath.Join(t.TempDir(), "none"))
	if err != nil || !slices.Equal(starts, nil) {
		t.Errorf("%v, %v", starts, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("issues: {a: [[{say: x}]]}")
	f.Add("issues:\n  '*':\n    - - write: {path: x, text: y}\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := scripted.Parse(strings.NewReader(in))
		if err != nil && len(s.Issues) > 0 {
			t.Errorf("an error with a script: %v", err)
		}
	})
}
