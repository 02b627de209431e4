package suite_test

import (
	"testing"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
)

// A file counts as a helper of tests if its text shows it before or after the change. Other code does not.
func TestHelpers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, text string
		helper     bool
	}{
		{"internal/check/check.go", "package check\n\nimport \"testing\"\n\nfunc Same(t testing.TB, a, b int) { t.Fatal(a) }\n", true},
		{"check/check.go", "package check\n\nimport \"github.com/stretchr/testify/require\"\n\nfunc Same(t require.TestingT) {}\n", true},
		{"check/check.go", "package check\n\n// Like testing.T.\nvar _ = \"testing\"\n\nfunc f() { a.testing.T() }\n", false},
		{"check/check.go", "package check\n\nimport \"testing\"\n\nvar quiet = testing.Testing()\n", false},
		{"support.py", "import os, unittest\n", true},
		{"support.py", "from pytest import fixture\n", true},
		{"support.py", "def same(case, a, b):\n    case.assertEqual(a, b)\n", true},
		{"support.py", "# import pytest\ndef f(a):\n    assert a, 'import unittest'\n    raise AssertionError\n", false},
		{"testutil.py", "def same(case, a, b):\n    if a != b:\n        case.fail(a)\n", true},
		{"checks.py", "def same(a, b):\n    assert a == b\n", true},
		{"checks.py", "def same(a, b):\n    return a == b\n", false},
		{"lib/support.ts", "import { expect } from 'vitest';\n", true},
		{"lib/support.js", "const { expect } = require(\"chai\");\n", true},
		{"lib/support.js", "const assert = require('assert');\nassert(x);\n", false},
		{"lib/check.mjs", "import assert from 'node:assert/strict';\n", true},
		{"lib/check.mjs", "import { node } from './node.js'; f('vitest', 'assert');\n", false},
		{"src/main/java/a/Support.java", "package a;\nimport static org.junit.jupiter.api.Assertions.*;\n", true},
		{"src/main/java/a/Support.java", "package a;\nimport org.slf4j.Logger;\n", false},
		{"lib/support.rb", "module Support\n  include RSpec::Matchers\nend\n", true},
		{"src/Support.php", "<?php\nuse PHPUnit\\Framework\\Assert;\n", true},
		{"Support/Same.cs", "using Xunit;\n", true},
	} {
		for _, change := range []suite.Change{edited(c.path, c.text, ""), edited(c.path, "", c.text)} {
			got := suite.Compare([]suite.Change{change}, nil)
			if helper := len(got.Files) == 1 && got.Files[0].Helper && got.Files[0].Role == ecosystem.Test && !got.Files[0].Grown; helper != c.helper {
				t.Errorf("%s: %q: %+v", c.path, c.text, got)
			}
		}
	}
	// The role by name takes precedence.
	got := suite.Compare([]suite.Change{edited("conftest.py", "import pytest\n", "")}, nil)
	if len(got.Files) != 1 || got.Files[0].Helper || got.Files[0].Role != ecosystem.TestConfig {
		t.Errorf("%+v", got)
	}
}
