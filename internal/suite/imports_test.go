package suite_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
)

// linked returns a new symbolic link.
func linked(path, target string) suite.Change {
	return suite.Change{Path: path, New: []byte(target), Added: true, Link: true}
}

// bases are repositories before a change.
var bases = map[string]map[string]string{
	"python": {
		"calc/__init__.py":     "from calc.add import add\n",
		"calc/add.py":          "import logging\nimport numpy as np\n",
		"calc/tests/test_x.py": "import logging\nfrom .. import add\n",
		"tests/test_calc.py":   "import os, assertpy\nfrom calc import add\nimport calc.add as a\nfrom hamcrest import (assert_that, equal_to as eq)\nimport numpy.testing\n",
		"tests/conftest.py":    "pytest_plugins = ['checkplugin']\nimport importlib\nx = importlib.import_module('dyn.lib')\nfrom google.cloud import storage\n",
		"tests/factories.py":   "import attrs\n",
		"lib/check.py":         "import pytest, sure\n",
		"other/svc/app.py":     "import yaml\n",
	},
	"other layout": {
		"python/calc/__init__.py": "",
		"python/calc/add.py":      "",
		"spec/checks/test_add.py": "import assertpy\nfrom calc.add import add\n",
		"pytest.ini":              "[pytest]\npythonpath =\n    deps\n    more/deps\n",
		"Makefile":                "export PYTHONPATH := $(CURDIR)/made\ntest:\n",
	},
	"no packages": {
		"app/main.py":      "import logging\n",
		"app/models.py":    "",
		"app/test_main.py": "import json, yaml\nfrom models import X\nimport main\n",
		"b/test_b.py":      "from config import y\nimport settings\n",
		"b/config.py":      "",
	},
	"javascript": {
		"package.json":      "{}",
		"lib/add.js":        "const fs = require('fs');\nconst used = require('used');\n",
		"test/add.test.js":  "const x = require('expectlib');\nconst fs = require('fs');\nimport y from '@a/b/c';\nrequire('../lib/add');\nrequire('used');\nimport 'node:os';\n",
		"src/parts/x.ts":    "",
		"src/parts.test.ts": "import { x } from 'parts/x';\nimport chai from 'chai';\n",
	},
	"ruby": {
		"lib/calc.rb":           "require 'json'\n",
		"lib/calc/add.rb":       "",
		"test/calc_test.rb":     "require 'test_helper'\nrequire 'calc/add'\nrequire 'shoulda/context'\nrequire('rack/test')\n",
		"test/test_helper.rb":   "require 'assertions'\nrequire 'calc'\n",
		"gems/x/spec/x_spec.rb": "require 'faker'\n",
	},
	"perl": {
		"lib/Calc.pm":     "package Calc;\nuse strict;\nuse List::Util qw(sum);\n1;\n",
		"lib/Calc/Add.pm": "",
		"t/calc.t":        "#!/usr/bin/perl\nuse strict; use warnings;\nuse Test::More;\nuse Calc; use Calc::Add;\nrequire Sub::Fake;\n",
		"t/lib/Help.pm":   "use Mock::It;\n",
	},
}

func find(base string, changes ...suite.Change) []suite.Change {
	files := bases[base]
	if suite.MayReplace(changes) {
		m := suite.NewImports(slices.Sorted(maps.Keys(files)), changes, []string{"PYTHONPATH=vend:x python -m pytest -q"})
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if m.Reads(file) {
				m.Add(file, []byte(files[file]))
			}
		}
		m.Find(changes)
	}
	return changes
}

// A new file, folder or link that answers to a name for which tests get an installed library so far takes its place.
func TestReplacedModules(t *testing.T) {
	t.Parallel()
	for base, files := range map[string]string{
		"python": `assertpy.py=assertpy assertpy/__init__.py=assertpy src/assertpy.py=assertpy tests/assertpy/__init__.py=assertpy lib/assertpy.py=assertpy
			numpy/__init__.py=numpy numpy/testing.py=numpy/testing hamcrest.cpython-312-x86_64-linux-gnu.so=hamcrest hamcrest/__init__.py=hamcrest
			checkplugin.py=checkplugin dyn/lib/__init__.py=dyn/lib dyn.py=dyn google/cloud/storage.py=google/cloud/storage google/__init__.py=google
			sure.py=sure src/sure/__init__.py=sure attrs.py=attrs calc/tests/logging.py=logging
			calc/sub.py= calc/logging.py= calc/assertpy.py= calc/assertpy/__init__.py= docs/numpy/x.py= new.py= tests/new_helper.py= calc/os.py=
			tests/test_assertpy.py= assertpy.md= assertpy/data.json= yaml.py= src/new/__init__.py= calc/add/__init__.py= calc/eq.py= other/svc/assertpy.py=
			tests/data/assertpy.py= calc/storage.py= storage.py= equal_to.py=`,
		"other layout": `python/assertpy.py=assertpy deps/assertpy.py=assertpy more/deps/assertpy/__init__.py=assertpy vend/assertpy.py=assertpy x/assertpy.py=assertpy made/assertpy.py=assertpy
			spec/checks/assertpy.py=assertpy spec/assertpy.py=assertpy
			python/calc/assertpy.py= python/calc/more.py= python/tool.py= elsewhere/assertpy.py=`,
		"no packages": `app/json.py=json app/yaml.py=yaml yaml/__init__.py=yaml
			app/logging.py= app/config.py= app/views.py= app/settings.py= c/yaml.py=`,
		"javascript": `src/chai.ts=chai src/chai/index.js=chai src/chai.json=chai
			chai.js= expectlib.js= lib/expectlib.js= test/chai.js= src/parts/y.ts= src/parts/index.ts= src/express.js=`,
		"ruby": `lib/shoulda/context.rb=shoulda/context lib/shoulda.rb=shoulda test/rack/test.rb=rack/test lib/assertions.rb=assertions spec/rack.rb=rack
			gems/x/lib/faker.rb=faker lib/faker.rb=faker
			lib/calc/sub.rb= lib/new.rb= lib/rack/other.rb= app/faker.rb= gems/y/lib/faker.rb= lib/json.rb=`,
		"perl": `lib/Test/More.pm=Test/More lib/strict.pm=strict inc/Test/More.pm=Test/More t/lib/warnings.pm=warnings Test/More.pm=Test/More lib/Sub/Fake.pm=Sub/Fake
			lib/Mock/It.pm=Mock/It lib/Calc/Sub.pm= lib/Test/Mine.pm= lib/New.pm= doc/Test/More.pm= lib/List/Util.pm=`,
	} {
		for entry := range strings.FieldsSeq(files) {
			file, want, _ := strings.Cut(entry, "=")
			for kind, change := range map[string]suite.Change{
				"a new file": added(file, "x"), "a link": linked(file, "calc/add.py"), "a renamed file": {Path: file, OldPath: "docs/x.txt"},
			} {
				if got := find(base, change)[0].Found.Replaces; got != want {
					t.Errorf("%s: %s %s takes the place of %q, want %q", base, kind, file, got, want)
				}
			}
			if got := find(base, edited(file, "x", "y"))[0].Found; got.Replaces != "" {
				t.Errorf("%s: %s is not new: %+v", base, file, got)
			}
		}
	}
	for path, want := range map[string]string{"assertpy": "assertpy", "src": "src", "docs/new": "", "new": ""} {
		if got := find("python", linked(path, "calc/fake"))[0].Found.Replaces; got != want {
			t.Errorf("a link %s takes the place of %q, want %q", path, got, want)
		}
	}
	// Without its __init__, a folder's modules are found without the folder's name.
	got := find("python", removed("calc/__init__.py", ""), added("calc/logging.py", ""))
	if got[1].Found.Replaces != "logging" {
		t.Errorf("%+v", got[1].Found)
	}
}

// A file that replaces a module is listed, so that the gate runs without it, too.
func TestCompareReplacedModules(t *testing.T) {
	t.Parallel()
	got := suite.Compare(find("python", added("assertpy.py", ""), added("calc/new.py", ""), added("tests/test_new.py", "def test_new():\n    assert True\n")), nil)
	if len(got.Findings) != 1 || got.Findings[0].Kind != suite.Shadowing || len(got.Files) != 2 || got.Files[0].Path != "assertpy.py" ||
		got.Files[0].Role != ecosystem.Environment {
		t.Errorf("%+v", got)
	}
}

// Code that loads a library of tests, or changes one, can make their assertions accept everything.
func TestLibrariesOfTestsInCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, file, old, text, want string }{
		{"python", "calc/__init__.py", "", "import assertpy\nassertpy.assert_equal = lambda a, b: None\n", "assertpy assertpy="},
		{"python", "calc/__init__.py", "", "import assertpy as a\nsetattr(a, 'assert_equal', f)\n", "assertpy assertpy="},
		{"python", "calc/__init__.py", "", "from hamcrest import assert_that\n", "hamcrest"},
		{"python", "calc/more.py", "", "import sys\nsys.modules['assertpy'].assert_equal = 1\n", "assertpy"},
		{"python", "calc/more.py", "", "x = sys.modules.get('assertpy')\n__import__('sure').x()\n", "assertpy sure"},
		{"python", "calc/add.py", "import numpy as np\n", "import numpy as np\nnp.testing.assert_equal = f\n", "numpy="},
		{"python", "calc/add.py", "", "import numpy as np\nfrom numpy import testing\ntesting.x = f\n", "numpy="},
		{"python", "calc/add.py", "import numpy as np\nnp.x = f\n", "import numpy as np\nnp.x = f\nprint()\n", ""},
		{"python", "calc/add.py", "", "import numpy as np\nif np.x == 3 or f(np.y, x=np.z): pass\nnp.x[0] = 1\nself.np.x = 3\n", ""},
		{"python", "calc/add.py", "", "import os, logging, requests, yaml\nimport calc.new\nfrom calc import add\nfrom . import assertpy\nos.x = 1\nrequests.x = 1\n", ""},
		{"python", "calc/add.py", "", "import numpy as np\ndef f(x: np.array = None,\n    y: np.array = 1): pass\nx: np.array = 3\nclass A:\n    y: np.array = 3\n", ""},
		{"python", "calc/add.py", "", "import numpy as np\nif True: np.x = 1\n", "numpy="},
		{"python", "calc/add.py", "", "import numpy as np\ndef f(a): np.x = 1\n", "numpy="},
		{"python", "calc/add.py", "", "import numpy as np\na, np.x = 1, 2\n", "numpy="},
		{"ruby", "lib/calc.rb", "", "require 'shoulda/context'\n", "shoulda"},
		{"ruby", "lib/calc.rb", "require 'rack/test'\n", "require 'rack/test'\nrequire 'set'\nrequire 'test_helper'\nrequire 'calc/add'\nrequire 'new'\n", ""},
		{"ruby", "lib/calc.rb", "", "# require 'faker'\n", ""},
		{"perl", "lib/Calc.pm", "", "use Test::More;\n", "Test"},
		{"perl", "lib/Calc.pm", "", "use v5.36; use strict;\nuse List::Util; use Calc::Add; use New;\n# use Test::More\n\n=head1 X\n\nuse Test::More\n\n=cut\n", ""},
		{"python", "calc/add.py", "", "# import assertpy\nx = 'import assertpy'\nraise assertpy from error\n", ""},
		{"python", "tests/test_calc.py", "", "import assertpy\nassertpy.x = 1\n", ""},
		{"javascript", "lib/add.js", "", "const e=require('expectlib');e.eq=()=>{}\n", "expectlib expectlib="},
		{"javascript", "lib/add.js", "", "import * as e from 'expectlib';\nObject.assign(e, {});\n", "expectlib expectlib="},
		{"javascript", "lib/add.mjs", "", "const e = await import('@a/b');\ne.X.prototype.eq = 1;\n", "@a/b @a/b="},
		{"javascript", "lib/add.js", "", "import used from 'used';\nused.defaults.url = 1;\nif (used.x === 1 || used.y == 2) {}\nconst f = { x: (used) => used.z };\n", ""},
		{"javascript", "lib/add.js", "", "const used = require('used');\nused.z = 1;\n", "used="},
		{"javascript", "lib/add.js", "", "require('fs').x = 1; const o = require('node:os'); require('new'); require('./expectlib');\n", ""},
		{"javascript", "src/parts/y.ts", "", "import { x } from 'parts/x';\n", ""},
	} {
		found := find(c.base, edited(c.file, c.old, c.text))[0].Found
		got := slices.Clone(found.TestOnly)
		for _, name := range found.Assigned {
			got = append(got, name+"=")
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q: %q, want %q", c.file, c.text, text, c.want)
		}
		sum := suite.Compare(find(c.base, edited(c.file, c.old, c.text)), nil)
		if want := len(strings.Fields(c.want)); len(sum.Findings) != want {
			t.Errorf("%s: %q: %s, want %d", c.file, c.text, fmt.Sprint(sum.Findings), want)
		}
	}
}
