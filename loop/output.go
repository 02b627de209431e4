package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Output asks for structured output between <Tag> and </Tag>.
type Output struct {
	Tag    string
	Schema []byte // JSON Schema (draft 2020-12 unless it says otherwise); nil: text
}

// OutputValue is what was found.
type OutputValue struct {
	Raw  string // the text between the tags, kept on failure too
	JSON []byte // validated against the schema; nil without one
}

var (
	outputTag = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	codeFence = regexp.MustCompile("(?s)^```[A-Za-z0-9]*[ \t]*\r?\n(.*)\n[ \t]*```$")
)

// validateOutput refuses what could never give an output, before anything starts.
func (c Config) validateOutput() error {
	o := c.Output
	if o == nil {
		return nil
	}
	var errs []error
	if !outputTag.MatchString(o.Tag) {
		return fmt.Errorf("output tag %q is not a tag name; use letters, digits, '.', '_' and '-'", o.Tag)
	}
	if c.MaxIterations != 1 {
		errs = append(errs, fmt.Errorf("structured output needs exactly one iteration, not %d; set max-iterations to 1", c.MaxIterations))
	}
	if !c.Prompt.mentions("<" + o.Tag + ">") {
		errs = append(errs, fmt.Errorf("the prompt does not name the output tag; tell the agent to answer between <%s> and </%[1]s>", o.Tag))
	}
	if _, err := o.schema(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// offline refuses to load what a schema refers to: a schema is one document, and reads neither files nor the network.
type offline struct{}

func (offline) Load(url string) (any, error) {
	return nil, errors.New("references to other documents are not followed; put the definition into the schema")
}

// schema compiles the schema; nil when there is none.
func (o Output) schema() (*jsonschema.Schema, error) {
	if o.Schema == nil {
		return nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(o.Schema))
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(offline{})
	const name = "schema:output"
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("output schema: %s", oneLine(err.Error(), 500))
	}
	return s, nil
}

// extract finds the output in the agent's prose. Pairs are matched from the end, so that a mention of the tag before
// the real pair does no harm.
func (o Output) extract(prose string) (OutputValue, error) {
	raw, ok := lastPair(prose, o.Tag)
	if !ok {
		return OutputValue{}, fmt.Errorf("structured output: no <%s>…</%[1]s> in what the agent said", o.Tag)
	}
	value := OutputValue{Raw: raw}
	schema, err := o.schema()
	if schema == nil || err != nil {
		return value, err
	}
	text := strings.TrimSpace(raw)
	if m := codeFence.FindStringSubmatch(text); m != nil {
		text = strings.TrimSpace(m[1])
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return value, fmt.Errorf("structured output in <%s> is not JSON: %s", o.Tag, oneLine(err.Error(), 300))
	}
	if err := schema.Validate(doc); err != nil {
		return value, fmt.Errorf("structured output in <%s> does not match the schema: %s", o.Tag, oneLine(err.Error(), 500))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return value, fmt.Errorf("structured output in <%s>: %w", o.Tag, err)
	}
	value.JSON = compact.Bytes()
	return value, nil
}
