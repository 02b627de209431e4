package agents_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/agents/agenttest"
)

// scribe is an agent of another module: it uses only what the package exports.
type scribe struct{}

func (scribe) Name() string { return "scribe" }

var scribeSession = regexp.MustCompile(`^s-[0-9]+$`)

func (scribe) Describe() agents.Description {
	return agents.Description{
		Program: "scribe", Models: true, IsSessionID: scribeSession.MatchString,
		Login: agents.Login{Keys: []agents.Key{{Env: "SCRIBE_KEY"}}, Hint: "set SCRIBE_KEY"},
		Owned: map[string]string{"--model": "model", "--resume": ""},
	}
}

func (a scribe) Invocation(r agents.Request) (agents.Invocation, error) {
	if err := r.Check(a); err != nil {
		return agents.Invocation{}, err
	}
	argv := []string{"scribe", "--json"}
	for _, option := range [][2]string{{"--model", r.Options.Model}, {"--resume", r.Session}} {
		if option[1] != "" {
			argv = append(argv, option[:]...)
		}
	}
	return agents.Invocation{Argv: append(argv, r.Options.Args...), Stdin: r.Prompt, Env: r.Environ("SCRIBE_QUIET=1")}, nil
}

func (a scribe) NewDecoder() agents.Decoder {
	return &scribeDecoder{Stream: agents.Stream{Program: "scribe", IsSessionID: scribeSession.MatchString}}
}

type scribeDecoder struct {
	agents.Stream
	usage agents.Tally
}

func (d *scribeDecoder) Line(line []byte) []agents.Event { return d.Decode(line, d.decode) }

func (d *scribeDecoder) decode(line []byte) ([]agents.Event, error) {
	v, err := agents.Read[struct {
		Type, ID, Text, Tool string
		Path                 agents.LenientString
		Status, Reset        int64
		Input, Output        int64
	}](line)
	if err != nil {
		return nil, err
	}
	switch v.Type {
	case "start":
		return d.Begin(v.ID)
	case "say":
		u, err := agents.Usage{Input: v.Input, Output: v.Output}.Plausible()
		d.usage.Set(agents.Clip(v.ID, 128), u)
		return []agents.Event{{Kind: agents.EventMessage, Message: agents.Clip(v.ID, 128), Text: v.Text}}, err
	case "tool":
		return []agents.Event{{Kind: agents.EventTool, Name: agents.Clip(v.Tool, 60), Detail: agents.Clip(string(v.Path), agents.MaxDetail)}}, nil
	case "output":
		return nil, nil
	case "error":
		d.Failure = agents.NewFailure(agents.StatusClass(v.Status), "%s", v.Text)
		d.Failure.ResetAt = agents.ResetTime(v.Reset)
		return nil, nil
	case "end":
		d.Finished = true
		return nil, nil
	}
	return nil, agents.Unknown(v.Type)
}

func (d *scribeDecoder) Finish(e agents.Ending) agents.Report {
	r := d.Report(e)
	r.Usage = d.usage.Sum()
	return r
}

var scribeRun = []string{
	`{"type":"start","id":"s-1"}`, `{"type":"say","id":"m1","text":"I am at it.","input":3,"output":1}`,
	`{"type":"tool","tool":"read","path":"go.mod"}`, `{"type":"say","id":"m1","text":"Done.","input":3,"output":9}`, `{"type":"end"}`,
}

// The parts that the built-in agents share are exported: an agent of another module passes the suite with them.
func TestOutsideConformance(t *testing.T) {
	agenttest.Run(t, agenttest.Subject{
		Agent:   scribe{},
		Refused: map[string]agents.Options{"effort is not supported; leave it out": {Effort: "high"}, "--model": {Args: []string{"--model=x"}}},
		Stream:  scribeRun, Session: "s-1", Silent: true,
		Bulk: func(n int) []byte { return fmt.Appendf(nil, `{"type":"output","out":"%s"}`, strings.Repeat("x", n)) },
	})
}

// Its report, which the suite cannot check, is right, too.
func TestOutsideReport(t *testing.T) {
	t.Parallel()
	d := scribe{}.NewDecoder()
	for _, line := range append(scribeRun[:4:4], `{"type":"error","status":429,"text":"slow\ndown","reset":1900000000}`) {
		d.Line([]byte(line))
	}
	r := d.Finish(agents.Ending{ExitCode: 1})
	if r.Usage != (agents.Usage{Input: 3, Output: 9}) || r.Session != "s-1" || r.Failure == nil ||
		r.Failure.Class != agents.RateLimit || r.Failure.Message != "slow down" || r.Failure.ResetAt.Unix() != 1_900_000_000 {
		t.Errorf("%+v, %v", r, r.Failure)
	}
}

// The files of the built-in agents use only exported names of the package's other files, like agents of other modules.
func TestBuiltinUsesWhatIsExported(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	shared, builtin, fset := map[string]string{}, map[string]*ast.File{}, token.NewFileSet()
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`^(claude|codex|command)(_.*)?\.go$`).MatchString(name) {
			builtin[name] = file
			continue
		}
		for declared := range file.Scope.Objects {
			if !ast.IsExported(declared) {
				shared[declared] = name
			}
		}
	}
	if len(builtin) != 5 || len(shared) < 10 {
		t.Fatalf("%d files of agents, %d shared names", len(builtin), len(shared))
	}
	for name, file := range builtin {
		for _, ident := range file.Unresolved {
			if where := shared[ident.Name]; where != "" {
				t.Errorf("%s: %s uses %s of %s", name, fset.Position(ident.Pos()), ident.Name, where)
			}
		}
	}
}
