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
		{"a/b/go.mod", "go(go)"},
		{"a/b/c/go.mod", ""},
		{"node_modules/x/package.json testdata/go.mod vendor/x/Cargo.toml", ""},
		{"package.json", "javascript(npm)"},
		{"package.json pnpm-lock.yaml", "javascript(pnpm)"},
		{"web/package.json web/yarn.lock", "javascript(yarn)"},
		{"pyproject.toml", "python(pip)"},
		{"pyproject.toml uv.lock", "python(uv)"},
		{"pyproject.toml poetry.lock", "python(poetry)"},
		{"requirements-dev.txt", "python(pip)"},
		{"Makefile go.mod web/package.json web/package-lock.json", "go(go) javascript(npm) generic(make)"},
	}
	for _, tt := range tests {
		var got []string
		for _, e := range ecosystem.Recognise(strings.Fields(tt.files)) {
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

// Each ecosystem is complete enough to be shown, and no two have one name.
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
