package suite_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
)

// plantingOf returns a Planting for the files.
func plantingOf(files map[string]string, near ...string) suite.Planting {
	p := suite.Planting{Near: near, Suffix: "q7", Read: func(path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}}
	for path := range files {
		p.Files = append(p.Files, path)
	}
	return p
}

func pathsOf(canaries []ecosystem.Canary) string {
	var paths []string
	for _, c := range canaries {
		paths = append(paths, c.Path)
	}
	return strings.Join(paths, " ")
}

func TestCanaryPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files string // names of files; each has its content in texts, or none
		near  string
		want  string
	}{
		{"nothing", "README.md Makefile ci/check.sh", "", ""},
		{"go beside tests", "go.mod a/a.go b/b.go b/b_test.go", "", "b/xq7_test.go"},
		{"go without tests", "go.mod a/a.go", "", "a/xq7_test.go"},
		{"go near the change", "go.mod a/a.go b/b.go b/b_test.go", "a/a.go", "a/xq7_test.go b/xq7_test.go"},
		{"go once a folder", "go.mod b/b.go b/b_test.go", "b/b.go b/b_test.go", "b/xq7_test.go"},
		{"go bounded", "a/a.go b/b.go c/c.go d/d.go e/e.go", "a/a.go b/b.go c/c.go d/d.go",
			"a/xq7_test.go b/xq7_test.go c/xq7_test.go d/xq7_test.go"},
		{"go that is not built", "testdata/a.go vendor/x/a.go _x/a.go .x/a.go a_windows_test.go", "", ""},
		{"go taken", "a/a.go a/xq7_test.go", "", "a/xq7x_test.go"},
		{"python", "pyproject.toml calc.py tests/test_calc.py", "calc.py", "test_xq7.py tests/test_xq7.py"},
		{"python of the other name", "pkg/calc_test.py", "", "pkg/xq7_test.py"},
		{"python without tests", "setup.py calc.py", "", "test_xq7.py"},
		{"js", "package.json src/a.test.ts", "", "src/xq7.test.ts src/xq7l.test.ts"},
		{"js of mocha", "package.json test/a.js", "", "test/xq7.js test/xq7l.js"},
		{"js of node", "package.json test-a.mjs", "", "test-xq7.mjs test-xq7l.mjs"},
		{"js with helpers", "test/a.js test/helper.js test/z.spec.js", "", "test/xq7.spec.js test/xq7l.spec.js"},
		{"js without tests", "package.json src/a.ts", "", ""},
		{"js elsewhere", "node_modules/a/a.test.js src/fixtures/a.test.js", "", ""},
		{"rust", "Cargo.toml src/lib.rs", "", "tests/xq7.rs"},
		{"rust beside tests", "Cargo.toml src/lib.rs tests/a.rs", "", "tests/xq7.rs"},
		{"rust near the change", "Cargo.toml a/Cargo.toml a/src/lib.rs b/Cargo.toml b/src/lib.rs", "b/src/lib.rs",
			"b/tests/xq7.rs tests/xq7.rs"},
		{"java", "pom.xml src/test/java/x/ATest.java src/main/java/x/A.java", "", "src/test/java/x/Checksxq7Test.java"},
		{"ruby", "Gemfile spec/a_spec.rb", "", "spec/xq7_spec.rb"},
		{"php", "composer.json tests/ATest.php", "", "tests/Checksxq7Test.php"},
		{"xunit", "x.sln A.Tests/ATests.cs", "", "A.Tests/Checksxq7Tests.cs"},
	}
	texts := map[string]string{".go": "package a", ".toml": "[package]\nname = 'a'\n", ".java": "package x;\nimport org.junit.jupiter.api.Test;", ".cs": "[Fact]"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for file := range strings.FieldsSeq(tt.files) {
				files[file] = texts[filepath.Ext(file)]
			}
			got := suite.Canaries(plantingOf(files, strings.Fields(tt.near)...))
			if pathsOf(got) != tt.want {
				t.Errorf("%q, want %q", pathsOf(got), tt.want)
			}
			for _, c := range got {
				if c.Ecosystem == "" || !strings.Contains(string(c.Content), "must fail") {
					t.Errorf("%s is not complete:\n%s", c.Path, c.Content)
				}
				if role, _ := suite.RoleOf(c.Path, nil); role != ecosystem.Test {
					t.Errorf("%s is %q", c.Path, role)
				}
				if n := suite.Count(c.Path, c.Content); n.Skipped > 0 || n.Tests == 0 && !strings.Contains(c.Path, "xq7l") {
					t.Errorf("%s counts as %+v:\n%s", c.Path, n, c.Content)
				}
			}
		})
	}
}

// Each canary resembles the test beside it.
func TestCanaryText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, text, want string }{
		{"go", "a_test.go", "// package x\npackage a_test\n", "package a_test\n"},
		{"vitest", "a.test.ts", "import { it, expect } from 'vitest'\nit('a', () => {})", "import { it } from \"vitest\";\n"},
		{"node", "a.test.mjs", "import test from 'node:test'\ntest('a', () => {})", "import { test } from \"node:test\";\n"},
		{"node with require", "a.test.cjs", "const test = require('node:test')\ntest('a', () => {})", "const { test } = require(\"node:test\");\n"},
		{"ava", "a.test.js", "import test from 'ava'\ntest('a', t => {})", "import test from \"ava\";\n"},
		{"mocha", "test/a.js", "it('a', () => {})", "\nit(\"xq7\""},
		{"jest", "a.test.js", "test('a', () => {}); it('b', () => {})", "\ntest(\"xq7\""},
		{"junit 5", "src/test/java/ATest.java", "package a.b.c;\n\nimport org.junit.jupiter.api.Test;", "package a.b.c;\n\nimport org.junit.jupiter.api.Test;\n"},
		{"junit 4", "ATest.java", "import org.junit.Assert;", "import org.junit.Test;\n"},
		{"junit 3", "ATest.java", "import junit.framework.TestCase;\nclass ATest extends TestCase {}", "class Checksxq7Test extends TestCase {\n    public void"},
		{"testng", "ATest.java", "import org.testng.annotations.*;", "import org.testng.annotations.Test;\n"},
		{"kotlin", "ATest.kt", "package a.b\nimport kotlin.test.Test", "package a.b\n\nimport kotlin.test.Test\n"},
		{"rspec", "a_spec.rb", "describe 'a' do\nend", "RSpec.describe"},
		{"minitest", "test/test_a.rb", "require 'minitest/autorun'", "< Minitest::Test"},
		{"test-unit", "test/test_a.rb", "class A < Test::Unit::TestCase\nend", "< Test::Unit::TestCase"},
		{"phpunit", "tests/ATest.php", "<?php\nnamespace App\\Tests;\nclass ATest extends TestCase {}", "<?php\n\nnamespace App\\Tests;\n"},
		{"pest", "tests/ATest.php", "<?php\nit('adds', function () {});", "\ntest('xq7'"},
		{"nunit", "ATests.cs", "using NUnit.Framework;\n[Test] public void A() {}", "using NUnit.Framework;"},
		{"mstest", "ATests.cs", "[TestClass] class A {}", "[TestMethod]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := suite.Canaries(plantingOf(map[string]string{tt.file: tt.text}))
			if len(got) == 0 || !strings.Contains("\n"+string(got[0].Content), tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			for _, c := range got {
				if c.Mark == "" || !strings.Contains(strings.ToLower(c.Path), c.Mark) || !strings.Contains(string(c.Content), c.Mark+": ") {
					t.Errorf("%s: %q is not in\n%s", c.Path, c.Mark, c.Content)
				}
			}
		})
	}
}

func TestCanaryUnreadable(t *testing.T) {
	t.Parallel()
	p := plantingOf(map[string]string{"a.go": "package a"})
	p.Read = func(string) ([]byte, error) { return nil, errors.New("no") }
	if got := suite.Canaries(p); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// project is a small project whose gate passes.
type project struct {
	name  string
	files map[string]string
	gate  []string
	// tricks replace files so that the gate passes whatever the tests find.
	tricks []map[string]string
}

func projects() []project {
	return []project{
		{
			name: "go",
			files: map[string]string{"go.mod": "module example.org/calc\n\ngo 1.21\n", "calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
				"calc_test.go": "package calc_test\n\nimport (\n\t\"testing\"\n\n\t\"example.org/calc\"\n)\n\nfunc TestAdd(t *testing.T) {\n\tif calc.Add(1, 2) != 3 {\n\t\tt.Error(\"no\")\n\t}\n}\n",
				"gen.go":       "//go:build ignore\n\npackage main\n\nfunc main() {}\n", "in/in.go": "package in\n"},
			gate: []string{"go", "test", "./..."},
			tricks: []map[string]string{
				{"main_test.go": "package calc\n\nimport \"testing\"\n\nfunc TestMain(m *testing.M) {}\n"},
				{"calc.go": "package calc\n\nimport \"os\"\n\nfunc init() { os.Exit(0) }\n\nfunc Add(a, b int) int { return 0 }\n"},
			},
		},
		{
			name: "unittest",
			files: map[string]string{"pyproject.toml": "", "calc.py": "def add(a, b):\n    return a + b\n", "tests/__init__.py": "",
				"tests/test_calc.py": "import unittest\nfrom calc import add\n\n\nclass TestCalc(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"},
			gate: []string{"python3", "-B", "-m", "unittest"},
			tricks: []map[string]string{
				{"unittest.py": "class TestCase: pass\n"},
				{"calc.py": "import os\ndef add(a, b):\n    os._exit(0)\n"},
				{"tests/__init__.py": "import unittest\ndef load_tests(*_): return unittest.TestSuite()\n"},
				{"calc.py": "import unittest\nsetattr(unittest.TestCase, 'assert' + 'Equal', lambda *_: None)\ndef add(a, b): return 0\n"},
			},
		},
		{
			name: "node",
			files: map[string]string{"package.json": `{"scripts": {"test": "node --test"}}`, "calc.js": "exports.add = (a, b) => a + b\n",
				"test/calc.test.js": "const test = require('node:test')\nconst assert = require('node:assert')\nconst { add } = require('../calc')\ntest('adds', () => assert.equal(add(1, 2), 3))\n"},
			gate: []string{"npm", "test"},
			tricks: []map[string]string{
				{"package.json": `{"scripts": {"test": "node --test || true"}}`},
				{"calc.js": "Object.assign(require('assert'), { equal() {} })\nexports.add = () => 0\n"},
				{"calc.js": "process.exit(0)\n"},
			},
		},
	}
}

// Each canary makes a real gate fail, and for each trick a canary passes.
func TestCanaryFails(t *testing.T) {
	t.Parallel()
	for _, p := range projects() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			pass := func(files ...map[string]string) bool {
				return passes(t, p.gate, append([]map[string]string{p.files}, files...)...)
			}
			if !pass() {
				t.Fatal("the gate fails without a canary")
			}
			canaries := suite.Canaries(plantingOf(p.files, "calc.go", "tests/test_calc.py", "test/calc.test.js"))
			if len(canaries) < 2 {
				t.Fatalf("%d canaries", len(canaries))
			}
			for _, c := range canaries {
				if pass(map[string]string{c.Path: string(c.Content)}) {
					t.Errorf("the gate passes with %s:\n%s", c.Path, c.Content)
				}
			}
			for _, trick := range p.tricks {
				if !pass(trick) || !slices.ContainsFunc(canaries, func(c ecosystem.Canary) bool {
					return pass(trick, map[string]string{c.Path: string(c.Content)})
				}) {
					t.Errorf("no canary shows the trick %q", trick)
				}
			}
		})
	}
}

// passes runs the gate on the files in a new folder and reports whether it passed.
func passes(t *testing.T, gate []string, layers ...map[string]string) bool {
	t.Helper()
	ok, out := output(t, gate, layers...)
	t.Logf("%q in %v: %v\n%s", gate, layers[1:], ok, out)
	return ok
}

// output runs a command on the files in a new folder.
func output(t *testing.T, gate []string, layers ...map[string]string) (ok bool, text string) {
	t.Helper()
	dir := t.TempDir()
	for _, files := range layers {
		for path, text := range files {
			name := filepath.Join(dir, filepath.FromSlash(path))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), gate[0], gate[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0", "PYTHONPATH=")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return err == nil, string(out)
}
