package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/loop/internal/schema"
)

// Output requests structured output between <Tag> and </Tag>.
type Output struct {
	Tag    string
	Schema []byte // JSON Schema (draft 2020-12 unless it declares another); nil: any text
}

// OutputValue is the structured output that was found.
type OutputValue struct {
	Raw  string // the text between the tags, also if it is invalid
	JSON []byte // validated against the schema; nil without one
}

var (
	outputTag = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	codeFence = pattern.Lazy("(?s)^```[A-Za-z0-9]*[ \t]*\r?\n(.*)\n[ \t]*```$")
)

// validateOutput rejects, before anything starts, settings that could never give an output.
func (c Config) validateOutput() error {
	o := c.Output
	if o == nil {
		return nil
	}
	var errs []error
	if !outputTag().MatchString(o.Tag) {
		return fmt.Errorf("output tag %q is not a tag name; use letters, digits, '.', '_' and '-'", o.Tag)
	}
	if c.MaxIterations != 1 {
		errs = append(errs, fmt.Errorf("structured output needs exactly one iteration, not %d", c.MaxIterations))
	}
	if !c.Prompt.Mentions("<" + o.Tag + ">") {
		errs = append(errs, fmt.Errorf("the prompt does not name the output tag; tell the agent to answer between <%s> and </%[1]s>",
			o.Tag))
	}
	if _, err := o.schema(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// extract finds the output in the agent's prose. It searches from the end, so that an earlier mention of the tag is harmless.
func (o Output) extract(prose string) (OutputValue, error) {
	raw, ok := lastTagged(prose, o.Tag)
	if !ok {
		return OutputValue{}, fmt.Errorf("structured output: no <%s>…</%[1]s> in what the agent said", o.Tag)
	}
	value := OutputValue{Raw: raw}
	rules, err := o.schema()
	if rules == nil || err != nil {
		return value, err
	}
	text := strings.TrimSpace(raw)
	if m := codeFence().FindStringSubmatch(text); m != nil {
		text = strings.TrimSpace(m[1])
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return value, fmt.Errorf("structured output in <%s> is not JSON: %s", o.Tag, neutral.Excerpt(err.Error(), 300))
	}
	var doc any
	if err = json.Unmarshal(compact.Bytes(), &doc); err == nil {
		err = rules.Validate(doc)
	}
	if err != nil {
		return value, fmt.Errorf("structured output in <%s> does not match the schema: %s", o.Tag, neutral.Excerpt(err.Error(), 500))
	}
	value.JSON = compact.Bytes()
	return value, nil
}

// schema compiles the schema; nil if there is none.
func (o Output) schema() (*jsonschema.Resolved, error) {
	rules, err := schema.Compile(o.Schema)
	if err != nil {
		return nil, fmt.Errorf("output schema: %s", neutral.Excerpt(err.Error(), 500))
	}
	return rules, nil
}
