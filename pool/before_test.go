package pool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Host commands never run anything that an agent has committed, in any attempt. A run and its checks get the files that they
// make.
func TestHostCommandsSeeTheBaseOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo "echo agent >> $MARK" > deps.sh; echo "$RALPH_ATTEMPT" > work; git add -A; git commit -qm work`+done)
	mark := filepath.Join(t.TempDir(), "mark")
	f.write("deps.sh", `mkdir -p deps/bin; ln -s /nowhere deps/bin/tool; echo made > deps/lib; echo changed > README; echo base >> "$MARK"`)
	f.write(".gitignore", ".ralph/\ndeps/\n")
	f.commit("deps")
	f.Config.Run.Env = append(os.Environ(), "MARK="+mark)
	f.Config.Run.Before = []string{"MARK=" + mark + " sh deps.sh"}
	f.Config.Run.Gate = lines("test -f deps/lib && test -L deps/bin/tool", `test ! -f work || test "$(cat work)" = 2`)
	f.Config.Run.MaxIterations = 1
	f.issue("a")
	if r := f.one("a"); r.Verdict.Outcome != journal.GateFailed {
		t.Fatalf("%+v", r.Verdict)
	}
	r := f.one("a")
	if r.Verdict.Outcome != journal.Succeeded || r.Facts.Verify == nil || !r.Facts.Verify.Passed() || r.Attempt != 2 {
		t.Fatalf("%+v, verify %+v", r.Verdict, r.Facts.Verify)
	}
	if got, err := os.ReadFile(mark); err != nil || strings.Contains(string(got), "agent") || strings.Count(string(got), "base") != 3 {
		t.Errorf("on the host ran %q, %v", got, err) // before the gate on the base, and in each run
	}
	if got := f.git(f.repo, "show", "ralph/a:README"); got != "hello" {
		t.Errorf("README is %q", got)
	}
	f.clean()
}

// A change of a file that the host commands run or read is left to a person: the next run would run it outside the sandbox.
func TestChangesOfHostCommandsAreNotMerged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, gate, file string
		free               bool
	}{
		"script":                  {before: "sh tools/prep.sh", file: "tools/prep.sh"},
		"without a gate":          {before: "sh tools/prep.sh", gate: "-", file: "tools/prep.sh"},
		"another case":            {before: "sh tools/prep.sh", file: "tools/Prep.sh"},
		"script of a makefile":    {before: "make prep", file: "tools/lib/x.sh"},
		"read only if it exists":  {before: "sh tools/prep.sh", file: "tools/local.sh"},
		"named folder":            {before: "sh tools/prep.sh && compile ./cmd/gen", file: "cmd/gen/new/x.go"},
		"folder in a script":      {before: "sh tools/gen.sh", file: "cmd/gen/new/x.go"},
		"lock file":               {before: "npm ci", gate: "-", file: "package-lock.json"},
		"another file":            {before: "sh tools/prep.sh", file: "tools/other.txt", free: true},
		"file in another folder":  {before: "cd ./tools && sh prep.sh", file: "tools/other.txt", free: true},
		"test, without a gate":    {before: "sh tools/prep.sh", gate: "-", file: "x_test.go", free: true},
		"script, no host command": {gate: "-", file: "tools/prep.sh", free: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "cat >/dev/null; mkdir -p $(dirname "+c.file+"); echo '# more' >> "+c.file+"; git add -A; git commit -qm work"+done)
			f.write("tools/prep.sh", "compile() { :; }; npm() { :; }\nif test -f tools/local.sh; then . tools/local.sh; fi\n")
			f.write("tools/lib/x.sh", "true\n")
			f.write("tools/gen.sh", "if false; then\n  go run ./cmd/gen\nfi\n")
			f.write("cmd/gen/main.go", "package main\n")
			f.write("Makefile", "prep:\n\tsh tools/lib/x.sh\n")
			f.write("package-lock.json", "{}\n")
			f.commit("scripts")
			// Commands that are not there do nothing.
			f.Config.Run.Before = []string{"compile() { :; }; npm() { :; }; " + c.before}
			if c.before == "" {
				f.Config.Run.Before = nil
			}
			if c.gate == "" {
				f.Config.Run.Gate = lines("true")
			}
			f.Config.Run.NoCanary, f.Config.Run.Publish = true, journal.PublishMerge
			f.issue("a")
			r := f.one("a")
			if merged := strings.HasPrefix(r.Published, "merged"); merged != c.free || r.Verdict.Outcome != journal.Succeeded {
				t.Errorf("published %q, %+v, %+v", r.Published, r.Verdict, r.Facts.Watch)
			}
			if want := c.file + ": a command on the host runs or reads it"; !c.free && r.Verdict.Reason.Detail != want {
				t.Errorf("%q, want %q", r.Verdict.Reason.Detail, want)
			}
		})
	}
}

// A script that a git hook calls runs on the host at the user's next commit, and what CI's configuration includes is
// configuration, so a person looks at their changes first.
func TestScriptsOfHooks(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"scripts/pre.sh": "scripts/pre.sh: a git hook runs or reads it", "scripts/other.sh": "",
		"ci/build.yml": "ci/build.yml: CI obeys it", "act/x/action.yml": "act/x/action.yml: CI obeys it", "act/x/run.sh": "", "tools/ci": "", "tools/deep.sh": "",
		"tools/own.sh": "tools/own.sh: a git hook runs or reads it", "ci/lint.sh": "ci/lint.sh: a git hook runs or reads it",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "cat >/dev/null; echo '# more' >> "+file+"; git add -A; git commit -qm work"+done)
			for _, script := range []string{"scripts/pre.sh", "scripts/other.sh", "tools/own.sh", "ci/lint.sh", "act/x/run.sh", "tools/deep.sh"} {
				f.write(script, "true\n")
			}
			f.write(".gitlab-ci.yml", "include:\n  - local: /ci/build.yml\n")
			f.write("ci/build.yml", "b:\n  script:\n    - tools/ci --all\n")
			f.write(".github/workflows/w.yml", "jobs:\n  a:\n    steps:\n      - uses: ./act/x\n")
			f.write("act/x/action.yml", "runs:\n  steps:\n    - run: ./run.sh\n")
			f.write("tools/ci", "sh tools/deep.sh\n")
			f.write(".husky/pre-commit", "npm test\nsh scripts/pre.sh\n")
			f.write("dev/hooks/commit-msg", "#!/bin/sh\nexec ./tools/own.sh \"$1\"\n")
			f.write("lefthook.yml", "pre-commit:\n  commands:\n    lint:\n      run: sh ci/lint.sh {staged_files}\n")
			f.commit("hooks")
			f.git(f.Config.Run.Repo.Dir(), "config", "core.hooksPath", "dev/hooks")
			f.Config.Run.Gate = lines("true")
			f.Config.Run.NoCanary, f.Config.Run.Publish = true, journal.PublishMerge
			f.issue("a")
			r := f.one("a")
			if merged := strings.HasPrefix(r.Published, "merged"); merged != (want == "") || want != "" && r.Verdict.Reason.Detail != want {
				t.Errorf("published %q, %+v, %+v", r.Published, r.Verdict, r.Facts.Watch)
			}
		})
	}
}

// A run does not continue from commits that violate the policy, even if they were never to be published.
func TestPolicyBeforeARunGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; mkdir -p .github/workflows; echo evil > .github/workflows/evil.yml; git add -A; git commit -qm work`+done)
	f.Config.Run.Protected = []string{".github/**"}
	f.Config.Run.Gate = lines("test -f never")
	f.Config.Run.MaxIterations = 1
	f.issue("a")
	if r := f.one("a"); r.Verdict.Outcome != journal.GateFailed {
		t.Fatalf("%+v", r.Verdict)
	}
	f.onStarted(func(string) { t.Error("an agent is started") })
	r := f.one("a")
	if r.Verdict.Outcome != journal.PolicyBlocked || len(r.Facts.Iterations) > 0 {
		t.Errorf("%+v, %d iterations", r.Verdict, len(r.Facts.Iterations))
	}
}

// The failure of a host command has the line that states the cause, which is not always the last one.
func TestFailureOfAHostCommand(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Before = []string{"echo \"fatal: transport 'file' not allowed\"; echo 'Failed to clone a second time, aborting'; exit 1"}
	f.issue("a")
	if r := f.one(); !strings.Contains(r.Verdict.Reason.Detail, "exit status 1: fatal: transport 'file' not allowed") {
		t.Errorf("%+v", r.Verdict)
	}
}
