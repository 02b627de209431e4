package ecosystem

import (
	"bytes"
	"go/build"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
)

func golang() Ecosystem {
	return Ecosystem{
		Name:    "go",
		Markers: []string{"go.mod", "go.work"},
		Tools:   goTools(),
		Asked:   []string{"GOTOOLCHAIN=local"}, Bare: []string{"GOENV=off"},
		Checkers: strings.Fields("golangci testcoverage gotestsum staticcheck"),
		Groups: []Group{
			{Role: Test, Files: []string{"*_test.go"}, Reason: "holds Go tests"},
			{Role: TestConfig, Files: []string{".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json",
				".testcoverage.yml"}, Reason: "configures a check of Go code"},
			{Role: Environment, Files: []string{"go.work", "go.work.sum", "go.env"}, Reason: "changes which modules Go builds"},
			{Role: Build, Files: []string{"go.mod", "go.sum", "magefile.go", "magefiles/"}, Reason: "says how Go code is built"},
		},
		Interpreters: []string{"run"},
		Runners:      map[string][]string{"mage": {"magefile.go"}},
		Sources:      []string{"*.go"},
		Syntax: lex.Syntax{Spans: []lex.Span{
			{Open: "//", Close: "\n", Comment: true},
			{Open: "/*", Close: "*/", Comment: true, Lines: true},
			{Open: `"`, Close: `"`, Escape: true},
			{Open: "`", Close: "`", Lines: true},
			{Open: "'", Close: "'", Escape: true},
		}},
		Tests: []string{"func =Test* ( % * % . T )", "func =Test* ( % * T )", "func =Fuzz* (", "func =Example* (",
			"func ( % % ) =Test* ( )", "func ( % * % ) =Test* ( )"}, // the last two: methods of a suite
		Skips: []string{". Skip (", ". Skipf (", ". SkipNow (", "testing . Short ("},
		Assertions: []string{". Error (", ". Errorf (", ". Fatal (", ". Fatalf (", ". Fail (", ". FailNow (", "require . %",
			"assert . %", "is . %", ". Require ( ) . %", ". Assert ( ) . %", "Expect (", "qt . %", "panic ("},
		Helpers: []string{"testing . TB", "testing . T", "testing . B", "testing . F", "require . TestingT", "assert . TestingT",
			`"github.com/onsi/gomega"`},
		Excluded: goExcluded,
		Main:     []string{"package main"},
		Shapes: []Shape{
			{Kind: EarlyExit, Has: []string{"os . Exit ( 0 )", "syscall . Exit ( 0 )", "unix . Exit ( 0 )"},
				Detail: "ends the process with success"},
			// go test does not notice an exit before the tests start.
			{Kind: EarlyExit, Main: true, Has: []string{"os . Exit ( 0 )", "syscall . Exit ( 0 )"}, With: []string{"func init ("},
				Detail: "ends the process when the package is loaded"},
			{Kind: NoTests, Main: true, Has: []string{"func TestMain ("}, Without: []string{". Run ("},
				Detail: "defines TestMain, which runs no tests"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{"testing . Testing (", `"test.v"`},
				Detail: "asks whether it runs under test"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{`".test"`, `".test.exe"`, `"-test.*"`, `"_test.go"`},
				With: []string{"os . Args", "os . Executable (", "runtime . Caller*", "runtime . FuncForPC (", "debug . Stack (",
					"debug . ReadBuildInfo ("}, Detail: "asks whether it runs under test"},
		},
		Retests: []Retest{{Root: []string{"go.mod"}, Line: "go test -count=1 -run {names} {dir}",
			Unnamed: []string{"func ( % % ) Test* ( )", "func ( % * % ) Test* ( )"}, Unbuilt: []string{"[build failed]", "[setup failed]"},
			Idle: []string{"[no tests to run]", "[no test files]"}}},
		Canary: goCanary,
		Home: func(file string) bool {
			return path.Ext(file) == ".go" && !match.Within("/"+file, match.Foreign) && !hidden(file)
		},
	}
}

func goTools() []Tool {
	// Vetting and an empty test run fill the build cache. They compile and vet different packages, and neither is repeated
	// later. A small package of the standard library adds what the first test of a repository needs.
	const (
		fill = "go vet ./... container/ring; go test -run '^$'"
		warm = fill + " ./... container/ring || true"
		// In a workspace, ./... covers only the module of the current folder, if there is one. The package of the standard
		// library makes sure that go runs, and reports the error, even if no module is listed.
		each     = `go list -m -f '"{{.Dir}}/..."' | xargs go `
		fillWork = each + "vet container/ring; " + each + "test -run '^$'"
		warmWork = fillWork + " container/ring || true"
	)
	modules := []string{"go.mod", "go.sum", "go.work", "go.work.sum"}
	return []Tool{{
		Name: "go", Usual: true,
		Setup: []Line{
			{If: fileClue("go.work"), Shell: "go mod download && (" + warmWork + ")"},
			{If: fileClue("go.sum"), Shell: "go mod download && (" + warm + ")"},
			{Shell: warm},
		},
		Note: "container/ring is a small package of Go's standard library. " +
			"With it, what the first test of the project needs is compiled already.",
		Gate: []Line{{
			If:    fileClue("go.work"),
			Shell: each + "vet container/ring && " + each + "test container/ring",
		}, {Shell: "go vet ./... && go test ./..."}},
		Hosts:  []Ask{{Argv: []string{"go", "env", "GOPROXY"}, Name: "GOPROXY"}, {Argv: []string{"go", "env", "GOSUMDB"}, Name: "GOSUMDB"}},
		Caches: []string{"go/pkg/mod", ".cache/go-build"},
		// Debian's Go is older than many modules require. It fetches the newest one.
		Image: Image{Packages: []string{"golang-go", "gcc", "libc6-dev"}, Lines: []string{
			`cd "$(mktemp -d)" && export GOPATH=/opt/go GOCACHE=/tmp/go-build GOTOOLCHAIN=auto && go mod init image ` +
				`&& go get go@latest && ln -s "$(go env GOROOT)"/bin/* /usr/local/bin/ && rm -rf "$PWD" "$GOCACHE" "$GOPATH/pkg/mod/cache"`,
		}},
		Reads: []Fetch{
			{Lines: []string{fill, fillWork}, Reads: Reads{Files: modules, Code: true}},
			{Commands: []string{"go mod download"}, Reads: Reads{Files: modules}},
		},
	}}
}

// hidden reports whether the go program ignores the path.
func hidden(file string) bool {
	return slices.ContainsFunc(strings.Split(file, "/"), func(part string) bool {
		return strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".")
	})
}

// goExcluded reports whether a file belongs to no build on the systems on which gates run.
func goExcluded(file string, text []byte) bool {
	if hidden(file) || match.Within(file, "testdata") {
		return true
	}
	// The build constraints of assembly files are the same, but their imports are not parsed. Parsing imports takes ten
	// times as long, and there can be 100,000 files.
	name := strings.TrimSuffix(path.Base(file), ".go") + ".s"
	releases := goReleases()
	for _, system := range []string{"linux", "darwin"} {
		for _, machine := range []string{"amd64", "arm64"} {
			gate := build.Context{GOOS: system, GOARCH: machine, Compiler: "gc", CgoEnabled: true, ReleaseTags: releases}
			gate.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
			if fits, err := gate.MatchFile(path.Dir(file), name); fits || err != nil { // on an error the go program refuses the file, too
				return false
			}
		}
	}
	return true
}

// goReleases returns the release tags of all versions of Go: the gate's version may be later than the one that built ralph.
func goReleases() []string {
	tags := make([]string, 100)
	for minor := range tags {
		tags[minor] = "go1." + strconv.Itoa(minor)
	}
	return tags
}

func goCanary(p Site) []Canary {
	name := "main"
	s := golang().Syntax.Read(p.Text)
	if clause := lex.Compile([]string{"package =%"}).Find(s); len(clause) > 0 {
		name = string(s.Tokens[clause[0].Name].Of(s.Text))
	}
	return []Canary{{Path: p.Suffix + "_test.go", Content: []byte(`package ` + name + `

import "testing"

func TestX` + p.Suffix + `(t *testing.T) {
	t.Fatal("` + p.Message() + `")
}
`)}}
}
