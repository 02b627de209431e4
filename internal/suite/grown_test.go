package suite_test

import (
	"testing"

	"github.com/ralph-pool/ralph/internal/suite"
)

// A test file counts as grown if nothing in it can have replaced what was there.
func TestGrown(t *testing.T) {
	t.Parallel()
	const jsSuite = "const assert = require(\"node:assert\");\n\ndescribe('calc', () => {\n" + jsTest + "});\n"
	for name, c := range map[string]struct {
		change suite.Change
		want   bool
	}{
		"go test at the end":         {edited("a_test.go", goTest, goTest+"\nfunc TestMore(t *testing.T) {\n\tt.Error(Add(2, 2))\n}\n"), true},
		"go import too":              {edited("a_test.go", "package a\n\nimport (\n\t\"testing\"\n)\n"+goTest, "package a\n\nimport (\n\t\"strings\"\n\t\"testing\"\n)\n"+goTest+"\nfunc TestMore(t *testing.T) {}\n"), true},
		"python method at the end":   {edited("test_a.py", pyTest, pyTest+"\n    def test_more(self):\n        self.assertEqual(add(2, 2), 4)\n"), true},
		"python import too":          {edited("test_a.py", pyTest, "import math\n"+pyTest+"\n    def test_more(self):\n        self.assertEqual(add(2, math.pi), 4)\n"), true},
		"in a suite":                 {edited("a.test.js", jsSuite, "const assert = require(\"node:assert\");\n\ndescribe('calc', () => {\n"+jsTest+"it('more', () => {\n  expect(add(2, 2)).toBe(4)\n})\n});\n"), true},
		"rust":                       {replaced("src/a.rs", rsTest, "add(), 3); }\n", "add(), 3); }\n  #[test]\n  fn more() { assert_eq!(super::add(), 4); }\n"), true},
		"a weaker assertion":         {replaced("a_test.go", goTest, "!= 3", "!= Add(1, 2)"), false},
		"a weaker one in python":     {replaced("test_a.py", pyTest, "add(1, 2), 3", "add(1, 2), add(1, 2)"), false},
		"a return before it":         {replaced("test_a.py", pyTest, "        self", "        return\n        self"), false},
		"a line before it":           {replaced("a_test.go", goTest, "\tif", "\tAdd = fake\n\tif"), false},
		"an import of what is there": {replaced("test_a.py", pyTest, "import unittest\n", "import unittest\nfrom fake import add\n"), false},
		"an import of everything":    {replaced("test_a.py", pyTest, "import unittest\n", "import unittest\nfrom fake import *\n"), false},
		"an import under its name":   {edited("test_a.py", pyTest, pyTest+"import fake as add\n"), false},
		"the test once more":         {edited("test_a.py", pyTest, pyTest+"    def test_add(self):\n        self.assertTrue(True)\n"), false},
		"the test set to another":    {edited("test_a.py", pyTest, pyTest+"TestCalc.test_add = lambda self: None\n"), false},
		"another order":              {edited("a_test.go", goTest+"\nfunc TestB(t *testing.T) {}\n", "package calc\n\nfunc TestB(t *testing.T) {}\n"+goTest[len("package calc\n"):]), false},
		"renamed":                    {suite.Change{Path: "b_test.go", OldPath: "a_test.go", Old: []byte(goTest), New: []byte(goTest)}, false},
		"no tests that can be read":  {edited("tests/run.sh", "set -e\n./a\n", "set -e\n./a\n./b\n"), false},
		"data of tests":              {edited("testdata/cases.txt", "1 2\n", "1 2\n3 4\n"), false},
		"emptied":                    {edited("a_test.go", goTest, ""), false},
	} {
		files := suite.Compare([]suite.Change{c.change}, nil).Files
		if len(files) != 1 || files[0].Grown != c.want {
			t.Errorf("%s: %+v", name, files)
		}
	}
}
