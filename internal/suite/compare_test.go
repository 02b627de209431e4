package suite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
)

const (
	goTest = "package calc\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Error(\"no\")\n\t}\n}\n"
	pyTest = "import unittest\nclass TestCalc(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
	jsTest = "it('adds', () => {\n  expect(add(1, 2)).toBe(3)\n})\n"
	rsTest = "pub fn add() {}\n#[cfg(test)]\nmod tests {\n  #[test]\n  fn adds() { assert_eq!(super::add(), 3); }\n}\n"
)

// edited, added and removed return changes of one file.
func edited(path, from, to string) suite.Change {
	return suite.Change{Path: path, Old: []byte(from), New: []byte(to)}
}

func added(path, text string) suite.Change {
	return suite.Change{Path: path, New: []byte(text), Added: true}
}

func removed(path, text string) suite.Change {
	return suite.Change{Path: path, Old: []byte(text), Removed: true}
}

func replaced(path, text, from, to string) suite.Change {
	if !strings.Contains(text, from) {
		panic("nothing to replace: " + from)
	}
	return edited(path, text, strings.ReplaceAll(text, from, to))
}

// Each trick is listed with its role, or causes a finding, or both.
func TestCompareTricks(t *testing.T) {
	t.Parallel()
	gate := []string{"make test", "./ci/check.sh", "npm test"}
	tests := []struct {
		name   string
		change suite.Change
		role   ecosystem.Role // None: not listed
		kinds  string
	}{
		{"delete the test", removed("calc_test.go", goTest), ecosystem.Test, "assertions-removed tests-removed"},
		{"delete the function", edited("calc_test.go", goTest, "package calc\n"), ecosystem.Test, "assertions-removed tests-removed"},
		{"rename it away", suite.Change{Path: "calc.txt", OldPath: "calc_test.go", Old: []byte(goTest), New: []byte(goTest)}, ecosystem.Test, "assertions-removed tests-removed"},
		{"rename it to another system", suite.Change{Path: "calc_plan9_test.go", OldPath: "calc_test.go", Old: []byte(goTest), New: []byte(goTest)}, ecosystem.Test, "tests-skipped"},
		{"rename the function", replaced("calc_test.go", goTest, "TestAdd", "testAdd"), ecosystem.Test, "tests-removed"},
		{"comment it out", edited("calc_test.go", goTest, "package calc\n/*"+goTest+"*/"), ecosystem.Test, "assertions-removed tests-removed"},
		{"put it in a string", edited("calc_test.go", goTest, "package calc\nvar _ = `"+goTest+"`"), ecosystem.Test, "assertions-removed tests-removed"},
		{"skip it", replaced("calc_test.go", goTest, "\tif", "\tt.Skip()\n\tif"), ecosystem.Test, "tests-skipped"},
		{"skip when short", replaced("calc_test.go", goTest, "\tif", "\tif testing.Short() { return }\n\tif"), ecosystem.Test, "tests-skipped"},
		{"return at once", replaced("calc_test.go", goTest, "{\n\tif", "{\n\treturn\n\tif"), ecosystem.Test, "tests-skipped"},
		{"build tag", edited("calc_test.go", goTest, "//go:build ignore\n\n"+goTest), ecosystem.Test, "tests-skipped"},
		{"another build tag", edited("calc_test.go", goTest, "//go:build never || windows\n\n"+goTest), ecosystem.Test, "tests-skipped"},
		{"log instead of fail", replaced("calc_test.go", goTest, "t.Error", "t.Log"), ecosystem.Test, "assertions-removed"},
		{"weaken what is compared", replaced("calc_test.go", goTest, "!= 3", "== 0"), ecosystem.Test, ""},
		{"TestMain", added("main_test.go", "package calc\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"), ecosystem.Test, "early-exit no-tests"},
		{"exit in the code", edited("calc.go", "package calc\n", "package calc\nfunc Add() { os.Exit(0) }\n"), ecosystem.None, "early-exit"},
		{"exit on load", edited("calc.go", "package main\n", "package main\nfunc init() { os.Exit(0) }\nfunc main() {}"), ecosystem.None, "early-exit"},
		{"ask for the test", edited("calc.go", "package calc\n", "package calc\nfunc Add() { if flag.Lookup(\"test.v\") != nil {} }\n"), ecosystem.None, "test-aware"},
		{"ask for the name of the program", edited("calc.go", "package calc\n", "package calc\nfunc Add() { if strings.HasSuffix(os.Args[0], \".test\") {} }\n"), ecosystem.None, "test-aware"},
		{"ask for the flags of the runner", edited("calc.go", "package calc\n", "package calc\nfunc Add() { for _, a := range os.Args { if a == \"-test.timeout=10m0s\" {} } }\n"), ecosystem.None, "test-aware"},
		{"ask for the caller", edited("calc.go", "package calc\n", "package calc\nfunc Add() { _, f, _, _ := runtime.Caller(1); if strings.HasSuffix(f, \"_test.go\") {} }\n"), ecosystem.None, "test-aware"},
		{"go.work", added("go.work", "go 1.26\nuse ./fake\n"), ecosystem.Environment, ""},
		{"replace a module", edited("go.mod", "module x\n", "module x\nreplace y => ./y\n"), ecosystem.Build, ""},
		{"vendored helper", edited("vendor/github.com/stretchr/testify/require/require.go", "package require", "package require // weak"), ecosystem.Environment, ""},
		{"a test by its name", edited("spec/c_spec.sh", "exit 1\n", ""), ecosystem.Test, ""},
		{"expected data", edited("testdata/want.golden", "3", "4"), ecosystem.Test, ""},

		{"exit 0 in the Makefile", edited("Makefile", "test:\n\tgo test ./...\n", "test:\n\t@exit 0\n"), ecosystem.GateScript, "early-exit"},
		{"|| true in the Makefile", edited("Makefile", "test:\n\tgo test ./...\n", "test:\n\tgo test ./... || true\n"), ecosystem.GateScript, "failure-ignored"},
		{"empty the Makefile", edited("Makefile", "test:\n\tgo test ./...\n", "test:\n\t@echo ok\n"), ecosystem.GateScript, ""},
		{"a Makefile that goes first", added("GNUmakefile", "test:\n"), ecosystem.GateScript, ""},
		{"include of it", edited("rules.mk", "x:\n", "test:\n\t-go test\n"), ecosystem.Build, ""},
		{"gate script", edited("ci/check.sh", "set -e\ngo test\n", "go test\nexit 0\n"), ecosystem.GateScript, "early-exit"},
		{"script of npm", edited("package.json", `{"scripts": {"test": "jest"}}`, `{"scripts": {"test": "jest || true"}}`), ecosystem.GateScript, "failure-ignored"},
		{"no tests of npm", edited("package.json", `{"scripts": {"test": "jest"}}`, `{"scripts": {"test": "jest --passWithNoTests x"}}`), ecosystem.GateScript, "failure-ignored"},

		{"skip in python", replaced("tests/test_calc.py", pyTest, "    def", "    @unittest.skip('flaky')\n    def"), ecosystem.Test, "tests-skipped"},
		{"expect failure in python", replaced("tests/test_calc.py", pyTest, "    def", "    @unittest.expectedFailure\n    def"), ecosystem.Test, "tests-skipped"},
		{"skip a module", edited("tests/test_calc.py", pyTest, "pytestmark = pytest.mark.skip\n"+pyTest), ecosystem.Test, "tests-skipped"},
		{"rename the method", replaced("tests/test_calc.py", pyTest, "def test_add", "def check_add"), ecosystem.Test, "tests-removed"},
		{"no assertion in python", replaced("tests/test_calc.py", pyTest, "self.assertEqual(add(1, 2), 3)", "add(1, 2)"), ecosystem.Test, "assertions-removed"},
		{"load_tests", edited("tests/test_calc.py", pyTest, pyTest+"def load_tests(loader, tests, pattern):\n    return unittest.TestSuite()\n"), ecosystem.Test, "no-tests"},
		{"load_tests of a package", added("tests/__init__.py", "load_tests = lambda l, t, p: unittest.TestSuite()\n"), ecosystem.Test, "no-tests"},
		{"conftest", added("conftest.py", "def pytest_collection_modifyitems(items):\n    items.clear()\n"), ecosystem.TestConfig, "runner-hook"},
		{"exit status in conftest", added("conftest.py", "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"), ecosystem.TestConfig, "runner-hook"},
		{"pytest.ini", added("pytest.ini", "[pytest]\naddopts = --co\n"), ecosystem.TestConfig, ""},
		{"shadowed unittest", added("unittest.py", "class TestCase: pass\ndef main(): pass\n"), ecosystem.Environment, "shadowing"},
		{"shadowed pytest", added("pytest/__main__.py", ""), ecosystem.Environment, "shadowing"},
		{"shadowed library", added("src/asyncio.py", ""), ecosystem.Environment, "shadowing"},
		{"sitecustomize", added("sitecustomize.py", "import os; os._exit(0)\n"), ecosystem.Environment, "early-exit"},
		{"exit under test", edited("calc.py", "def add(): pass\n", "import os\ndef add(): os._exit(0)\n"), ecosystem.None, "early-exit"},
		{"exit in a thread", edited("calc.py", "def add(): pass\n", "import sys\ndef add(): sys.exit(0)\n"), ecosystem.None, "early-exit"},
		{"exit at the end", edited("calc.py", "", "import atexit\natexit.register(lambda: None)\n"), ecosystem.None, "early-exit"},
		{"ask in python", edited("calc.py", "", "if 'PYTEST_CURRENT_TEST' in os.environ: pass\n"), ecosystem.None, "test-aware"},
		{"patch pytest", edited("calc.py", "", "import _pytest.reports as rep\n"), ecosystem.None, "runner-hook"},
		{"patch pytest by its names", edited("calc.py", "", "from _pytest.runner import call_runtest_hook\n"), ecosystem.None, "runner-hook"},
		{"patch pytest when it is loaded", edited("calc.py", "", "import sys\nr = sys.modules.get('_pytest.reports')\n"), ecosystem.None, "runner-hook"},
		{"look elsewhere for modules", edited("calc.py", "", "import sys\nsys.path.insert(0, 'calc/fake')\n"), ecosystem.None, "runner-hook"},
		{"another module", edited("calc.py", "", "import sys\nsys.modules['assertpy'] = x\n"), ecosystem.None, "runner-hook"},
		{"find modules", edited("calc.py", "", "import sys\nsys.meta_path.insert(0, x)\n"), ecosystem.None, "runner-hook"},
		{"patch unittest", edited("calc.py", "", "import unittest.case as c\nc._Outcome.success = True\n"), ecosystem.Test, ""},
		{"compiled module", added("__pycache__/calc.cpython-311.pyc", "\x00"), ecosystem.Environment, ""},
		{"cache", added(".pytest_cache/v/cache/lastfailed", "{}"), ecosystem.Environment, ""},

		{"skip in js", replaced("a.test.js", jsTest, "it(", "it.skip("), ecosystem.Test, "tests-skipped"},
		{"skip in brackets", replaced("a.test.js", jsTest, "it(", "it['skip']("), ecosystem.Test, "tests-skipped"},
		{"focus", edited("a.test.js", jsTest, jsTest+"it.only('is', () => { expect(1).toBe(1) })\n"), ecosystem.Test, "tests-focused"},
		{"empty in js", edited("a.test.js", jsTest, "it('adds', () => {})"), ecosystem.Test, "assertions-removed tests-skipped"},
		{"jest config", edited("jest.config.js", "module.exports = {}", "module.exports = {testPathIgnorePatterns: ['calc'], passWithNoTests: true}"), ecosystem.TestConfig, "runner-hook"},
		{"mock of a module", added("__mocks__/calc.js", "exports.add = () => 3"), ecosystem.TestConfig, ""},
		{"snapshot", edited("__snapshots__/a.test.js.snap", "3", "4"), ecosystem.Test, ""},
		{"node_modules", added("node_modules/jest/bin/jest.js", "process.exit(0)"), ecosystem.Environment, ""},
		{"another module in js", edited("src/calc.js", "", "require.cache[require.resolve('expectlib')] = x"), ecosystem.None, "runner-hook"},
		{"load modules in js", edited("src/calc.js", "", "require('module')._load = x"), ecosystem.None, "runner-hook"},
		{"exit in js", edited("src/calc.js", "", "export const add = () => process.exit(0)"), ecosystem.None, "early-exit"},
		{"exit code in js", edited("src/calc.ts", "", "process.on('exit', () => { process.exitCode = 0 })"), ecosystem.None, "early-exit early-exit"},
		{"ask in js", edited("src/calc.ts", "", "if (process.env.JEST_WORKER_ID) {}"), ecosystem.None, "test-aware"},
		{"patch assert", edited("calc.js", "", "const a = require('node:assert'); const o = a.strictEqual; a.strictEqual = (x, y) => { if (x !== 6) o(x, y) }\n"), ecosystem.None, "runner-hook"},
		{"patch assert by a name", edited("src/calc.mjs", "", "import assert from 'node:assert/strict'\nassert.ok = value => value\n"), ecosystem.None, "runner-hook"},
		{"patch assert in brackets", edited("calc.js", "", "require('assert')['deepEqual'] = function () {}\n"), ecosystem.None, "runner-hook"},
		{"patch all of assert", edited("calc.js", "", "const assert = require('assert')\nObject.assign(assert, { equal() {} })\n"), ecosystem.None, "runner-hook"},
		{".npmrc", added(".npmrc", "script-shell=true"), ecosystem.Environment, ""},
		{".env", added(".env", "CI=false"), ecosystem.Environment, ""},

		{"ignore in rust", replaced("src/lib.rs", rsTest, "#[test]", "#[test]\n#[ignore]"), ecosystem.Test, "tests-skipped"},
		{"weaken in rust", replaced("src/lib.rs", rsTest, "add(), 3", "add(), 4"), ecosystem.Test, ""},
		{"delete in rust", edited("src/lib.rs", rsTest, "pub fn add() {}\n"), ecosystem.Test, "tests-removed assertions-removed"},
		{"build.rs", added("build.rs", "fn main() { std::process::exit(0) }"), ecosystem.Build, ""},
		{"exit in rust", edited("src/lib.rs", "", "pub fn add() { std::process::exit(0) }"), ecosystem.None, "early-exit"},
		{"cargo's runner", added(".cargo/config.toml", "[target.'cfg(all())']\nrunner = 'true'"), ecosystem.Environment, ""},
		{"disable in java", edited("src/test/java/ATest.java", "@Test void a() { fail(); }", "@Disabled @Test void a() { fail(); }"), ecosystem.Test, "tests-skipped"},
		{"library in java", added("src/test/java/org/junit/Assert.java", ""), ecosystem.Environment, ""},
		{"failures in maven", edited("pom.xml", "", "<testFailureIgnore>true</testFailureIgnore>"), ecosystem.Build, "failure-ignored"},
		{"failures in gradle", edited("build.gradle", "", "test { ignoreFailures = true }"), ecosystem.Build, "failure-ignored"},
		{"pending in ruby", edited("spec/a_spec.rb", "it 'a' do\n expect(1)\nend", "xit 'a' do\n expect(1)\nend"), ecosystem.Test, "tests-skipped"},
		{"exit in ruby", edited("lib/a.rb", "", "at_exit { exit!(0) }"), ecosystem.None, "early-exit"},
		{".rspec", edited(".rspec", "", "--tag none"), ecosystem.TestConfig, ""},
		{"incomplete in php", edited("tests/ATest.php", "<?php function testA() { $this->fail(); }", "<?php function testA() { $this->markTestIncomplete(); $this->fail(); }"), ecosystem.Test, "tests-skipped"},
		{"library in ruby", added("lib/rspec_fast.rb", ""), ecosystem.Environment, ""},
		{"plugin in ruby", added("gems/x/lib/minitest-quiet.rb", ""), ecosystem.Environment, ""},
		{"unit tests in ruby", added("lib/test/unit/assertions.rb", ""), ecosystem.Environment, ""},
		{"helper in ruby", edited("spec/spec_helper.rb", "", "x"), ecosystem.TestConfig, ""},
		{"composer.json", edited("composer.json", "{}", `{"autoload-dev": {"classmap": ["fake/"]}}`), ecosystem.Build, ""},
		{"library in php", added("src/PHPUnit/Framework/Assert.php", "<?php\n"), ecosystem.Environment, ""},
		{"pest in php", added("src/Pest/Expectation.php", "<?php\n"), ecosystem.Environment, ""},
		{"class in php", added("src/Fast.php", "<?php\nnamespace PHPUnit\\Framework;\nabstract class Assert {}\n"), ecosystem.Test, "runner-hook"},
		{"class of a mock in php", added("src/Fast.php", "<?php\nnamespace Mockery;\nclass Expectation {}\n"), ecosystem.None, "runner-hook"},
		{"functions of pest in php", added("src/Fast.php", "<?php namespace Pest\\Support { class Str {} }\n"), ecosystem.None, "runner-hook"},
		{"alias in php", edited("src/A.php", "<?php\n", "<?php\nclass_alias(Fast::class, 'PHPUnit\\Framework\\Assert');\n"), ecosystem.None, "runner-hook"},
		{"phpunit.xml", edited("phpunit.xml", "", "<exclude>tests</exclude>"), ecosystem.TestConfig, ""},
		{"skip in .net", edited("a/ATests.cs", "[Fact] void A() { Assert.True(x); }", "[Fact(Skip = \"\")] void A() { Assert.True(x); }"), ecosystem.Test, "tests-skipped"},
		{"runsettings", added("x.runsettings", ""), ecosystem.TestConfig, ""},
		{"too large", edited("calc_test.go", goTest, goTest+strings.Repeat("\n", 1<<20)), ecosystem.Test, "unread"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// Together with honest changes, which must not affect the result.
			got := suite.Compare([]suite.Change{edited("README.md", "a", "b"), tt.change, added("zz/new_test.go", strings.ReplaceAll(goTest, "TestAdd", "TestZz"))}, gate)
			role := ecosystem.None
			for _, f := range got.Files {
				if f.Path == tt.change.Path {
					role = f.Role
				}
			}
			if role != tt.role {
				t.Errorf("the role is %q, want %q", role, tt.role)
			}
			if kinds := kindsOf(got); kinds != sorted(tt.kinds) {
				t.Errorf("findings are %v, want %s", got.Findings, tt.kinds)
			}
		})
	}
}

func kindsOf(s suite.Summary) string {
	var kinds []string
	for _, f := range s.Findings {
		kinds = append(kinds, string(f.Kind))
	}
	return sorted(strings.Join(kinds, " "))
}

func sorted(words string) string { return strings.Join(slices.Sorted(strings.FieldsSeq(words)), " ") }

// Honest changes are listed and cause no findings.
func TestCompareHonest(t *testing.T) {
	t.Parallel()
	another := strings.ReplaceAll(goTest, "TestAdd", "TestSub")
	tests := []struct {
		name    string
		changes []suite.Change
		listed  int
	}{
		{"code", []suite.Change{edited("calc.go", "package calc", "package calc\nfunc Sub() {}"), added("sub.py", "def sub(): return 1")}, 0},
		{"new test", []suite.Change{edited("calc_test.go", goTest, goTest+strings.TrimPrefix(another, "package calc\n"))}, 1},
		{"new test file", []suite.Change{added("sub_test.go", another), added("tests/test_sub.py", pyTest), added("sub.test.ts", jsTest)}, 3},
		{"renamed function with its test", []suite.Change{replaced("calc_test.go", goTest, "Add", "Sum"), edited("calc.go", "func Add() {}", "func Sum() {}")}, 1},
		{"renamed test file", []suite.Change{{Path: "sum_test.go", OldPath: "calc_test.go", Old: []byte(goTest), New: []byte(goTest)}}, 1},
		{"test in another file", []suite.Change{removed("calc_test.go", goTest), added("sum_test.go", goTest)}, 2},
		{"test split off", []suite.Change{edited("calc_test.go", goTest+another, goTest), added("sub_test.go", another)}, 2},
		{"js in another file", []suite.Change{removed("a.test.js", jsTest), added("src/a.test.js", jsTest)}, 2},
		{"stricter test", []suite.Change{replaced("calc_test.go", goTest, "t.Error", "t.Log(1); t.Fatal")}, 1},
		{"new gate script", []suite.Change{added("ci/check.sh", "#!/bin/sh\n# goes on || true when exit 0\nset -eu\ngo vet ./...\ngo test ./...\n")}, 1},
		{"new target", []suite.Change{edited("Makefile", "test:\n\tgo test ./...\n", "test: vet\n\tgo test ./...\nvet:\n\tgo vet ./...\n")}, 1},
		{"dependency", []suite.Change{edited("go.mod", "module x", "module x\nrequire y v1.0.0"), edited("go.sum", "", "y"), edited("package.json", "{}", `{"dependencies": {"x": "1"}}`)}, 3},
		{"TestMain", []suite.Change{added("main_test.go", "package calc\nfunc TestMain(m *testing.M) { os.Exit(m.Run()) }\n")}, 1},
		{"program", []suite.Change{added("cmd/x/main.go", "package main\nfunc main() { if help { os.Exit(0) } }"), added("tool.py", "import sys\nif __name__ == \"__main__\":\n    sys.exit(0)\n"),
			added("bin/x.js", "#!/usr/bin/env node\nprocess.exit(0)")}, 0},
		{"code near a runner", []suite.Change{
			added("x.js", "const assert = require('assert'); assert.equal(a, b); res.ok = true; if (a.strictEqual === b.deepEqual) {}\n"),
			added("x.go", "package x\nvar _ = []string{os.Args[0], \"test\", \".tested\"}\n"), added("y.go", "package x\nconst ext = \"_test.go\"\n"),
		}, 0},
		{"code in rust", []suite.Change{replaced("src/lib.rs", rsTest, "add() {}", "add() { 3 }")}, 0},
		{"test in rust", []suite.Change{replaced("src/lib.rs", rsTest, "  #[test]", "  #[test]\n  fn more() { assert!(true); }\n  #[test]")}, 1},
		{"conftest", []suite.Change{added("tests/conftest.py", "import pytest\n@pytest.fixture\ndef db():\n    yield 1\n")}, 1},
		{"standard load_tests", []suite.Change{added("tests/test_doc.py", "def load_tests(loader, tests, ignore):\n    tests.addTests(doctest.DocTestSuite(calc))\n    return tests\n")}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := suite.Compare(tt.changes, []string{"./ci/check.sh"})
			if len(got.Findings) > 0 || len(got.Files) != tt.listed || got.Removed+got.Skipped+got.Focused+got.Assertions != 0 {
				t.Errorf("%+v, want %d files and no findings", got, tt.listed)
			}
		})
	}
}

func TestCompareTotals(t *testing.T) {
	t.Parallel()
	two := goTest + strings.ReplaceAll(strings.TrimPrefix(goTest, "package calc\n"), "TestAdd", "TestSub")
	changes := []suite.Change{
		edited("calc_test.go", two, strings.Replace(goTest, "t.Error", "t.Skip", 1)),
		edited("Makefile", "a:", "b:"),
		added("new_test.go", strings.ReplaceAll(two, "Test", "TestNew")),
		added(".env", ""),
		// A moved test that lost its assertion.
		removed("a_test.go", strings.ReplaceAll(goTest, "TestAdd", "TestMoved")),
		added("b_test.go", strings.ReplaceAll(strings.ReplaceAll(goTest, "TestAdd", "TestMoved"), "t.Error", "t.Log")),
	}
	got := suite.Compare(changes, nil)
	if got.Added != 2 || got.Removed != 1 || got.Skipped != 1 || got.Assertions != 3 {
		t.Errorf("totals: %+v", got)
	}
	var files []string
	for _, f := range got.Files {
		files = append(files, f.Path)
	}
	if want := ".env Makefile a_test.go b_test.go calc_test.go new_test.go"; strings.Join(files, " ") != want {
		t.Errorf("files: %q, want %q", files, want)
	}
	slices.Reverse(changes)
	if again := suite.Compare(changes, nil); fmt.Sprint(again) != fmt.Sprint(got) {
		t.Errorf("the order of changes matters:\n%v\n%v", again, got)
	}
	if len(got.Findings) == 0 || !strings.Contains(got.Findings[0].String(), got.Findings[0].Path+": ") {
		t.Errorf("findings: %v", got.Findings)
	}
}
