package suite_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/suite"
)

// The scripts of a gate are followed to those that they run and read. Files that they only inspect do not count.
func TestFollow(t *testing.T) {
	t.Parallel()
	repo := map[string]string{
		"scripts/check.sh":  "set -e\n. \"$(dirname \"$0\")/lib.sh\"\nsource scripts/more.bash\ngrep -q x src.txt\npython3 tools/check.py && node ./run\n",
		"scripts/lib.sh":    "check() { bash sub/last.sh; }\n",
		"scripts/more.bash": "exec ./hooks/verify\n", "scripts/sub/last.sh": ". lib.sh\n", "hooks/verify": "#!/bin/sh\n",
		"tools/check.py": "import helper\nfrom deep.thing import x\n", "tools/helper.py": "", "tools/deep/thing.py": "",
		"run.js": "const a = require('./lib/a');\n", "lib/a.js": "", "src.txt": "x\n", "Makefile": "include rules.mk\ntest:\n\t@sh ci.sh\n",
		"ci/a.sh": "for s in \"$(dirname \"$0\")\"/../spec/*.sh; do\n  sh \"$s\"\ndone\n", "ci/b.sh": ". \"${CI_DIR:-.}\"/ci/lib\nshellcheck src/*.sh\n", "ci/lib": "check() { \"$HERE\"/checks/deep; }\n",
		"checks/deep": "", "spec/one.sh": "", "spec/two.sh": "", "src/data.sh": ". nothing\n", "nested.sh": "run() {\nfor f in $HERE/ci/*.sh \\\n  more; do . $f; done\n}\n",
		"build.mak": "include $(TOP)/conf/rules none\n-include mk/*.inc\nSRC := $(wildcard src/*.sh)\n", "conf/rules": "gen:\n\tpython3 tools/gen.py\n", "mk/a.inc": "x:\n\t@$(SHELL) ci.sh\n",
		"tools/gen.py": "", "make.sh": "set -e\nmake -s test\n", "rules.mk": "", "ci.sh": "", "package.json": `{"scripts": {"test": "node tests/all.js"}}`, "tests/all.js": "", "unused.sh": "",
	}
	for i := range 300 { // names of missing files
		repo["long.sh"] += fmt.Sprintf("./x%d\n", i)
	}
	repo["long.sh"] += "sh ci.sh\n"
	list := func() []string { return slices.Sorted(maps.Keys(repo)) }
	read := func(file string) ([]byte, bool) {
		text, ok := repo[file]
		return []byte(text), ok
	}
	for gate, want := range map[string]string{
		"sh scripts/check.sh":                 "scripts/lib.sh scripts/more.bash tools/check.py run.js scripts/sub/last.sh hooks/verify tools/helper.py tools/deep/thing.py lib/a.js",
		"make test":                           "rules.mk ci.sh",
		"sh -c \"$(cat hooks/../nested.sh)\"": "ci/*.sh spec/*.sh ci/lib checks/deep",
		"npm test":                            "tests/all.js",
		"grep x src.txt":                      "",

		"bash ci/*.sh": "spec/*.sh ci/lib checks/deep", "for f in ci/*.sh other; do\n\tbash -e \"./$f\" || exit 1\ndone": "spec/*.sh ci/lib checks/deep",
		". ci/lib && check": "checks/deep", "source \"$PWD/ci/lib\"; check": "checks/deep", "sh nested.sh": "ci/*.sh spec/*.sh ci/lib checks/deep",
		"make -f build.mak test": "conf/rules mk/*.inc tools/gen.py ci.sh rules.mk", "make -fbuild.mak": "conf/rules mk/*.inc tools/gen.py ci.sh rules.mk",
		"sh long.sh": "ci.sh", "sh make.sh": "Makefile rules.mk ci.sh", "for f in ci/*.sh; do bash -n $f; shellcheck \"${f}\"; done; prettier ci/*": "",
	} {
		var got []string
		for _, line := range suite.Follow([]string{gate}, list, read)[1:] {
			got = append(got, strings.TrimPrefix(line, ". "))
		}
		wanted := strings.Fields(want)
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%s: %q, want %q", gate, got, wanted)
		}
	}
}

// Configuration of CI and of hooks names scripts as values, further configuration, and local actions.
func TestFollowConfiguration(t *testing.T) {
	t.Parallel()
	repo := map[string]string{
		".gitlab-ci.yml": "include:\n  - local: /ci/build.yml\n  - local: 'ci/jobs/*.yml'\nb:\n  script: [\"tools/one\"]\nc:\n  script:\n    - npm test\n",
		"ci/build.yml":   "b:\n  script:\n    - tools/two --x\n    - |\n      tools/three\n", "ci/jobs/a.yml": "a:\n  before_script: bash tools/four\n",
		".github/ci/w.yml": "      - uses: ./actions/x\n      - run: tools/five\n      - name: a tools/none\n", "lefthook.json": `{"run": "tools/six {files}"}`,
		"actions/x/action.yml": "runs:\n  main: dist/main.js\n", "actions/x/dist/main.js": "", "lefthook.toml": "run = \"tools/seven\"\n",
		"docs/a.yml": "", "package.json": "{}",
	}
	for name := range strings.FieldsSeq("none one two three four five six seven") {
		repo["tools/"+name] = ""
	}
	for file, want := range map[string]string{
		".gitlab-ci.yml": "ci/build.yml ci/jobs/*.yml package.json tools/four tools/one tools/three tools/two", "lefthook.json": "tools/six",
		".github/ci/w.yml": "actions/x/action.yml actions/x/dist/main.js tools/five", "lefthook.toml": "tools/seven",
	} {
		var got []string
		for _, line := range suite.Follow([]string{"sh " + file}, func() []string { return slices.Sorted(maps.Keys(repo)) }, func(file string) ([]byte, bool) {
			text, ok := repo[file]
			return []byte(text), ok
		})[1:] {
			got = append(got, strings.TrimPrefix(line, ". "))
		}
		slices.Sort(got)
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// An existing file that a line names is a check, also without a dot in its name. A folder and a subcommand are not.
func TestFollowBareNames(t *testing.T) {
	t.Parallel()
	files := []string{"cases", "docs/a.md", "golden", "run", "sub/check", "test"}
	read := func(file string) ([]byte, bool) { return nil, slices.Contains(files, file) || file == "docs" }
	for line, want := range map[string]string{
		"hurl --test cases": "cases", "node -e 1 < cases": "cases", "./x --golden=golden cases": "cases golden", "run cases": "cases",
		"npm test": "", "cargo build ./x": "", "prettier docs": "", "grep x cases": "", "cd sub && tool check": "sub/check", "x 'cases'": "cases",
		"diff cases out": "cases", "make test && just run": "",
	} {
		lines := suite.Follow([]string{line}, func() []string { return files }, read)
		var got []string
		for _, file := range files {
			if suite.Reached(lines)(file) {
				got = append(got, file)
			}
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q, want %q (%q)", line, got, want, lines)
		}
	}
}

// A file is a check if the gate runs it, or compares with it. A file that the gate only looks at may be the work itself.
func TestReached(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"./run | diff - expected": true, "cmp /tmp/out expected": true, "grep -q -f expected out.txt": true, "egrep --file=./expected out.txt": true,
		"cat expected | sh > out 2>&1": true, "cat expected | bash -euo pipefail": true, "bash -o pipefail -c \"$(cat expected)\"": true,
		"cat expected | while read c; do $c; done": true, "while read c; do eval $c; done < expected": true, "cat expected | diff out -": true,
		"cat expected | (while read c; do sh -c \"$c\"; done)": true, "cat expected | sort | comm -3 - out": true, "cat expected | grep -f - out": true,
		"[ \"$(./run)\" = \"$(cat expected)\" ]": true, "if [[ $(cat expected) == $(./run) ]]; then true; fi": true,
		"[ \"$(cat expected)\" = x ] && [ \"$(cat out)\" = y ]": false, "test \"$(cat expected)\" = x": false, "cat expected | while read c; do echo $c; done": false,
		"cat expected | sh": true, "eval \"$(cat expected)\"": true, "head -5 expected | bash": true, "cat x | python3 expected": true,
		"test -f expected": false, "grep -q x expected": false, "cat ./expected": false, "cat ./expected | grep x": false, "cat ./expected | python3 check.py": false,
	} {
		if got := suite.Reached([]string{line})("expected"); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}

// Follow ends for any text, and its result is bounded by the number of files.
func FuzzFollow(f *testing.F) {
	f.Add("sh */*.sh", "for f in *.sh; do . $f; done\ninclude [a\n")
	f.Add("sh a.sh", ". ./a.sh\nimport a\n")
	f.Fuzz(func(t *testing.T, gate, text string) {
		lines := suite.Follow([]string{gate}, func() []string { return []string{"a.sh", "b/a.sh"} }, func(file string) ([]byte, bool) { return []byte(text), strings.HasSuffix(file, "a.sh") })
		if len(lines) > 201 {
			t.Errorf("%d lines", len(lines))
		}
	})
}
