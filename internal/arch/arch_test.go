package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
)

const module = "github.com/ralph-pool/ralph"

// composer is the floor from which on packages are the program ralph; what is below is a library.
const composer = 4

// house is the folder of the composing packages.
const house = "internal/cli"

// floors says on which floor each package stands. It imports only from floors below its own, and its parent folder's
// package. The packages of internal/cli are one house and may import each other; so may a forge's tracker and what all
// forges share, an isolating sandbox and the proxy that is its way out, and landlock and containers native's filter.
var floors = map[string]int{
	"cmd/ralph": 5,

	"internal/cli":          composer,
	"internal/cli/config":   composer,
	"internal/cli/scaffold": composer,

	"pool": 3,

	"loop": 2,

	"agents":                    1,
	"agents/agenttest":          1,
	"sandboxes":                 1,
	"sandboxes/container":       1,
	"sandboxes/egress":          1,
	"sandboxes/escapetest":      1,
	"sandboxes/image":           1,
	"sandboxes/landlock":        1,
	"sandboxes/native":          1,
	"sandboxes/runner":          1,
	"sandboxes/sandboxtest":     1,
	"sandboxes/sbx":             1,
	"sandboxes/session":         1,
	"tracker":                   1,
	"tracker/forge":             1,
	"tracker/github":            1,
	"tracker/github/githubtest": 1,
	"tracker/gitlab":            1,
	"tracker/gitlab/gitlabtest": 1,
	"tracker/local":             1,
	"tracker/trackertest":       1,
	"worktree":                  1,

	"sandboxes/mirror": 0,

	"internal/arch":    0,
	"internal/cgroup":  0,
	"internal/disk":    0,
	"internal/inert":   0,
	"internal/leak":    0,
	"internal/nearest": 0,
	"internal/proc":    0,
	"internal/tempdir": 0,
}

// exempt are folders that hold only tests and their programs.
var exempt = []string{"e2e"}

// homes says which packages may import a third-party library (by the beginning of its path), so that replacing it
// touches nothing else.
var homes = map[string][]string{
	"github.com/google/go-github":           {"tracker/github"},
	"github.com/xanzy/go-gitlab":            {"tracker/gitlab"},
	"gitlab.com/gitlab-org/api/client-go":   {"tracker/gitlab"},
	"github.com/spf13/":                     {"internal/cli"},
	"charm.land/":                           {"internal/cli", "internal/tui"},
	"github.com/riverqueue/":                {"pool/fleet"},
	"github.com/jackc/":                     {"pool/fleet"},
	"modernc.org/":                          {"pool"},
	"github.com/go-git/":                    {"worktree"},
	"github.com/santhosh-tekuri/jsonschema": {"loop", "internal/cli"},
	"golang.org/x/text":                     {"worktree", "tracker/local", "pool"},
}

// programOnly are imports of the program: a library that uses them cannot be embedded twice, or at all.
var programOnly = []string{"flag", "log", "os/signal", "github.com/rs/zerolog/log"}

// listed is one package as the go program lists it.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Standard   bool
}

func TestFloors(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			for _, p := range list(t, system) {
				for _, problem := range judge(p) {
					t.Error(problem)
				}
			}
		})
	}
}

// judge returns what a package imports and may not.
func judge(p listed) (problems []string) {
	name, ours := strings.CutPrefix(p.ImportPath, module+"/")
	if !ours || isExempt(name) {
		return nil
	}
	floor, known := floors[name]
	if !known {
		return []string{fmt.Sprintf("%s stands on no floor: add it to the table in internal/arch/arch_test.go", name)}
	}
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, path := range p.Imports {
		if slices.Contains(programOnly, path) && floor < composer {
			say("%s imports %q, which only the program may: internal/cli and above", name, path)
		}
		if other, ours := strings.CutPrefix(path, module+"/"); ours {
			below, known := floors[other]
			if known && below >= floor && !within(name, other) && !neighbours(name, other) {
				say("%s (floor %d) imports %s (floor %d); only floors below are allowed", name, floor, other, below)
			}
			if isExempt(other) {
				say("%s imports %s, which is only for tests", name, other)
			}
		}
		for prefix, allowed := range homes {
			mayHave := func(home string) bool { return within(name, home) }
			if strings.HasPrefix(path, prefix) && !slices.ContainsFunc(allowed, mayHave) {
				say("%s imports %s, which belongs in %s", name, path, strings.Join(allowed, " or "))
			}
		}
	}
	return problems
}

// neighbours reports packages that may import each other although they are on one floor.
func neighbours(name, other string) bool {
	return within(name, house) && within(other, house) ||
		other == "tracker/forge" && within(name, "tracker") ||
		other == "sandboxes/egress" && within(name, "sandboxes") ||
		other == "sandboxes/native" && (name == "sandboxes/landlock" || name == "sandboxes/container")
}

func isExempt(name string) bool {
	return slices.ContainsFunc(exempt, func(e string) bool { return within(name, e) })
}

// within reports whether the package is the folder's own or below it.
func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// list lists the packages of the module for an operating system, with all that they depend on.
func list(t *testing.T, system string) []listed {
	t.Helper()
	var out, errs bytes.Buffer
	exit, err := proc.Run(t.Context(), proc.Spec{
		Argv:   []string{"go", "list", "-e", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,Standard", "./..."},
		Dir:    "../..",
		Env:    append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		Stdout: &out, Stderr: &errs,
	})
	if err != nil || exit.Code != 0 {
		t.Fatalf("go list: %+v, %v\n%s", exit, err, &errs)
	}
	var all []listed
	for d := json.NewDecoder(&out); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if !p.Standard {
			all = append(all, p)
		}
	}
	if !slices.ContainsFunc(all, func(p listed) bool { return p.ImportPath == module+"/internal/proc" }) {
		t.Fatal("go list does not show the packages of this module")
	}
	return all
}

func TestJudge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, imports string
		want          string // part of the problem; empty: none
	}{
		{"loop", module + "/sandboxes", ""},
		{"tracker/local", module + "/tracker", ""},
		{"sandboxes", module + "/internal/proc", ""},
		{"internal/cli", "os/signal", ""},
		{"internal/cli", module + "/internal/cli/config", ""},
		{"internal/cli/config", "github.com/spf13/viper", ""},
		{"worktree", "github.com/go-git/go-git/v5/plumbing", ""},
		{"loop", "fmt", ""},
		{"e2e", module + "/pool", ""},
		{"sandboxes", module + "/loop", "only floors below"},
		{"agents", module + "/sandboxes", "only floors below"},
		{"tracker", module + "/tracker/local", "only floors below"},
		{"pool", module + "/e2e", "only for tests"},
		{"pool", "flag", "only the program may"},
		{"pool", "github.com/rs/zerolog/log", "only the program may"},
		{"pool", "github.com/spf13/viper", "belongs in internal/cli"},
		{"tracker/local", "github.com/google/go-github/v62/github", "belongs in tracker/github"},
		{"somewhere/new", "fmt", "stands on no floor"},
	}
	for _, tt := range tests {
		t.Run(tt.name+" imports "+tt.imports, func(t *testing.T) {
			t.Parallel()
			got := judge(listed{ImportPath: module + "/" + tt.name, Imports: []string{tt.imports}})
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("problems: %q", got)
			case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
				t.Errorf("problems are %q, want one with %q", got, tt.want)
			}
		})
	}
}
