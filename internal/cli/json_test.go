package cli

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/clean"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/finish"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/sandbox"
	"github.com/ralph-pool/ralph/internal/cli/serve"
	"github.com/ralph-pool/ralph/internal/cli/work"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// jsonDoc parses docs/json.md: the keys of each object, and for each key the object that is its value.
func jsonDoc(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile("^- `([a-z0-9_]+)`: [^(]*?[^ ].*?(?:\\(\\[[a-z-]+\\]\\(#([a-z-]+)\\)\\))?$")
	objects := map[string]map[string]string{}
	object := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "## "); ok {
			object = name
			objects[object] = map[string]string{}
		}
		if line == "- and all of [run](#run)" {
			for k, to := range objects["run"] {
				objects[object][k] = to
			}
		} else if strings.HasPrefix(line, "- ") {
			found := key.FindStringSubmatch(line)
			if found == nil {
				t.Fatalf("docs/json.md: not a key in snake case with its meaning: %s", line)
			}
			objects[object][found[1]] = found[2]
		}
	}
	return objects
}

// jsonKeys adds the keys of a type to into, with the types of their values.
func jsonKeys(t *testing.T, of reflect.Type, into map[string]reflect.Type) {
	t.Helper()
	for f := range of.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "":
			jsonKeys(t, f.Type, into)
		case !f.IsExported() || tag == "-":
		case tag == "":
			t.Errorf("%s.%s is printed without a key of its own", of, f.Name)
		default:
			held := f.Type
			for held.Kind() == reflect.Pointer || held.Kind() == reflect.Slice {
				held = held.Elem()
			}
			into[tag] = held
		}
	}
}

// TestJSONIsDocumented checks that docs/json.md has exactly the keys that the program can print, all in snake case.
func TestJSONIsDocumented(t *testing.T) {
	t.Parallel()
	doc := jsonDoc(t)
	checked := map[string]bool{"sandboxes": true} // built from a map
	var check func(object string, types ...reflect.Type)
	check = func(object string, types ...reflect.Type) {
		if checked[object] {
			return
		}
		checked[object] = true
		keys := map[string]reflect.Type{}
		for _, of := range types {
			jsonKeys(t, of, keys)
		}
		for key, held := range keys {
			to, ok := doc[object][key]
			if !ok {
				t.Errorf("docs/json.md does not have the key %s of %s", key, object)
			}
			if isObject := held.Kind() == reflect.Struct && held != reflect.TypeFor[time.Time](); isObject != (to != "") {
				t.Errorf("%s of %s: the object is %q in docs/json.md, %s in the program", key, object, to, held)
			} else if isObject {
				check(to, held)
			}
		}
		for key := range doc[object] {
			if _, ok := keys[key]; !ok {
				t.Errorf("docs/json.md has the key %s of %s, which the program does not print", key, object)
			}
		}
	}
	check("shown-run", reflect.TypeFor[look.ShownRunData]()) // before objects with such a run that lacks its work
	for object, value := range map[string]any{
		"status": look.StatusData{}, "issue-status": look.IssueStatusData{}, "cost": look.CostData{}, "verification-of-proof": finish.VerifyData{},
		"sweep": work.SummaryData{}, "plan": work.PlanData{}, "event": journal.Event{}, "job": work.RunData{}, "cleaned": clean.CleanedData{}, "repaired": clean.RepairedData{},
		"finding": tracker.Finding{}, "setting": config.Entry{}, "provider": sandbox.ProviderData{}, "attack": sandbox.ProbeData{}, "version": compose.Build{}, "error": exit.Problem{}, "service-project": serve.ProjectData{},
	} {
		check(object, reflect.TypeOf(value))
	}
	for object := range doc {
		if !checked[object] {
			t.Errorf("docs/json.md has the object %s, which nothing prints", object)
		}
	}
}

// TestJSONOutputs checks that the commands print no keys that docs/json.md lacks.
func TestJSONOutputs(t *testing.T) {
	t.Parallel()
	doc := jsonDoc(t)
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
	m.write(t, ".ralph/backlog/two.md", "---\ntitle: Two\nlabels: [no-human]\nblocked_by: [one]\n---\nDo it.\n")
	m.write(t, ".ralph/config.yaml", "sandbox: none\nskip-permissions: true\nagent: command\nagent-command: 'true'\ncommit-author: A <a@b.c>\n")
	m.trust(t)
	m.commit(t)
	m.write(t, "../schema.json", `{"type":"object"}`)
	agent := "--agent-command=" + m.program(t, "agent", "echo $RALPH_ISSUE_KEY > f; git add f; git commit -qm work\n"+
		"echo '<out>{\"a_b\":1}</out><promise>COMPLETE</promise>'\n") + "/agent"
	broken := "--agent-command=" + m.program(t, "broken", "echo oh >&2; echo no >&2; exit 3\n") + "/broken"
	var check func(at string, v any, object string)
	check = func(at string, v any, object string) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				check(at, item, object)
			}
		case map[string]any:
			for key, held := range v {
				to, ok := doc[object][key]
				if !ok {
					t.Errorf("%s: the key %s of %s is not in docs/json.md", at, key, object)
				}
				if to != "" {
					check(at+" "+key, held, to)
				}
			}
		}
	}
	for _, c := range []struct {
		object string
		args   []string
		status int
	}{
		{"plan", []string{"work", "--dry-run", agent}, 0},
		{"sweep", []string{"work", broken, "--max-attempts=1"}, exit.Incomplete},
		{"sweep", []string{"work", "one", agent, "--gate=true"}, 0},
		{"status", []string{"status"}, 0}, {"cost", []string{"cost"}, 0}, {"shown-run", []string{"show", "one"}, 0}, {"event", []string{"logs", "--all", "one"}, 0},
		{"job", []string{"run", "--prompt=say <out>", "--output-tag=out", "--output-schema=../schema.json", agent}, 0},
		{"cleaned", []string{"clean"}, 0}, {"repaired", []string{"clean", "--repair"}, 0}, {"finding", []string{"doctor", agent}, 0},
		{"setting", []string{"config"}, 0}, {"setting", []string{"config", "gate"}, 0},
		{"sandboxes", []string{"sandbox", "check"}, exit.Failed}, {"version", []string{"version"}, 0},
	} {
		got := m.run(t, nil, append(c.args, "--json")...)
		if got.status != c.status || got.stdout == "" {
			t.Errorf("%v: %+v", c.args, got)
		}
		values := json.NewDecoder(strings.NewReader(got.stdout))
		for values.More() {
			var v any
			if err := values.Decode(&v); err != nil {
				t.Fatalf("%v: %v in %s", c.args, err, got.stdout)
			}
			check(strings.Join(c.args, " "), v, c.object)
			if job, ok := v.(map[string]any); ok && c.object == "job" {
				if result, _ := job["result"].(map[string]any); result["a_b"] != 1.0 || job["output"] != `{"a_b":1}` {
					t.Errorf("output %v, result %v", job["output"], job["result"])
				}
			}
		}
	}
	got := m.run(t, nil, "run", "-q", "--prompt=say <out>", "--output-tag=out", agent)
	if got.stdout != "{\"a_b\":1}\n" || got.stderr != "" {
		t.Errorf("run -q --output-tag: %+v", got)
	}
	if got := m.run(t, nil, "show", "one"); !slices.Contains(strings.Split(got.stdout, "\n"), "  stderr      oh") {
		t.Errorf("show hides what the agent printed on standard error: %+v", got)
	}
}
