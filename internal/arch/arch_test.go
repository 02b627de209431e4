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

// composer is the floor of the program ralph. Packages below it form a library.
const composer = 12

// reexec runs in its own processes, before the program does any work.
const reexec = "sandboxes/reexec"

// house is the folder of the packages on the composer floor.
const house = "internal/cli"

// floors maps each package to its floor. A package imports only packages on lower floors, and the package of its parent
// folder. Exceptions: the packages of internal/cli may import each other, and so may those of worktree. internal/ecosystem
// may import the packages below it, a forge's tracker the code shared by forges, GitHub's tracker its API, an isolating
// sandbox its egress proxy, and native and landlock their supervisor.
var floors = map[string]int{
	"cmd/ralph": 13,

	"internal/cli":               composer,
	"internal/cli/channels":      composer,
	"internal/cli/clean":         composer,
	"internal/cli/clitest":       composer,
	"internal/cli/compose":       composer,
	"internal/cli/config":        composer,
	"internal/cli/config/access": composer,
	"internal/cli/config/keys":   composer,
	"internal/cli/doctor":        composer,
	"internal/cli/exit":          composer,
	"internal/cli/finish":        composer,
	"internal/cli/fleetdb":       composer,
	"internal/cli/hint":          composer,
	"internal/cli/issues":        composer,
	"internal/cli/look":          composer,
	"internal/cli/progress":      composer,
	"internal/cli/sandbox":       composer,
	"internal/cli/scaffold":      composer,
	"internal/cli/screen":        composer,
	"internal/cli/serve":         composer,
	"internal/cli/setup":         composer,
	"internal/cli/trust":         composer,
	"internal/cli/words":         composer,
	"internal/cli/work":          composer,

	"pool/fleet":                  9,
	"pool/fleet/internal/address": 1,
	"pool/fleet/fleettest":        1,
	"pool/fleet/internal/pooler":  1,
	"pool/fleet/queueui":          10,
	"pool/fleet/internal/slots":   1,

	"internal/attach":  4,
	"internal/service": 9,
	"internal/tui":     5,
	"internal/web":     11,

	"internal/web/dashboard": 10,

	"internal/web/browsertest": 10,

	"internal/service/servicetest": 9,

	"pool":                       8,
	"pool/internal/command":      7,
	"pool/backlog":               6,
	"pool/claims":                6,
	"pool/run":                   7,
	"pool/run/config":            5,
	"pool/run/internal/events":   5,
	"pool/run/internal/hold":     5,
	"pool/run/internal/spending": 6,
	"pool/run/internal/stopping": 6,
	"pool/run/internal/tree":     6,
	"pool/internal/batch":        7,
	"pool/job":                   8,
	"pool/checks":                6,
	"pool/internal/judge":        6,
	"pool/internal/retest":       6,
	"pool/workspace":             5,
	"pool/workspace/homes":       4,
	"pool/internal/feedback":     5,
	"pool/review":                5,
	"pool/internal/admission":    4,
	"pool/gateway":               4,
	"pool/parking":               4,
	"pool/internal/tally":        4,
	"pool/schedule":              4,
	"pool/internal/decide":       4,
	"pool/internal/halt":         4,
	"pool/proof":                 4,
	"pool/publish":               4,
	"pool/report":                4,
	"pool/journal":               3,
	"pool/journal/archive":       3,
	"pool/journal/sqlite":        3,
	"pool/journal/postgres":      3,
	"pool/journal/journaltest":   3,
	"pool/ledger":                3,
	"pool/redact":                3,

	"loop":                 2,
	"loop/internal/schema": 1,
	"loop/prompt":          1,

	"agents":           1,
	"agents/agenttest": 1,
	"sandboxes":        1,
	"sandboxes/runner": 2,

	"sandboxes/container/containertest": 2,

	"tracker":  1,
	"worktree": 1,

	"sandboxes/reexec":                  0,
	"tracker/forge/transport/store":     0,
	"tracker/github/githubtest/graphql": 0,

	"internal/attack": 5,

	"internal/arch":            0,
	"internal/cgroup":          0,
	"internal/disk":            0,
	"internal/ecosystem":       0,
	"internal/ecosystem/lex":   0,
	"internal/ecosystem/match": 0,
	"internal/fanout":          0,
	"internal/filelock":        -1,
	"internal/gittest":         0,
	"internal/neutral":         0,
	"internal/leak":            0,
	"internal/meter":           2,
	"internal/nearest":         0,
	"internal/yamlparse":       0,
	"internal/pattern":         -1, // below floor 0, so that every package may import it, like retry
	"internal/plural":          0,
	"internal/proc":            0,
	"internal/ptytest":         0,
	"internal/reach":           0,
	"internal/retry":           -2,
	"internal/seccomp":         0,
	"internal/servertools":     0,
	"internal/suite":           1,
	"internal/suite/script":    0,
	"internal/tempdir":         0,
	"internal/toolchain":       2,
	"internal/notify":          5,
	"internal/trace":           4,
	"internal/webhook":         2,
}

// families are folders whose packages are on the folder's floor unless the table says otherwise. So a new sandbox or tracker
// needs no change here.
var families = []string{"sandboxes", "tracker", "worktree"}

// floorOf returns the floor of a package.
func floorOf(name string) (floor int, known bool) {
	if floor, known = floors[name]; known {
		return floor, true
	}
	for _, family := range families {
		if within(name, family) {
			return floors[family], true
		}
	}
	return 0, false
}

// exempt are folders that contain only tests and their programs.
var exempt = []string{"deploy", "e2e"}

// homes maps prefixes of third-party import paths to the packages that may import them, so that a library can be replaced in
// one place.
var homes = map[string][]string{
	"github.com/google/go-github":         {"tracker/github"},
	"github.com/xanzy/go-gitlab":          {"tracker/gitlab"},
	"gitlab.com/gitlab-org/api/client-go": {"tracker/gitlab"},
	"github.com/spf13/":                   {"internal/cli"},
	"charm.land/":                         {"internal/tui"},
	"github.com/charmbracelet/":           {"internal/tui"},
	"github.com/riverqueue/":              {"pool/fleet"},
	"riverqueue.com/":                     {"pool/fleet/queueui"},
	"github.com/jackc/":                   {"pool/fleet", "pool/journal/postgres"},
	"modernc.org/":                        {"pool/journal/sqlite"},
	"github.com/go-git/":                  {"worktree/commits"},
	"github.com/google/jsonschema-go":     {"loop"},
	"github.com/danielgtaylor/huma/":      {"internal/web"},
	"github.com/prometheus/":              {"internal/web"},
	"github.com/chromedp/":                {"internal/web/browsertest"},
	"github.com/aws/":                     {"internal/meter"},
	"github.com/secure-systems-lab/":      {"pool/proof"},
	"golang.org/x/crypto":                 {"pool/proof"},
	"golang.org/x/text":                   {"worktree/message", "tracker", "tracker/local", "pool/publish", "sandboxes/session"},
	"github.com/landlock-lsm/":            {"sandboxes/landlock"},
	"kernel.org/pub/":                     {"sandboxes/native"},
	"github.com/xtaci/smux":               {"sandboxes/container"},
	"github.com/wneessen/":                {"internal/notify"},
	"go.opentelemetry.io/":                {"internal/trace"},
	"google.golang.org/":                  {"internal/trace"},
}

// programOnly are imports reserved for the program: a library that uses them cannot be embedded, or not twice.
var programOnly = []string{"flag", "log", "os/signal", "github.com/rs/zerolog/log"}

// listed is a package in the output of go list.
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

// judge returns the forbidden imports of a package.
func judge(p listed) (problems []string) {
	name, ours := strings.CutPrefix(p.ImportPath, module+"/")
	if !ours || isExempt(name) {
		return nil
	}
	floor, known := floorOf(name)
	if !known {
		return []string{fmt.Sprintf("%s stands on no floor: add it to the table in internal/arch/arch_test.go", name)}
	}
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, path := range p.Imports {
		if slices.Contains(programOnly, path) && floor < composer && name != reexec {
			say("%s imports %q, which only the program may: internal/cli and above", name, path)
		}
		if other, ours := strings.CutPrefix(path, module+"/"); ours {
			below, known := floorOf(other)
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

// neighbours reports whether two packages may import each other although they are on the same floor.
func neighbours(name, other string) bool {
	return within(name, house) && within(other, house) ||
		within(name, "worktree") && within(other, "worktree") ||
		name == "internal/ecosystem" && within(other, name) ||
		other == "tracker/github/internal/api" && name == "tracker/github" ||
		(within(other, "tracker/forge") || other == "tracker/token") && within(name, "tracker") ||
		(other == "sandboxes/egress/forward" || other == "sandboxes/internal/engine") && within(name, "sandboxes") ||
		within(other, "sandboxes/egress") && (within(name, "sandboxes/egress") || name == "sandboxes/escape") || // no provider: see reexec.Register
		other == "sandboxes/internal/supervisor" &&
			(name == "sandboxes/native" || name == "sandboxes/landlock" || name == "sandboxes/container/internal/inside") ||
		name == "sandboxes/container" && within(other, name)
}

func isExempt(name string) bool {
	return slices.ContainsFunc(exempt, func(e string) bool { return within(name, e) })
}

// within reports whether the package is the folder's package or below it.
func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// list returns the packages of the module and their dependencies, for an operating system.
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

// A program that embeds a package links only what it needs.
func TestLinks(t *testing.T) {
	t.Parallel()
	for name, heavies := range map[string][]string{
		"pool": {
			"modernc.org/", "github.com/go-git/", "github.com/spf13/", "github.com/rs/zerolog", "github.com/google/go-github", "github.com/xanzy/", "github.com/riverqueue/",
			"github.com/jackc/", "go.opentelemetry.io/", "google.golang.org/",
		},
		"worktree": {"net/http", "crypto/tls"},
	} {
		var out, errs bytes.Buffer
		exit, err := proc.Run(t.Context(), proc.Spec{
			Argv: []string{"go", "list", "-deps", "./" + name}, Dir: "../..", Stdout: &out, Stderr: &errs,
			Env: append(os.Environ(), "CGO_ENABLED=0"),
		})
		if err != nil || exit.Code != 0 {
			t.Fatalf("go list: %+v, %v\n%s", exit, err, &errs)
		}
		for path := range strings.FieldsSeq(out.String()) {
			for _, heavy := range heavies {
				if strings.HasPrefix(path, heavy) {
					t.Errorf("%s links %s", name, path)
				}
			}
		}
	}
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
		{"worktree/commits", "github.com/go-git/go-git/v5/plumbing", ""},
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
		{"tracker/new", module + "/tracker", ""},
		{"tracker/new", module + "/worktree", "only floors below"},
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
