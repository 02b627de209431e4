package retest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/diff"
)

const (
	goTest = "package a\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Fail() }\n"
	rust   = "fn a() {}\n#[test]\nfn t() { assert!(true) }\n"
)

// file returns a file that a change adds (old ""), removes (new "") or changes.
func file(path, old, new string) diff.File {
	entry := func(text string) diff.Entry {
		if text == "" {
			return diff.Entry{}
		}
		return diff.Entry{Mode: "100644", ID: text}
	}
	return diff.File{Path: path, Old: entry(old), New: entry(new)}
}

func renamed(from, to, text string) diff.File {
	f := file(to, text, text)
	f.OldPath = from
	return f
}

// The kinds of the changed files decide what has to run, and on what.
func TestPlan(t *testing.T) {
	t.Parallel()
	link := file("b_test.go", "", "somewhere")
	link.New.Mode = "120000"
	many := []diff.File{}
	for i := range maxFiles + 1 {
		many = append(many, file(fmt.Sprintf("x%d_test.go", i), "", goTest))
	}
	code := file("a.go", "old", "new")
	for name, c := range map[string]struct {
		files []diff.File
		own   string
		runs  string // beginnings of the lines, joined
		edits string // paths, with - before removed ones
		says  string // exempt, cannot or note
	}{
		"documents":                {files: []diff.File{file("README.md", "a", "b"), file("docs/new.rst", "", "x")}, says: "changes neither code"},
		"what checks depend on":    {files: []diff.File{file("Makefile", "a", "b"), file("go.mod", "a", "b")}, says: "changes neither code"},
		"code alone":               {files: []diff.File{code}, says: "neither adds nor changes a test"},
		"a new test":               {files: []diff.File{code, file("a_test.go", "", goTest)}, runs: "go test", edits: "a_test.go"},
		"a test alone":             {files: []diff.File{file("a_test.go", "", goTest)}, runs: "go test", edits: "a_test.go"},
		"two tests":                {files: []diff.File{file("a_test.go", "x", goTest), file("b/b_test.go", "", goTest)}, runs: "go test,go test", edits: "a_test.go b/b_test.go"},
		"a test and its data":      {files: []diff.File{code, file("testdata/x", "a", "b"), file("a_test.go", "x", goTest)}, runs: "go test", edits: "testdata/x a_test.go"},
		"data alone":               {files: []diff.File{code, file("testdata/x", "a", "b")}, edits: "testdata/x", says: "data or helpers"},
		"a helper alone":           {files: []diff.File{code, file("help.go", "a", "b")}, edits: "help.go", says: "data or helpers"},
		"a helper and a test":      {files: []diff.File{code, file("help.go", "a", "b"), file("a_test.go", "", goTest)}, runs: "go test", edits: "help.go a_test.go"},
		"a helper is no test":      {files: []diff.File{file("help.go", "a", goTest), file("a_test.go", "", goTest)}, own: "ci/tests {files}", runs: "ci/tests a_test.go", edits: "help.go a_test.go"},
		"a removed helper":         {files: []diff.File{code, file("help.go", "a", "")}, edits: "-help.go", says: "removes tests"},
		"removed tests":            {files: []diff.File{code, file("a_test.go", goTest, "")}, edits: "-a_test.go", says: "removes tests"},
		"a renamed test":           {files: []diff.File{code, renamed("a_test.go", "b_test.go", goTest)}, runs: "go test", edits: "-a_test.go b_test.go"},
		"a test that becomes code": {files: []diff.File{renamed("a_test.go", "b.go", goTest)}, edits: "-a_test.go", says: "removes tests"},
		"code that becomes a test": {files: []diff.File{renamed("a.go", "a_test.go", goTest)}, runs: "go test", edits: "a_test.go"},
		"a link":                   {files: []diff.File{code, link}, edits: "b_test.go", says: "data or helpers"},
		"tests among code":         {files: []diff.File{file("src/lib.rs", "fn a() {}", rust)}, says: "in the same files as its code"},
		"no command":               {files: []diff.File{code, file("a_spec.rb", "", "it 'a' do\n  fail\nend\n")}, edits: "a_spec.rb", says: "no command is known for the tests of a_spec.rb"},
		"too many":                 {files: many, runs: strings.Repeat("go test,", maxFiles) + "go test", edits: "*", says: "more than 50"},
		"an own command": {files: []diff.File{code, file("a b_spec.rb", "", "x"), file("a_test.go", "", goTest), file("old_test.go", goTest, "")}, own: "ci/tests {files}",
			runs: "ci/tests 'a b_spec.rb' a_test.go", edits: "a b_spec.rb a_test.go -old_test.go"},
		"an own command without tests": {files: []diff.File{code}, own: "ci/tests {files}", says: "neither adds nor changes a test"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts := map[string][]byte{}
			for _, f := range c.files {
				texts[f.New.ID] = []byte(f.New.ID)
			}
			p := change{files: c.files, texts: texts, tipFiles: map[string]diff.Entry{"go.mod": {}},
				helpers: helpers(&journal.Watch{Files: []journal.Watched{{Path: "help.go", Helper: true}, {Path: "a.go"}}})}.plan(suite.Lines{Gate: []string{"go test ./..."}}, c.own)
			var runs, edits []string
			for _, r := range p.runs {
				line := r.Line
				if c.own == "" {
					line = line[:len("go test")]
				}
				runs = append(runs, line)
			}
			for _, e := range p.edits {
				name := e.Path
				if !e.Entry.Exists() {
					name = "-" + name
				}
				edits = append(edits, name)
			}
			says := p.whyExempt + p.whyNot + p.note
			if got := strings.Join(runs, ","); got != c.runs {
				t.Errorf("runs %q, want %q", got, c.runs)
			}
			if got := strings.Join(edits, " "); got != c.edits && c.edits != "*" {
				t.Errorf("edits %q, want %q", got, c.edits)
			}
			if (says == "") != (c.says == "") || !strings.Contains(says, c.says) {
				t.Errorf("says %q, want %q", says, c.says)
			}
		})
	}
	if p := (change{files: []diff.File{code}, large: true}).plan(suite.Lines{}, ""); !strings.Contains(p.whyNot, "too large") {
		t.Errorf("%+v", p)
	}
}

func TestHow(t *testing.T) {
	t.Parallel()
	c := command{Retest: ecosystem.Retest{Unbuilt: []string{"[build failed]"}, Idle: []string{"[no test files]"}, Empty: []int{5}, Unfound: []string{"No tests found"}}}
	for want, check := range map[journal.TestOutcome]loop.Check{
		journal.TestsPassed: {Tail: "ok"}, journal.TestsFailed: {ExitCode: 1, Tail: "FAIL"}, journal.TestsNotBuilt: {ExitCode: 1, Tail: "FAIL x [build failed]"},
		journal.TestsTimedOut: {TimedOut: true, ExitCode: 137}, journal.TestsNone: {Tail: "? x [no test files]"}, journal.TestsNotStarted: {ExitCode: 127},
	} {
		if got := c.howItEnded(check); got != want {
			t.Errorf("%+v: %s, want %s", check, got, want)
		}
	}
	for text, file := range map[string]string{
		"ERROR: usage: __main__.py [options]\n__main__.py: error: --cov\n  rootdir: /x\n":   "test_a.py",
		"Error: Cannot find module 'tape'\nRequire stack:\n- /x/a.test.js\n\nNode.js v20\n": "a.test.js",
		"/usr/bin/python3: No module named pytest\n":                                        "test_a.py",
		"ERROR: usage: __main__.py [options]\n__main__.py: error: --cov\n":                  "test_a.py",
		"Error: Cannot find module 'jest'\n":                                                "a.test.js",
		"Error: Cannot find module '/x/node_modules/jest/bin/jest.js'\n":                    "a.test.js",
	} {
		run, _ := suite.RerunOf(file, nil, suite.Lines{}, func(string) ([]byte, bool) { return []byte(`{"scripts": {"test": "x"}}`), true })
		if got := (command{Retest: run}).howItEnded(loop.Check{ExitCode: 1, Tail: text}); got != journal.TestsNotStarted {
			t.Errorf("%s: %s", text, got)
		}
		if why := notStarted(journal.TestRun{Tail: command{Retest: run}.upToReason(text)}); !strings.Contains(why, "No module") && !strings.Contains(why, "rror: ") {
			t.Errorf("%s: the reason is %q", text, why)
		}
	}
	for text, file := range map[string]string{"ModuleNotFoundError: No module named 'pytest'\n": "test_a.py", "Error: Cannot find module './jest'\n": "a.test.js"} {
		run, _ := suite.RerunOf(file, nil, suite.Lines{}, func(string) ([]byte, bool) { return []byte(`{"scripts": {"test": "x"}}`), true })
		if got := (command{Retest: run}).howItEnded(loop.Check{ExitCode: 1, Tail: text}); got != journal.TestsNotBuilt {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, none := range []loop.Check{{ExitCode: 5}, {ExitCode: 1, Tail: "> No tests found for given includes"}} {
		if got := c.howItEnded(none); got != journal.TestsNone {
			t.Errorf("%+v: %s", none, got)
		}
	}
}

// A change is proved only if each test fails without the change and passes with it.
func TestConclude(t *testing.T) {
	t.Parallel()
	run := func(base, tip journal.TestOutcome) journal.Rerun {
		r := journal.Rerun{Command: "c", Files: []string{"f"}, Base: journal.TestRun{Outcome: base}}
		if tip != "" {
			r.Tip = &journal.TestRun{Outcome: tip}
		}
		return r
	}
	all := []journal.TestOutcome{journal.TestsPassed, journal.TestsFailed, journal.TestsNotBuilt, journal.TestsTimedOut, journal.TestsNone, journal.TestsNotStarted}
	for _, base := range all {
		for _, tip := range append(all, "") {
			proved, why := conclude([]journal.Rerun{run(base, tip)})
			fails := base == journal.TestsFailed || base == journal.TestsNotBuilt || base == journal.TestsTimedOut
			if proved != (fails && tip == journal.TestsPassed) || proved != (why == "") {
				t.Errorf("%s, %s: %v, %q", base, tip, proved, why)
			}
		}
	}
	good, bad := run(journal.TestsFailed, journal.TestsPassed), run(journal.TestsPassed, journal.TestsPassed)
	if proved, why := conclude([]journal.Rerun{good, bad}); proved || why != "f passes without the change" {
		t.Errorf("%v, %q", proved, why)
	}
	if _, why := conclude([]journal.Rerun{bad, bad, bad, bad, good, bad}); !strings.Contains(why, "and 2 more") {
		t.Error(why)
	}
	if proved, _ := conclude([]journal.Rerun{good, good}); !proved {
		t.Error("it is not proved")
	}
}

// The agent is told what to do; its own texts are data.
func TestAdvice(t *testing.T) {
	t.Parallel()
	text := adviceOn(&journal.Retest{Why: "~~~~ x passes without the change", Runs: []journal.Rerun{
		{Command: "good", Base: journal.TestRun{Outcome: journal.TestsFailed}, Tip: &journal.TestRun{Outcome: journal.TestsPassed}},
		{Command: "bad", Base: journal.TestRun{Outcome: journal.TestsFailed, ExitCode: 1}, Tip: &journal.TestRun{Outcome: journal.TestsFailed, ExitCode: 2, Tail: "OUTPUT"}},
	}}, "main")
	if !strings.Contains(text, "must fail on main") || !strings.Contains(text, "\n~~~~~\n~~~~ x passes") || strings.Contains(text, "good") ||
		!strings.Contains(text, "$ bad\nwithout the change: failed with exit status 1\nwith the change: failed with exit status 2\nOUTPUT") {
		t.Error(text)
	}
}
