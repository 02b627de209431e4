package loop

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop/prompt"
)

const answerSchema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}},"additionalProperties":false}`

func TestExtract(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, prose, schema, raw, json, err string
	}{
		{"text", "so <r> hi </r>.", "", " hi ", "", ""},
		{"json", `<r>{"n": 1}</r>`, answerSchema, `{"n": 1}`, `{"n":1}`, ""},
		{"last pair", `<r>{"n":1}</r> no, <r>{"n":2}</r>`, answerSchema, `{"n":2}`, `{"n":2}`, ""},
		{"mention before does no harm", `I answer in <r> tags. <r>{"n":3}</r>`, answerSchema, `{"n":3}`, `{"n":3}`, ""},
		{"mention after does no harm", `<r>{"n":3}</r> as <r> said`, answerSchema, `{"n":3}`, `{"n":3}`, ""},
		{"fence", "<r>\n```json\n{\"n\":4}\n```\n</r>", answerSchema, "\n```json\n{\"n\":4}\n```\n", `{"n":4}`, ""},
		{"fence without language, CRLF", "<r>```\r\n{\"n\":5}\r\n```</r>", answerSchema, "```\r\n{\"n\":5}\r\n```", `{"n":5}`, ""},
		{"large number stays exact", `<r>{"n":9007199254740993}</r>`, answerSchema, `{"n":9007199254740993}`, `{"n":9007199254740993}`, ""},
		{"no pair", "nothing", answerSchema, "", "", "no <r>…</r>"},
		{"close before open", "</r><r>", "", "", "", "no <r>…</r>"},
		{"not JSON", "<r>{n}</r>", answerSchema, "{n}", "", "is not JSON"},
		{"two values", "<r>{} {}</r>", answerSchema, "{} {}", "", "is not JSON"},
		{"against the schema", `<r>{"n":"x"}</r>`, answerSchema, `{"n":"x"}`, "", "does not match the schema"},
		{"deep nesting", "<r>" + strings.Repeat("[", 100000) + "</r>", answerSchema, strings.Repeat("[", 100000), "", "is not JSON"},
	} {
		o := Output{Tag: "r"}
		if tt.schema != "" {
			o.Schema = []byte(tt.schema)
		}
		got, err := o.extract(tt.prose)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is not one line: %q", tt.name, err)
		}
		if got.Raw != tt.raw || string(got.JSON) != tt.json {
			t.Errorf("%s: %q and JSON %q, want %q and %q", tt.name, got.Raw, got.JSON, tt.raw, tt.json)
		}
	}
}

func outputConfig(said string) Config {
	c := fakeConfig(fakeSandbox{agent: printLines(false, "say 1 "+said)}, &recorder{})
	c.Import = importCommits(0)
	c.MaxIterations = 1
	c.Prompt = prompt.Prompt{Inline: "answer in <r>"}
	c.Output = &Output{Tag: "r", Schema: []byte(answerSchema)}
	return c
}

func TestOutputEndsTheRunWithoutCommitsOrSignal(t *testing.T) {
	t.Parallel()
	r := Run(t.Context(), outputConfig(`<r>{"n":1}</r>`))
	wantEnd(t, r, EndDone)
	if r.Output == nil || string(r.Output.JSON) != `{"n":1}` {
		t.Errorf("output %+v", r.Output)
	}
}

func TestInvalidOutputKeepsTheRawTextAndTheCause(t *testing.T) {
	t.Parallel()
	r := Run(t.Context(), outputConfig(`<r>{"n":"many"}</r>`))
	wantEnd(t, r, EndOutput)
	if r.Output == nil || r.Output.Raw != `{"n":"many"}` || !strings.Contains(r.Err.Error(), "schema") {
		t.Errorf("output %+v, error %v", r.Output, r.Err)
	}
}

func TestOutputIsSearchedInAllOfTheProse(t *testing.T) {
	t.Parallel()
	c := outputConfig("")
	c.Sandbox = fakeSandbox{agent: printLines(false, `say 1 <r>{"n"`, `say 1 :7}</r>`, "tool <r>{}</r>", "say 2 that was all")}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if string(r.Output.JSON) != `{"n":7}` {
		t.Errorf("output %+v", r.Output)
	}
}

func TestOutputIsHeldAgainstTheGateToo(t *testing.T) {
	t.Parallel()
	c := outputConfig(`<r>{"n":1}</r>`)
	c.Gate = []Command{{Line: "false"}}
	c.Sandbox = fakeSandbox{agent: printLines(false, `say 1 <r>{"n":1}</r>`), shell: failWithOutput}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndMaxIterations)
	if !r.GateRan || r.GatePassed() || r.Output == nil {
		t.Errorf("result %+v", r)
	}
}

func TestOutputIsCheckedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"several iterations", func(c *Config) { c.MaxIterations = 2 }, "exactly one iteration"},
		{"default iterations", func(c *Config) { c.MaxIterations = 0 }, "exactly one iteration"},
		{"tag not in the prompt", func(c *Config) { c.Prompt.Inline = "answer" }, "does not name the output tag"},
		{"bad tag", func(c *Config) { c.Output.Tag = "a b" }, "not a tag name"},
		{"schema is no JSON", func(c *Config) { c.Output.Schema = []byte("{") }, "output schema"},
		{"schema is no schema", func(c *Config) { c.Output.Schema = []byte(`{"type":7}`) }, "output schema"},
		{"unknown type", func(c *Config) { c.Output.Schema = []byte(`{"properties":{"a":{"items":{"type":"strnig"}}}}`) }, "strnig is not a type"},
		{"unknown draft", func(c *Config) { c.Output.Schema = []byte(`{"$schema":"http://json-schema.org/draft-04/schema#"}`) }, "draft-07"},
		{"a schema of another kind", func(c *Config) { c.Output.Schema = []byte(`{"properties":{"a":7}}`) }, "a schema is an object"},
		{"endless", func(c *Config) { c.Output.Schema = []byte(`{"$ref":"#"}`) }, "leads back to itself"},
		{"endless by a detour", func(c *Config) {
			c.Output.Schema = []byte(`{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`)
		}, "leads back to itself"},
		{"reference to nowhere", func(c *Config) { c.Output.Schema = []byte(`{"$ref":"#/$defs/none"}`) }, "output schema"},
		{"reference to a file", func(c *Config) { c.Output.Schema = []byte(`{"$ref":"file:///etc/passwd"}`) }, "not followed"},
		{"reference to the network", func(c *Config) { c.Output.Schema = []byte(`{"$ref":"http://127.0.0.1/x"}`) }, "not followed"},
	} {
		c := outputConfig("x")
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		r := Run(t.Context(), c)
		wantEnd(t, r, EndPrompt)
		if len(r.Iterations) != 0 {
			t.Errorf("%s: an iteration ran", tt.name)
		}
	}
	tree := outputConfig("x") // a schema may refer to itself for a part of the value
	tree.Output.Schema = []byte(`{"type":["object","null"],"properties":{"type":{"$ref":"#"},"list":{"items":{"$ref":"#"}}}}`)
	if err := tree.Validate(); err != nil {
		t.Errorf("a recursive schema: %v", err)
	}
	c := outputConfig("x")
	c.Prompt = prompt.Prompt{Template: "{{how}}", Args: map[string]string{"how": "in <r>"}}
	if err := c.Validate(); err != nil {
		t.Errorf("a tag that an argument names: %v", err)
	}
}

func TestFailedAgentGivesNoOutput(t *testing.T) {
	t.Parallel()
	c := outputConfig("")
	c.Sandbox = fakeSandbox{agent: printLines(false, `say 1 <r>{"n":1}</r>`, "fail other")}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndMaxIterations)
	if r.Failure == nil || r.Failure.Class != agents.OtherFailure {
		t.Errorf("failure %v", r.Failure)
	}
}

// FuzzExtract: the result is the last complete pair, without a panic, and accepted JSON is valid JSON.
func FuzzExtract(f *testing.F) {
	f.Add("a <r>x</r> b")
	f.Add("<r>```json\n{\"n\":1}\n```</r>")
	f.Add("</r><r></r></r>")
	f.Fuzz(func(t *testing.T, prose string) {
		value, err := Output{Tag: "r", Schema: []byte(answerSchema)}.extract(prose)
		if strings.Contains(value.Raw, "</r>") && strings.Contains(value.Raw, "<r>") {
			t.Errorf("more than one pair in %q", value.Raw)
		}
		if err == nil && (value.JSON == nil || !strings.Contains(prose, "<r>"+value.Raw+"</r>")) {
			t.Errorf("%q from %q", value.Raw, prose)
		}
	})
}
