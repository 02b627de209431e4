package toolchain

import (
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/internal/ecosystem"
)

func TestReadsOf(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{ // one file that the line reads; empty: unknown
		"npm ci":                         "package-lock.json",
		"npm ci --no-audit --no-fund":    "package.json",
		"(cd web && npm ci)":             ".npmrc",
		"(cd 'a b' && yarn)":             "yarn.lock",
		"go mod download":                "go.sum",
		"npm ci && npm run build":        "",
		"npm ci; make":                   "",
		"npm ci $MORE":                   "",
		"npm install left-pad":           "",
		"npm cix":                        "",
		"make deps":                      "",
		"go mod download && (go test .)": "",
	} {
		got, ok := ReadsOf([]string{line})
		if ok != (want != "") || ok && !slices.Contains(got.Files, want) {
			t.Errorf("%s: %v, %t", line, got, ok)
		}
	}
	if got, ok := ReadsOf([]string{"npm ci", "make deps"}); ok {
		t.Errorf("one line is not known: %v", got)
	}
	// ReadsOf knows every proposed line that compiles nothing of the project, also in a folder below the top.
	for _, tool := range known().tools() {
		if len(tool.Reads) == 0 || tool.Name == "pip" { // some lines of pip install the project
			continue
		}
		for _, c := range tool.Setup {
			for _, line := range []string{c.Shell, within("sub", []string{c.Shell})[0]} {
				got, ok := ReadsOf([]string{line})
				if !ok || got.Code != (tool.Name == "go") {
					t.Errorf("%s: `%s` is not known, or as another: %+v", tool.Name, line, got)
				}
			}
		}
	}
}

func TestDepend(t *testing.T) {
	t.Parallel()
	npm, _ := ReadsOf([]string{"npm ci"})
	pip, ok := ReadsOf([]string{"python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -r requirements.txt"})
	if !ok {
		t.Fatal("what init proposes for pip is not known")
	}
	if _, ok := ReadsOf([]string{"python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -e . -r requirements.txt"}); ok {
		t.Error("what installs the project itself is taken to read requirements only")
	}
	for _, c := range []struct {
		reads      ecosystem.Reads
		file, text string
		want       bool
	}{
		{npm, "package.json", `{"dependencies": {"a": "1"}, "scripts": {"test": "x"}}`, false},
		{npm, "package.json", `{"scripts": {"prepare": "make"}}`, true},
		{npm, "package.json", `{"dependencies": {"a": "file:lib"}}`, true},
		{npm, "package-lock.json", `{"install": 1}`, false},
		{pip, "requirements.txt", "a==1\nb==2\n", false},
		{pip, "requirements.txt", "-e .\n", true},
		{pip, "requirements.txt", "a\n./lib\n", true},
	} {
		if got := c.reads.Depend(c.file, []byte(c.text)); got != c.want {
			t.Errorf("%s %s: %t", c.file, c.text, got)
		}
	}
}
