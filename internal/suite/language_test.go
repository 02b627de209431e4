package suite_test

import (
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/internal/suite"
)

// Each language has its own words for another file.
func TestFollowLanguages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ script, text, file string }{
		{"s/a.sh", "source \"${BASH_SOURCE%/*}/lib/d.sh\"", "s/lib/d.sh"}, {"s/a.sh", "exec 3< s/lib/g; . /dev/fd/3", "s/lib/g"},
		{"s/a.sh", "bash <(cat s/lib/h1)", "s/lib/h1"}, {"s/a.sh", "while read -r c; do\n  eval \"$c\"\ndone < cmds", "cmds"},
		{"s/a.sh", "cat cmds | while read c; do $c; done", "cmds"}, {"s/a.sh", "mapfile -t all < cmds.txt\n\"${all[@]}\"", "cmds.txt"},
		{"s/p.py", `subprocess.run(["sh", "s/lib/sub"], check=True)`, "s/lib/sub"}, {"s/p.py", `check_call(["s/lib/sub", "-x"])`, "s/lib/sub"},
		{"s/p.py", `import sys, os; sys.path.insert(0, "vend"); import vl`, "vend/vl.py"}, {"s/p.py", `exec(open("s/lib/x.inc").read())`, "s/lib/x.inc"},
		{"s/p.py", `runpy.run_path("s/lib/rp.py")`, "s/lib/rp.py"}, {"s/p.py", "from . import a, vl", "s/vl.py"}, {"s/p.py", "import a, vl", "s/vl.py"},
		{"s/m.mjs", `execFileSync("sh", ["s/lib/sub"])`, "s/lib/sub"}, {"s/m.mjs", `import "./lib/m1.mjs"; await import("./lib/m2.mjs")`, "s/lib/m2.mjs"},
		{"s/m.mjs", "import { x } from './lib/m3.mjs';", "s/lib/m3.mjs"}, {"s/m.mjs", "import{x}from'./lib/m3.mjs'", "s/lib/m3.mjs"},
		{"s/m.mjs", `eval(fs.readFileSync("s/lib/ev.txt","utf8"))`, "s/lib/ev.txt"}, {"s/m.mjs", "export*from\"./lib/m3\"", "s/lib/m3.mjs"},
		{"s/gen.ts", `import { x } from "./lib/ts1";`, "s/lib/ts1.ts"}, {"s/gen.ts", `import x from "./lib/ts1.js";`, "s/lib/ts1.ts"},
		{"s/gen.ts", `import x from "./lib";`, "s/lib/index.ts"},
		{"s/q.pl", `use lib "s/lib"; use Hx; 1`, "s/lib/Hx.pm"}, {"s/q.pl", `use lib 'inc'; require A::B;`, "inc/A/B.pm"},
		{"s/q.pl", `do "./s/lib/do.pl";`, "s/lib/do.pl"}, {"s/q.pl", "use A::B qw(x);", "s/A/B.pm"},
		{"s/r.rb", `require_relative "lib/r1"`, "s/lib/r1.rb"}, {"s/r.rb", `require_relative 'lib/r1'`, "s/lib/r1.rb"},
		{"s/r.rb", `load "s/lib/r2.rb"`, "s/lib/r2.rb"}, {"s/r.rb", `require "./s/lib/r3"`, "s/lib/r3.rb"},
		{"s/run.lua", `require("s.lib.l1")`, "s/lib/l1.lua"}, {"s/run.lua", `require "l1"`, "s/l1.lua"}, {"s/x.php", "require __DIR__.'/lib/x.php';", "s/lib/x.php"},
	} {
		read := func(file string) ([]byte, bool) {
			return []byte(tt.text), file == tt.script || file == tt.file
		}
		lines := suite.Follow([]string{"./" + tt.script}, func() []string { return []string{tt.file, tt.script} }, read)
		if !suite.Reached(lines)(tt.file) {
			t.Errorf("%s: %s does not lead to %s: %q", tt.script, tt.text, tt.file, lines)
		}
	}
}

// What looks like a shell's words in another language, and imports of the code under test, lead nowhere.
func TestFollowNoCode(t *testing.T) {
	t.Parallel()
	files := []string{"README.md", "lib/a.rb", "lib/A.pm", "src/a.ts", "a.txt", "app.js", "shop.rb", "shop.py", "app/models.py"}
	for script, text := range map[string]string{
		"Rakefile": "x = ([\"-v\"] * 2)\ntext = \"a.txt\"\neach { |f| sh }\n", "x.rb": "require_relative 'lib/a'\na = %w[README.md a.txt] | sh\n",
		"x.js": "/**\n * exec **\n */\nexec('*.txt', time *.md)\n", "Makefile.PL": "VERSION_FROM => 'lib/A.pm', x([A-Z]*)\n", "t/x.t": "#!/usr/bin/perl\nuse lib 'lib'; use A;\n", "x.mjs": "import a from './src/b'\nconst b = `cat a.txt`\n",

		"test/app.test.js": "import app from '../app.js'\nconst a = require('../app')\n", "test/a_test.rb": "require_relative '../shop'\n",
		"tests/test_app.py": "from app.models import X\nimport shop\n", "check.mjs": "/**\n * Checks things.\n */\nrun('sub/*/a')\n",
	} {
		lines := suite.Follow([]string{"./" + script}, func() []string { return files }, func(file string) ([]byte, bool) {
			return []byte(text), file == script || slices.Contains(files, file)
		})
		for _, file := range files {
			if suite.Reached(lines)(file) {
				t.Errorf("%s leads to %s: %q", script, file, lines)
			}
		}
	}
}
