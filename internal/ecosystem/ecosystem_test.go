package ecosystem_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/ecosystem"
)

func TestRecognise(t *testing.T) {
	t.Parallel()
	tests := []struct{ files, want string }{
		{"README.md main.c", ""},
		{"go.mod main.go", "go(go)"},
		{"package.json", "javascript(npm)"},
		{"package.json pnpm-lock.yaml", "javascript(pnpm)"},
		{"package.json yarn.lock", "javascript(yarn-classic,yarn)"},
		{"pyproject.toml", "python(pip)"},
		{"pyproject.toml uv.lock", "python(uv)"},
		{"pyproject.toml poetry.lock", "python(poetry)"},
		{"requirements-dev.txt", "python(pip)"},
		{"cpanfile", "perl(cpan)"},
		{"Makefile go.mod package.json package-lock.json", "go(go) javascript(npm) generic(make)"},
	}
	for _, tt := range tests {
		var got []string
		for _, e := range ecosystem.Recognise(ecosystem.All(), strings.Fields(tt.files), func(ecosystem.Clue) bool { return false }) {
			var tools []string
			for _, tool := range e.Tools {
				tools = append(tools, tool.Name)
			}
			got = append(got, e.Name+"("+strings.Join(tools, ",")+")")
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.files, got, tt.want)
		}
	}
}

// Each ecosystem is complete, and names are unique.
func TestAll(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range ecosystem.All() {
		if e.Name == "" || len(e.Markers) == 0 || len(e.Tools) == 0 || len(e.Groups) == 0 || len(e.Sources) == 0 || slices.Contains(names, e.Name) {
			t.Errorf("%s is not complete", e.Name)
		}
		if e.Canary != nil && (len(e.Tests) == 0 || len(e.Assertions) == 0 || len(e.Skips) == 0) {
			t.Errorf("%s plants tests and counts none", e.Name)
		}
		names = append(names, e.Name)
	}
}

// Each part of a tool is set, or Lacks has the reason why it is not.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, e := range ecosystem.All() {
		usual := 0
		for _, tool := range e.Tools {
			if tool.Usual {
				usual++
			}
			if tool.Name == "" || len(tool.Markers) == 0 && !tool.Usual {
				t.Errorf("%s: nothing shows %q", e.Name, tool.Name)
			}
			for part, n := range map[ecosystem.Part]int{
				ecosystem.NoSetup: len(tool.Setup), ecosystem.NoGate: len(tool.Gate), ecosystem.NoHosts: len(tool.Hosts),
				ecosystem.NoCaches: len(tool.Caches), ecosystem.NoReads: len(tool.Reads),
				ecosystem.NoImage: len(tool.Image.Packages) + len(tool.Image.Lines),
			} {
				switch why := tool.Lacks[part]; {
				case n == 0 && why == "":
					t.Errorf("%s: %s has no %s: fill them in, or say in Lacks why there are none", e.Name, tool.Name, part)
				case n > 0 && why != "":
					t.Errorf("%s: %s has %d %s: remove from Lacks that there are none: %q", e.Name, tool.Name, n, part, why)
				}
			}
		}
		if usual > 1 {
			t.Errorf("%s has %d usual tools", e.Name, usual)
		}
	}
}
