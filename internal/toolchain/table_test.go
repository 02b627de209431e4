package toolchain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/internal/ecosystem"
)

// All proposals for a new ecosystem come from its one value.
func TestAnotherEcosystem(t *testing.T) {
	t.Parallel()
	reads := ecosystem.Reads{Files: []string{"kiln.lock"}, Unless: []string{"hooks"}}
	all := slices.Concat(known(), table{{
		Name: "clay", Markers: []string{"kiln.toml"}, Asked: []string{"KILN_QUIET=1"}, Bare: []string{"KILN_HOME=/nonexistent"},
		Tools: []ecosystem.Tool{
			{Name: "wheel", Markers: []string{"wheel.toml"}, Lacks: map[ecosystem.Part]string{ecosystem.NoGate: "it turns"}},
			{
				Name: "kiln", Usual: true,
				Setup:  []ecosystem.Line{{If: []ecosystem.Clue{{Files: []string{"kiln.lock"}}}, Shell: "kiln fetch --locked"}, {Shell: "kiln fetch"}},
				Gate:   []ecosystem.Line{{Unless: []ecosystem.Clue{{Files: []string{"kiln.toml"}, Words: []string{"cold"}}}, Shell: "kiln test"}},
				Hosts:  []ecosystem.Ask{{Argv: []string{"kiln", "source"}, Name: "KILN_SOURCE"}},
				Caches: []string{".cache/kiln"},
				Reads:  []ecosystem.Fetch{{Commands: []string{"kiln fetch"}, Reads: reads}},
			},
		},
	}})
	dir, bin := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\n[ \"$KILN_QUIET\" = 1 ] || exit 1\n[ \"$KILN_HOME\" = /nonexistent ] && echo https://clay.example || echo https://clay.corp.example:8443\n"
	for name, text := range map[string]string{
		dir + "/kiln.toml": "hot", dir + "/kiln.lock": "", dir + "/cold/kiln.toml": "cold", bin + "/kiln": script,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // one is a program
			t.Fatal(err)
		}
	}
	for folder, want := range map[string][2]string{dir: {"kiln fetch --locked", "kiln test"}, dir + "/cold": {"kiln fetch", ""}} {
		got, err := all.propose(folder)
		if err != nil || len(got) != 1 || got[0].Tool != "kiln" || [2]string{strings.Join(got[0].Setup, ";"), strings.Join(got[0].Gate, ";")} != want {
			t.Fatalf("%s: %+v, %v; want %q", folder, got, err, want)
		}
		source := got[0].Source(t.Context(), []string{"PATH=" + bin + ":/usr/bin:/bin"})
		if diff := cmp.Diff(Source{Hosts: []string{"clay.corp.example:8443"}, Env: []string{"KILN_SOURCE=https://clay.corp.example:8443"}}, source); diff != "" {
			t.Error(diff)
		}
	}
	if !slices.Contains(all.caches(), ".cache/kiln") {
		t.Errorf("caches are %q", all.caches())
	}
	got, ok := all.readsOf([]string{"kiln fetch --locked"})
	if diff := cmp.Diff(reads, got); diff != "" || !ok {
		t.Errorf("%t: %s", ok, diff)
	}
}

// Knowledge of a tool belongs to its ecosystem: this package must not name tools.
func TestNoToolIsNamed(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range known() {
		names = append(names, e.Name)
		for _, tool := range e.Tools {
			names = append(names, tool.Name)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && slices.Contains(names, text) {
					t.Errorf("%s names %s", file, text)
				}
			}
			return true
		})
	}
}
