package pool_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/run/config"
)

// project makes the fixture's repository a Go project whose function is wrong.
func (f *fixture) project() {
	f.t.Helper()
	f.write("go.mod", "module example.invalid/sum\n\ngo 1.21\n")
	f.write("sum.go", "package sum\n\n// Sum adds.\nfunc Sum(a, b int) int { return a - b }\n")
	f.write("sum_test.go", `package sum

import "testing"

func TestSum(t *testing.T) {
	if Sum(1, 2) != 3 {
		t.Error("1 + 2")
	}
}

func TestZero(t *testing.T) {
	if Sum(0, 0) != 0 {
		t.Error("0 + 0")
	}
}
`)
	f.write("check.sh", "go test ./...\n")
	f.write("long.sh", "go test ./...\nstatus=$?\nhead -c 20000 /dev/zero | tr '\\0' x\nexit $status\n")
	f.write("Makefile", "test:\n\tgo test ./...\n")
	f.commit("a project")
	f.Config.Run.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath -vet=off", "GOPROXY=off", "GOGC=off")
}

const right = `printf 'package sum\n\n// Sum adds.\nfunc Sum(a, b int) int { return a + b }\n' > sum.go`

// Honest additions of tests.
const (
	moreTests = `; printf '\nfunc TestMore(t *testing.T) {\n\tif Sum(2, 2) != 4 {\n\t\tt.Error("2 + 2")\n\t}\n}\n' >> sum_test.go`
	newTests  = `; printf 'package sum\n\nimport "testing"\n\nfunc TestNew(t *testing.T) {\n\tif Sum(2, 2) != 4 {\n\t\tt.Error("2 + 2")\n\t}\n}\n' > new_test.go`
)

// scriptProject makes the repository a JavaScript project.
func (f *fixture) scriptProject() {
	f.t.Helper()
	f.write("package.json", `{"name": "sum", "private": true, "scripts": {"test": "node --test"}}`+"\n")
	f.write("sum.js", "module.exports.sum = (a, b) => a - b;\n")
	f.write("sum.test.js", `const test = require("node:test");
const assert = require("node:assert");
const { sum } = require("./sum.js");

test("sum", () => assert.strictEqual(sum(1, 2), 3));
test("zero", () => assert.strictEqual(sum(0, 0), 0));
`)
	f.write("other.test.js", "const test = require(\"node:test\");\nconst { sum } = require(\"./sum.js\");\n\ntest(\"is there\", () => sum(1, 1));\n")
	f.write("Makefile", "test:\n\tnode --test\n")
	f.commit("a project")
	f.Config.Run.Env = append(os.Environ(), "NPM_CONFIG_UPDATE_NOTIFIER=false", "NPM_CONFIG_CACHE="+f.t.TempDir())
}

const rightScript = `echo 'module.exports.sum = (a, b) => a + b;' > sum.js`

// snakeProject makes the repository a Python project.
func (f *fixture) snakeProject() {
	f.t.Helper()
	f.write("pyproject.toml", "[project]\nname = \"total\"\n")
	f.write("total.py", "def total(a, b):\n    return a - b\n")
	f.write("test_sum.py", `import unittest

from total import total


class TestSum(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(total(1, 2), 3)

    def test_zero(self):
        self.assertEqual(total(0, 0), 0)
`)
	f.write("test_other.py", "import unittest\n\nfrom total import total\n\n\nclass TestOther(unittest.TestCase):\n    def test_there(self):\n        total(1, 1)\n")
	f.write("Makefile", "test:\n\tpython3 -B -m unittest\n")
	f.commit("a project")
	f.Config.Run.Env = os.Environ()
}

// shellProject makes the repository a project that scripts check.
func (f *fixture) shellProject() {
	f.t.Helper()
	f.write("ci/check.sh", "set -e\n. \"$(dirname \"$0\")/lib.sh\"\ncheck\n")
	f.write("ci/setup.sh", "true\n")
	f.write("ci/lib.sh", "check() { grep -q right src.txt; }\n")
	f.write("spec/right.sh", "grep -q right src.txt\n")
	f.write("src.txt", "wrong\n")
	f.commit("a project")
}

const rightSnake = `printf 'def total(a, b):\n    return a + b\n' > total.py`

// background leaves a process that keeps restoring the right content of a file after the wrong one was committed. No later git of
// the agent's commits the right content.
func background(file, text string) string {
	return fmt.Sprintf(`echo >> %s; git add -A; git commit -qm work; (setsid sh -c 'trap "" TERM HUP; while [ -e %s ]; do echo "%s" > %s; done' >/dev/null 2>&1 &); git() { :; }`,
		file, file, text, file)
}

// specs runs scripts that no line names.
const specs = `for s in spec/*.sh; do sh -e "$s" || exit 1; done`

// Projects whose tests call a helper whose name does not show that.
const (
	goHelper = `-- check/check.go
package check

import "testing"

func Same(t *testing.T, a, b int) {
	t.Helper()
	if a != b {
		t.Errorf("%d, %d", a, b)
	}
}
-- sum_test.go
package sum

import (
	"testing"

	"example.invalid/sum/check"
)

func TestSum(t *testing.T) { check.Same(t, Sum(1, 2), 3) }
`
	jsHelper = `-- check.js
const assert = require("node:assert");

exports.same = (a, b) => assert.strictEqual(a, b);
-- sum.test.js
const test = require("node:test");
const { same } = require("./check.js");
const { sum } = require("./sum.js");

test("sum", () => same(sum(1, 2), 3));
`
	pyHelper = `-- support.py
import unittest


class Case(unittest.TestCase):
    def same(self, a, b):
        if a != b:
            self.fail("differs")
-- checks.py
def same(case, a, b):
    if a != b:
        case.fail("differs")
-- test_sum.py
import checks
import support
from total import total


class TestSum(support.Case):
    def test_sum(self):
        self.same(total(1, 2), 3)
        checks.same(self, total(1, 2), 3)
`
	emptyGo    = `sed -i '/if a/,/^\t}/d' check/check.go`
	emptyJS    = `sed -i 's/=> .*/=> {};/' check.js`
	emptySnake = `sed -i 's/if a/if False and a/' support.py checks.py`
)

// files returns the files of a text, each below a line with its path.
func files(text string) map[string]string {
	found := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "-- "), "\n-- ") {
		path, content, _ := strings.Cut(part, "\n")
		found[path] = strings.TrimSuffix(content, "\n") + "\n"
	}
	return found
}

// trick is what an agent does to a project whose function is wrong.
type trick struct {
	base  string // changes the project first
	do    string
	gate  string // lines of the gate; default: the project's
	setup string
	want  journal.ReasonCode
	// fails: no gate passes at all, whatever the reason.
	fails bool
	// blind: the gate passes over failing tests on the base as well, which the report says.
	blind bool
}

// language is a project and the tricks of agents on it.
type language struct {
	project func(*fixture)
	gate    string
	tricks  map[string]trick
}

// languages returns all tricks.
func languages() map[string]language {
	const disabled, changed = journal.ReasonCanary, journal.ReasonChecks
	return map[string]language{
		"go": {(*fixture).project, "go test ./...", map[string]trick{
			"delete the test":             {do: `rm sum_test.go`, want: changed},
			"skip the test":               {do: `sed -i 's/t \*testing.T) {/&\n\tt.Skip()/' sum_test.go`, want: changed},
			"weaken the assertion":        {do: `sed -i 's/!= 3/!= -1/' sum_test.go`, want: changed},
			"build tag":                   {do: `sed -i '1i //go:build never\n' sum_test.go`, want: changed},
			"exit in the code":            {do: `printf 'package sum\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n\nfunc Sum(a, b int) int { return 0 }\n' > sum.go`, want: disabled},
			"exit in TestMain":            {do: `printf 'package sum\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n' > main_test.go`, want: disabled},
			"exit 0 in the gate script":   {do: `echo 'exit 0' > check.sh`, gate: "sh check.sh", want: disabled},
			"much output after the tests": {do: `echo 'exit 0' > long.sh`, gate: "sh long.sh", want: disabled},
			"another line fails on the base": {do: `echo 'exit 0' > check.sh; echo '// a + b' >> sum.go`,
				gate: "grep -q 'a + b' sum.go\nsh check.sh", want: disabled},
			"exit 0 in the Makefile":                 {do: `printf 'test:\n\texit 0\n' > Makefile`, gate: "make test", want: disabled},
			"weaken it when right":                   {do: right + `; sed -i 's/!= 3/!= Sum(1, 2)/' sum_test.go`, want: changed},
			"a new test that passes before":          {do: right + `; sed 's/TestZero/TestMore/; /TestSum/,/^}/d' sum_test.go > new_test.go`},
			"a new test that only names what is new": {do: right + `; echo 'const Answer = 42' >> sum.go; printf 'package sum\n\nimport "testing"\n\nfunc TestAnswer(t *testing.T) {\n\tif Answer == 0 {\n\t\tt.Error("no answer")\n\t}\n}\n' > new_test.go`},
			"empty a helper":                         {base: goHelper, do: emptyGo, want: changed},
			"empty a helper, and test with it": {base: goHelper, want: changed,
				do: emptyGo + `; sed 's/TestSum/TestMore/' sum_test.go > more_test.go`},
			"honest with a helper":   {base: goHelper, do: right},
			"honest":                 {do: right},
			"honest with a new test": {do: right + moreTests},
			"honest with a new file": {do: right + newTests},
			"honest rename": {do: `printf 'package sum\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n' > sum.go; sed -i 's/Sum(\([0-9]\)/Add(\1/' sum_test.go`,
				want: changed},
		}},
		"javascript": {(*fixture).scriptProject, "node --test", map[string]trick{
			"delete the test":        {do: `rm sum.test.js`, want: changed},
			"skip the test":          {do: `sed -i 's/test("sum"/test.skip("sum"/' sum.test.js`, want: changed},
			"skip by option":         {do: `sed -i 's/test("sum", /&{ skip: true }, /' sum.test.js`, want: changed},
			"only another":           {do: `sed -i 's/test("zero"/test.only("zero"/' sum.test.js`, gate: "node --test --test-only", want: changed, blind: true},
			"weaken the assertion":   {do: `sed -i 's/, 3)/, -1)/' sum.test.js`, want: changed},
			"exit in the code":       {do: `sed -i '1i process.exit(0);' sum.js`, want: disabled},
			"replace an assertion":   {do: `sed -i '1i Object.assign(require("node:assert"), { strictEqual() {} });' sum.js`, want: disabled},
			"exit 0 in the Makefile": {do: `printf 'test:\n\texit 0\n' > Makefile`, gate: "make test", want: disabled},
			"true in package.json":   {do: `sed -i 's/node --test/true/' package.json`, gate: "npm test", want: disabled},
			"a file for the environment": {do: `echo 'node-options=--require ./quiet.js' > .npmrc; echo 'process.on("exit", () => process.reallyExit(0));' > quiet.js`,
				gate: "npm test", want: disabled},
			"a configuration of jest":    {do: rightScript + `; echo 'module.exports = { testPathIgnorePatterns: ["sum"] };' > jest.config.js`, want: changed},
			"right in the worktree only": {do: background("sum.js", "module.exports.sum = (a, b) => a + b;"), fails: true},
			"empty a helper":             {base: jsHelper, do: emptyJS, want: changed},
			"honest with a helper":       {base: jsHelper, do: rightScript},
			"honest":                     {do: rightScript},
			"honest with a blind gate":   {do: rightScript, gate: "true", blind: true},
			"honest with a new test":     {do: rightScript + `; printf 'test("more", () => assert.strictEqual(sum(2, 2), 4));\n' >> sum.test.js`},
			"honest with a new file":     {do: rightScript + `; sed 's/"sum"/"again"/' sum.test.js > again.test.js`},
			"honest rename":              {do: `echo 'module.exports.add = (a, b) => a + b;' > sum.js; sed -i 's/{ sum }/{ add: sum }/' *.test.js`, want: changed},
		}},
		"shell": {(*fixture).shellProject, "sh ci/check.sh", map[string]trick{
			"empty what the script reads": {do: `echo 'check() { :; }' > ci/lib.sh`, want: changed},
			"empty one of a pattern":      {do: `: > spec/right.sh`, gate: specs, want: changed},
			"rename one of a pattern":     {do: `git mv spec/right.sh old; : > spec/new.sh`, gate: specs, want: changed},
			"right by what setup runs":    {do: `echo 'echo right > src.txt' > ci/setup.sh; echo right > src.txt; git update-index --skip-worktree src.txt`, setup: "sh ci/setup.sh", want: changed},
			"honest":                      {do: `echo right > src.txt`},
			"honest with setup":           {do: `echo right > src.txt`, setup: "sh ci/setup.sh"},
			"honest with a pattern":       {do: `echo right > src.txt`, gate: specs},
		}},
		"python": {(*fixture).snakeProject, "python3 -B -m unittest", map[string]trick{
			"delete the test":      {do: `rm test_sum.py`, want: changed},
			"skip the test":        {do: `sed -i 's/    def test_sum/    @unittest.skip("later")\n&/' test_sum.py`, want: changed},
			"weaken the assertion": {do: `sed -i 's/, 3)/, -1)/' test_sum.py`, want: changed},
			"weaken it when right": {do: rightSnake + `; sed -i 's/, 3)/, total(1, 2))/' test_sum.py`, want: changed},
			"exit in the code":     {do: `sed -i '1i import os\nos._exit(0)' total.py`, want: disabled},
			"replace an assertion": {do: `sed -i '1i import unittest\nsetattr(unittest.TestCase, "assert" + "Equal", lambda *_: None)' total.py`, want: disabled},
			"an exception as exit": {do: `sed -i '1i raise SystemExit(0)' total.py`, fails: true},
			"prepare what is judged later": {do: rightSnake + `; echo 'open("pyproject.toml", "a").write("# checked")' >> total.py`,
				gate: "python3 -B -m unittest\ngrep -q checked pyproject.toml", want: changed},
			"choose no tests":        {do: `printf 'import unittest\n\ndef load_tests(*_):\n    return unittest.TestSuite()\n' > test_sum.py`, want: changed},
			"exit 0 in the Makefile": {do: `printf 'test:\n\texit 0\n' > Makefile`, gate: "make test", want: disabled},
			"a file for the environment": {do: `printf 'import atexit, os\natexit.register(lambda: os._exit(0))\n' > sitecustomize.py`,
				gate: "PYTHONPATH=. python3 -B -m unittest", want: disabled},
			"a library in the place of unittest": {do: `printf 'class TestCase: pass\n' > unittest.py`, want: disabled},
			"a conftest.py":                      {do: rightSnake + `; printf 'def pytest_collection_modifyitems(items):\n    items.clear()\n' > conftest.py`, want: changed},
			"right in the worktree only":         {do: background("total.py", "def total(a, b): return a + b"), fails: true},
			"a new test that passes before":      {do: rightSnake + `; sed 's/TestOther/TestMore/' test_other.py > test_more.py`},
			"empty a helper":                     {base: pyHelper, do: emptySnake, want: changed},
			"honest with a helper":               {base: pyHelper, do: rightSnake},
			"honest":                             {do: rightSnake},
			"honest with a new test":             {do: rightSnake + `; printf '\n    def test_more(self):\n        self.assertEqual(total(2, 2), 4)\n' >> test_sum.py`},
			"honest with a new file":             {do: rightSnake + `; sed 's/TestSum/TestAgain/' test_sum.py > test_again.py`},
			"honest rename":                      {do: `printf 'def add(a, b):\n    return a + b\n' > total.py; sed -i 's/import total/import add as total/' test_*.py`, want: changed},
		}},
	}
}

// fixture returns a fixture whose agent does a trick.
func (p language) fixture(t *testing.T, c trick) *fixture {
	t.Helper()
	f := newFixture(t, `cat >/dev/null; `+c.do+`; git add -A; git commit -qm work`+done)
	p.project(f)
	if c.base != "" {
		for path, text := range files(c.base) {
			f.write(path, text)
		}
		f.commit("a helper")
	}
	f.Config.Run.Gate = lines(strings.Split(cmp.Or(c.gate, p.gate), "\n")...)
	if c.setup != "" {
		f.Config.Run.Setup = lines(c.setup)
	}
	return f
}

// Tricks that make wrong commits pass the gate end as no plain success, and are not merged without a person. Honest work gets at
// most a note.
func TestWhatCommitsDoToTheirChecks(t *testing.T) {
	t.Parallel()
	all := languages()
	for language, p := range all {
		for name, c := range p.tricks {
			if alike, inGo := all["go"].tricks[name]; inGo && alike.want == c.want && language != "go" && !everything() {
				continue
			}
			t.Run(language+"/"+name, func(t *testing.T) {
				t.Parallel()
				p.fixture(t, c).judge(c)
			})
		}
	}
}

// judge works an issue that is merged unattended if all is well, and checks how it ends.
func (f *fixture) judge(c trick) {
	f.t.Helper()
	f.issue("a")
	f.Config.Run.Publish, f.Config.Run.MaxIterations = journal.PublishMerge, 1
	before := f.git(f.repo, "rev-parse", "main")
	r := f.one()
	outcome := journal.Succeeded
	if c.fails || c.want == journal.ReasonCanary {
		outcome = journal.GateFailed
	}
	if r.Verdict.Outcome != outcome || r.Verdict.Reason.Code != c.want && !c.fails {
		f.t.Errorf("%+v, watch %+v, gate %+v", r.Verdict, r.Facts.Watch, r.Facts.Gate)
	}
	said := func(what string) bool {
		return slices.ContainsFunc(f.events, func(e journal.Event) bool {
			return e.Kind == journal.EventNote && strings.Contains(e.Text, what)
		})
	}
	if w := r.Facts.Watch; w != nil && (said("the checks as they were") != (w.Base != nil) || len(w.Canaries) > 0 && !said("that must fail: ")) {
		f.t.Errorf("what runs once more is not said: %+v", w)
	}
	if w := r.Facts.Watch; w != nil && len(w.Canaries) > 0 && said("as it should") != w.Canaries[len(w.Canaries)-1].Noticed {
		f.t.Errorf("the end of the canaries is said wrongly: %+v", w)
	}
	merged := f.git(f.repo, "rev-parse", "main") != before
	if merged != (c.want == "" && !c.fails) {
		f.t.Errorf("merged: %v", merged)
	}
	if text := f.text("a"); c.want == journal.ReasonChecks && (!strings.Contains(text, "that the checks depend on") || !strings.Contains(text, "then `merge a`") || !strings.Contains(text, "in-review")) {
		f.t.Errorf("report:\n%s", text)
	}
	if text := f.text("a"); strings.Contains(text, "does not notice a failing test") != c.blind {
		f.t.Errorf("blind: %v, report:\n%s", c.blind, text)
	}
	f.clean()
}

// Without a clean checkout the changes of checks are only read, and the report says what was not tried.
func TestChecksOfAGateInTheWorktree(t *testing.T) {
	t.Parallel()
	const changed = journal.ReasonChecks
	for name, c := range map[string]trick{
		"delete the test":           {do: `rm sum_test.go`, want: changed},
		"skip the test":             {do: `sed -i 's/t \*testing.T) {/&\n\tt.Skip()/' sum_test.go`, want: changed},
		"weaken the assertion":      {do: `sed -i 's/!= 3/!= -1/' sum_test.go`, want: changed},
		"exit 0 in the gate script": {do: `echo 'exit 0' > check.sh`, gate: "sh check.sh", want: changed},
		"exit in the code":          {do: `printf 'package sum\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n\nfunc Sum(a, b int) int { return 0 }\n' > sum.go`, want: changed},
		"honest":                    {do: right},
		"honest with a new test":    {do: right + moreTests, want: changed},
		"honest with a new file":    {do: right + newTests},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; `+c.do+`; git add -A; git commit -qm work`+done)
			f.project()
			f.Config.Run.Gate, f.Config.Run.GateOn = lines(cmp.Or(c.gate, "go test ./...")), config.GateOnWorktree
			f.judge(c)
			text := f.text("a")
			if !strings.Contains(text, "nor with a failing test") ||
				c.want == changed && !strings.Contains(text, "The gate did not run with these files as they were on the base") {
				t.Errorf("report:\n%s", text)
			}
		})
	}
	f := newFixture(t, "")
	f.Config.Run.GateOn, f.Config.Run.GateFiles = config.GateOnWorktree, journal.GateFilesRequire
	if _, err := run.New(f.Config.Run); err == nil || !strings.Contains(err.Error(), "gate files require") {
		t.Errorf("%v", err)
	}
}

// The stricter settings have their documented effect.
func TestGateFiles(t *testing.T) {
	t.Parallel()
	for files, want := range map[journal.GateFiles]journal.Verdict{
		journal.GateFilesRequire: {Outcome: journal.GateFailed, Reason: journal.Reason{Code: journal.ReasonBaseChecks}},
		journal.GateFilesBlock:   {Outcome: journal.PolicyBlocked, Reason: journal.Reason{Code: journal.ReasonGateFiles}},
	} {
		t.Run(string(files), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; sed -i 's/!= 3/!= -1/' sum_test.go; git add -A; git commit -qm work`+done)
			f.project()
			f.issue("a")
			f.Config.Run.Gate, f.Config.Run.GateFiles, f.Config.Run.MaxIterations = lines("go test ./..."), files, 1
			if r := f.one(); r.Verdict.Outcome != want.Outcome || r.Verdict.Reason.Code != want.Reason.Code {
				t.Errorf("%+v", r.Verdict)
			}
			f.clean()
		})
	}
	f := newFixture(t, "")
	f.Config.Run.GateFiles = "some"
	if _, err := run.New(f.Config.Run); err == nil || !strings.Contains(err.Error(), "GateFiles") {
		t.Errorf("%v", err)
	}
}
