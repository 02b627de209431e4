package pool_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A person merges commits that make tests load something else than the installed library with their assertions. Ordinary features,
// with new modules and new tests, merge by themselves.
func TestReplacedLibraryNeedsAPerson(t *testing.T) {
	t.Parallel()
	const empty = "printf 'def assert_equal(a, b):\\n    pass\\n' >"
	for name, c := range map[string]struct{ script, mark string }{
		"module":           {empty + "assertpy.py", "assertpy.py: takes the place of the module assertpy"},
		"package":          {"mkdir assertpy; " + empty + "assertpy/__init__.py", "assertpy/__init__.py: takes the place of the module assertpy"},
		"link":             {empty + "calc/assertpy.py; ln -s calc/assertpy.py assertpy.py", "assertpy.py: takes the place of the module assertpy"},
		"link to a folder": {"mkdir calc/x; " + empty + "calc/x/__init__.py; ln -s calc/x assertpy", "assertpy: takes the place of the module assertpy"},
		"another library":  {"mkdir numpy; echo x=1 >numpy/__init__.py", "numpy/__init__.py: takes the place of the module numpy"},
		"settings":         {"printf '[pytest]\\naddopts = --co\\n' >.pytest.toml", ".pytest.toml"},
		"patched": {"printf 'import assertpy\\n\\nassertpy.assert_equal = lambda a, b: None\\n' >>calc/__init__.py",
			"calc/__init__.py: changes assertpy, which tests load"},
		"patched script": {"printf \"const e=require('expectlib');e.eq=()=>{}\\n\" >>lib/add.js",
			"lib/add.js: loads expectlib, which only tests have loaded so far"},
		"feature": {"echo 'import json, logging' >calc/new.py; mkdir calc/sub; echo 'from calc import new' >calc/sub/__init__.py; echo >tool.py; " +
			"echo 'exports.sub = 1' >lib/sub.js", ""},
		"feature with tests": {"echo 'def f(): return 1' >calc/new.py; " +
			"printf 'import assertpy\\nfrom calc.new import f\\n\\ndef test_new():\\n    assertpy.assert_equal(f(), 1)\\n' >tests/test_new.py", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "cat >/dev/null; "+c.script+"; git add -A; git commit -qm work"+done)
			f.write("calc/__init__.py", "def add(a, b):\n    return a + b\n")
			f.write("tests/test_calc.py", "import assertpy\nimport numpy.testing\n\nfrom calc import add\n\n\ndef test_add():\n    assertpy.assert_equal(add(2, 3), 5)\n")
			f.write("lib/add.js", "exports.add = (a, b) => a + b\n")
			f.write("test/add.test.js", "const x = require('expectlib');\nconst { add } = require('../lib/add');\ntest('add', () => x.eq(add(2, 3), 5));\n")
			f.commit("a project")
			f.Config.Run.Publish, f.Config.Run.NoCanary, f.Config.Run.Gate = journal.PublishMerge, true, lines("true")
			f.issue("a")
			r := f.one("a")
			if r.Verdict.Outcome != journal.Succeeded || strings.HasPrefix(r.Published, "merged") != (c.mark == "") || !strings.Contains(f.text("a"), c.mark) {
				t.Errorf("published %q, %+v\n%s", r.Published, r.Verdict, f.text("a"))
			}
			if c.mark == "" && len(r.Facts.Watch.Findings) > 0 {
				t.Errorf("%q", r.Facts.Watch.Findings)
			}
		})
	}
}
